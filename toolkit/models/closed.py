"""People's own Python types, read from the wire: what ``exact`` does for generated models, and every object closed.

Models, dataclasses, typed dicts, tuples, sets, enums and dates come with the core schemas pydantic made for them, which
take more than their JSON Schema says: a number for a date, a text for a flag, properties nobody declared. ``from_wire``
rebuilds such a schema so that it takes what the JSON Schema of ``schema_of_arguments`` takes. What a ``format`` says is
checked by the type itself: a text that is no date is refused where a date is wanted.
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
from toolkit.models.base import ToolModel, ToolRootModel
from toolkit.models.exact import exact


def validator_from_wire(schema: CoreSchema) -> SchemaValidator:
    """What validates values from the wire; the schema must be whole, with the definitions it refers to."""
    # Prebuilt would mean: the validators the classes have already, which take more.
    return SchemaValidator(from_wire(schema), _use_prebuilt=False)


def from_wire(schema: CoreSchema) -> CoreSchema:
    """The schema, exact and closed."""
    return exact(closed(schema))


def closed(schema: Any) -> CoreSchema:
    """The schema ready for ``exact``: objects closed, and what ``exact`` does not know made exact here."""
    rebuild = _REBUILD.get(schema["type"], _gated)
    return rebuild(schema)


def _as_it_is(schema: Any) -> CoreSchema:
    return schema  # type: ignore[no-any-return]


# -- what exact knows: only its parts are looked into ----------------------------------------------------------------


def _inside(schema: Any) -> CoreSchema:
    return {**schema, "schema": closed(schema["schema"])}


def _array(schema: Any) -> CoreSchema:
    return {**schema, "items_schema": closed(schema["items_schema"])} if "items_schema" in schema else schema


def _mapping(schema: Any) -> CoreSchema:
    keys = closed(schema["keys_schema"])
    if keys["type"] not in ("str", "any", "literal"):
        raise SetupError("the keys of a dict are text: JSON has no others")
    return {**schema, "keys_schema": keys, "values_schema": closed(schema["values_schema"])}


def _union(schema: Any) -> CoreSchema:
    choices = [choice[0] if isinstance(choice, tuple) else choice for choice in schema["choices"]]
    return {**schema, "choices": [closed(choice) for choice in choices]}


def _definitions(schema: Any) -> CoreSchema:
    return {**_inside(schema), "definitions": [closed(part) for part in schema["definitions"]]}


def _model(schema: Any) -> CoreSchema:
    # Such a class has made itself exact, and says itself what it takes.
    is_exact = issubclass(schema["cls"], ToolModel | ToolRootModel)
    return schema if is_exact else _without_strangers(_inside(schema))


def _fields(schema: Any) -> CoreSchema:
    return {**schema, "fields": {name: _inside(field) for name, field in schema["fields"].items()}}


def _without_strangers(schema: Any) -> CoreSchema:
    config = schema.get("config", {})
    behaviour = _behaviour(config.get("extra_fields_behavior"))
    return {**schema, "config": {**config, "extra_fields_behavior": behaviour}}


def _behaviour(said: str | None) -> str:
    """Open only where somebody said so: leaving out what is not known would lose it silently."""
    return "allow" if said == "allow" else "forbid"


def _literal(schema: Any) -> CoreSchema:
    return _one_of(schema["expected"]) if any(isinstance(value, Enum) for value in schema["expected"]) else schema


# -- what exact does not know: its parts are made exact here ---------------------------------------------------------


def _around(schema: Any) -> CoreSchema:
    return {**schema, "schema": from_wire(schema["schema"])}


def _tuple(schema: Any) -> CoreSchema:
    items = [from_wire(item) for item in schema["items_schema"]]
    return _behind(_LIST, {**schema, "items_schema": items})


def _named_tuple(schema: Any) -> CoreSchema:
    return _behind(_LIST, {**schema, "fields": [_around(field) for field in schema["fields"]]})


def _set(schema: Any) -> CoreSchema:
    """An array without equal items; they are made exact first, so that 1 and 1.0 are equal."""
    items = exact(core_schema.list_schema(closed(schema.get("items_schema", core_schema.any_schema()))))
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
    return _without_strangers(_around(schema))


def _dataclass_fields(schema: Any) -> CoreSchema:
    return {**schema, "fields": [_around(field) for field in schema["fields"]]}


def _tagged_union(schema: Any) -> CoreSchema:
    return {**schema, "choices": {tag: from_wire(choice) for tag, choice in schema["choices"].items()}}


def _from_json(schema: Any) -> CoreSchema:
    return from_wire(schema["json_schema"])


def _chain(schema: Any) -> CoreSchema:
    first, *rest = schema["steps"]
    return {**schema, "steps": [from_wire(first), *rest]}


def _enum(schema: Any) -> CoreSchema:
    return _one_of(schema["members"])


def _one_of(members: list[Any]) -> CoreSchema:
    """Members of enums by their values, compared as JSON."""
    values = [(member.value if isinstance(member, Enum) else member, member) for member in members]
    words = " or ".join(repr(value) for value, _ in values)

    def find(value: Any) -> Any:
        for wanted, member in values:
            if same_json(value, wanted):
                return member
        raise PydanticCustomError("enum", "Input should be {expected}", {"expected": words})

    return core_schema.no_info_plain_validator_function(find)


def _gated(schema: Any) -> CoreSchema:
    """Any other kind, behind a check of the JSON types it says it takes: a date takes text, and no number."""
    try:
        told = GenerateJsonSchema().generate(schema, "validation")
    except PydanticInvalidForJsonSchema as error:
        raise SetupError(f"it has no JSON Schema: {error}") from None
    except (KeyError, RuntimeError):  # it refers to a definition outside of it
        told = {}
    return _behind(exact(_gate(told)), schema)


def _gate(told: dict[str, Any]) -> CoreSchema:
    branches = told.get("anyOf") or told.get("oneOf")
    if branches:
        return core_schema.union_schema([_gate(branch) for branch in branches])
    kind = told.get("type")
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
    # from here on nothing that exact knows
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
