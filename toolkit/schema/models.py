"""Validates wire values into the user's own Python types: exact as for generated models, and every object closed.

The core schemas that pydantic makes for models, dataclasses, typed dicts, tuples, sets, enums and dates accept more than
their JSON Schema: a number for a date, text for a flag, undeclared properties. ``from_wire`` rebuilds such a schema so that
it accepts what the JSON Schema of ``schema_of_arguments`` accepts. A ``format`` is checked by the type itself: text that is
not a date is refused where a date is expected.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, Final

from pydantic.errors import PydanticInvalidForJsonSchema
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import CoreSchema, PydanticCustomError, SchemaValidator, core_schema

from toolkit.errors import SetupError
from toolkit.jsonschema.values import same_json
from toolkit.models.base import ToolModel
from toolkit.models.root import ToolRootModel
from toolkit.schema.exact import make_exact


def validator_from_wire(schema: CoreSchema) -> SchemaValidator:
    """A validator for wire values; the schema must include the definitions it refers to."""
    # Prebuilt validators are those of the classes, which accept more.
    return SchemaValidator(from_wire(schema), _use_prebuilt=False)


def from_wire(schema: CoreSchema) -> CoreSchema:
    """The schema, exact and closed."""
    return make_exact(close_schema(schema))


def close_schema(schema: Any) -> CoreSchema:
    """The schema with closed objects, ready for ``make_exact``; kinds that it does not handle are made exact here."""
    rebuild = _REBUILD.get(schema["type"], _add_gate)
    return rebuild(schema)


def _as_it_is(schema: Any) -> CoreSchema:
    return schema  # type: ignore[no-any-return]


# -- kinds that `make_exact` handles: only their parts are rebuilt here -----------------------------------------------


def _inside(schema: Any) -> CoreSchema:
    return {**schema, "schema": close_schema(schema["schema"])}


def _array(schema: Any) -> CoreSchema:
    return {**schema, "items_schema": close_schema(schema["items_schema"])} if "items_schema" in schema else schema


def _mapping(schema: Any) -> CoreSchema:
    keys = close_schema(schema["keys_schema"])
    if keys["type"] not in ("str", "any", "literal"):
        raise SetupError("the keys of a dict must be strings, as in JSON")
    return {**schema, "keys_schema": keys, "values_schema": close_schema(schema["values_schema"])}


def _union(schema: Any) -> CoreSchema:
    choices = [choice[0] if isinstance(choice, tuple) else choice for choice in schema["choices"]]
    return {**schema, "choices": [close_schema(choice) for choice in choices]}


def _definitions(schema: Any) -> CoreSchema:
    return {**_inside(schema), "definitions": [close_schema(part) for part in schema["definitions"]]}


def _model(schema: Any) -> CoreSchema:
    # Such a class is exact already, and declares itself what it accepts.
    is_exact = issubclass(schema["cls"], ToolModel | ToolRootModel)
    return schema if is_exact else _close(_inside(schema))


def _fields(schema: Any) -> CoreSchema:
    return {**schema, "fields": {name: _inside(field) for name, field in schema["fields"].items()}}


def _close(schema: Any) -> CoreSchema:
    config = schema.get("config", {})
    behaviour = _behaviour(config.get("extra_fields_behavior"))
    return {**schema, "config": {**config, "extra_fields_behavior": behaviour}}


def _behaviour(declared: str | None) -> str:
    """Open only if declared; ignoring unknown properties would lose them silently."""
    return "allow" if declared == "allow" else "forbid"


def _literal(schema: Any) -> CoreSchema:
    return _one_of(schema["expected"]) if any(isinstance(value, Enum) for value in schema["expected"]) else schema


# -- kinds that `make_exact` does not handle: they are made exact here ------------------------------------------------


def _around(schema: Any) -> CoreSchema:
    return {**schema, "schema": from_wire(schema["schema"])}


def _tuple(schema: Any) -> CoreSchema:
    items = [from_wire(item) for item in schema["items_schema"]]
    return _behind(_LIST, {**schema, "items_schema": items})


def _named_tuple(schema: Any) -> CoreSchema:
    return _behind(_LIST, {**schema, "fields": [_around(field) for field in schema["fields"]]})


def _set(schema: Any) -> CoreSchema:
    """An array without equal items, which are made exact first, so that 1 and 1.0 are equal."""
    items = make_exact(core_schema.list_schema(close_schema(schema.get("items_schema", core_schema.any_schema()))))
    unique = core_schema.no_info_after_validator_function(_unique, items)
    return _behind(unique, {**schema, "items_schema": core_schema.any_schema()})


def _unique(items: list[Any]) -> list[Any]:
    if len(set(items)) != len(items):
        raise PydanticCustomError("unique_items", "Items should be unique")
    return items


def _iterable(schema: Any) -> CoreSchema:
    limits = {key: schema[key] for key in ("min_length", "max_length") if key in schema}
    return from_wire(core_schema.list_schema(schema.get("items_schema", core_schema.any_schema()), **limits))


def _typed_dict(schema: Any) -> CoreSchema:
    fields = {name: _around(field) for name, field in schema["fields"].items()}
    behaviour = _behaviour(schema.get("extra_behavior") or schema.get("config", {}).get("extra_fields_behavior"))
    return {**schema, "strict": True, "fields": fields, "extra_behavior": behaviour}


def _dataclass(schema: Any) -> CoreSchema:
    return _close(_around(schema))


def _dataclass_fields(schema: Any) -> CoreSchema:
    return {**schema, "fields": [_around(field) for field in schema["fields"]]}


def _tagged_union(schema: Any) -> CoreSchema:
    return {**schema, "choices": {tag: close_schema(choice) for tag, choice in schema["choices"].items()}}


def _from_json(schema: Any) -> CoreSchema:
    return from_wire(schema["json_schema"])


def _chain(schema: Any) -> CoreSchema:
    first, *rest = schema["steps"]
    return {**schema, "steps": [from_wire(first), *rest]}


def _enum(schema: Any) -> CoreSchema:
    return _one_of(schema["members"])


def _one_of(members: list[Any]) -> CoreSchema:
    """Enum members by value, compared as JSON."""
    values = [(member.value if isinstance(member, Enum) else member, member) for member in members]
    words = " or ".join(repr(value) for value, _ in values)

    def find(value: Any) -> Any:
        for wanted, member in values:
            if same_json(value, wanted):
                return member
        raise PydanticCustomError("enum", "Input should be {expected}", {"expected": words})

    return core_schema.no_info_plain_validator_function(find)


def _add_gate(schema: Any) -> CoreSchema:
    """Any other kind, after a check of the JSON types in its JSON Schema: a date accepts text, but not a number."""
    try:
        shown = GenerateJsonSchema().generate(schema, "validation")
    except PydanticInvalidForJsonSchema as error:
        raise SetupError(f"it has no JSON Schema: {error}") from None
    except (KeyError, RuntimeError):  # it refers to a definition elsewhere
        shown = {}
    return _behind(make_exact(_gate(shown)), schema)


def _gate(shown: dict[str, Any]) -> CoreSchema:
    branches = shown.get("anyOf") or shown.get("oneOf")
    if branches:
        return core_schema.union_schema([_gate(branch) for branch in branches])
    kind = shown.get("type")
    return _GATES[kind]() if isinstance(kind, str) and kind in _GATES else core_schema.any_schema()


def _behind(gate: CoreSchema, schema: Any) -> CoreSchema:
    return core_schema.chain_schema([gate, schema])


_LIST: Final = core_schema.list_schema(strict=True)

_GATES: Final[dict[str, Callable[[], CoreSchema]]] = {
    "string": core_schema.str_schema,
    "integer": core_schema.int_schema,
    "number": core_schema.float_schema,
    "boolean": core_schema.bool_schema,
    "null": core_schema.none_schema,
}

_REBUILD: Final[dict[str, Callable[[Any], CoreSchema]]] = {
    **dict.fromkeys(("any", "bool", "definition-ref", "float", "int", "none", "str"), _as_it_is),
    "default": _inside,
    "definitions": _definitions,
    "dict": _mapping,
    "list": _array,
    "literal": _literal,
    "model": _model,
    "model-fields": _fields,
    "nullable": _inside,
    "union": _union,
    # kinds that `make_exact` does not handle
    "chain": _chain,
    "custom-error": _around,
    "dataclass": _dataclass,
    "dataclass-args": _dataclass_fields,
    "enum": _enum,
    "frozenset": _set,
    "function-after": _around,
    "function-before": _around,
    "function-wrap": _around,
    "generator": _iterable,
    "json-or-python": _from_json,
    "named-tuple": _named_tuple,
    "set": _set,
    "tagged-union": _tagged_union,
    "tuple": _tuple,
    "typed-dict": _typed_dict,
}
