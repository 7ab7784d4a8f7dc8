"""Core schemas that accept a value exactly when its JSON Schema does.

Generated models are written with plain types (``int``, ``str``, ``Literal["a"]``) so that people and checkers read
them easily. Plain pydantic would take ``"7"`` for an integer in lax mode and refuse ``1.0`` in strict mode; JSON Schema
says the opposite of both. ``make_exact`` therefore rebuilds the core schema of a model once, when its class is made:

===================  ==============================================  ==================
JSON Schema          accepted                                        refused
===================  ==============================================  ==================
integer              1, 1.0 (becomes 1)                              "1", true, 1.5
number               1 (kept an int), 1.5                            "1", true, NaN
string               text                                            lone surrogates, bytes
enum, const          equal JSON values (1 and 1.0 are equal)         true for 1
array, object        list, dict                                      tuple, set, generator
optional, not null   absent (the attribute is then None)             null
===================  ==============================================  ==================

Everything but non-text enums and untyped values stays inside pydantic-core: no Python runs per value.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from pydantic import BaseModel
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from toolkit.schema.accepts import as_fraction, is_multiple, same_json

MAX_DEPTH: Final = 200
"""How deep an untyped value may nest: the limit of pydantic-core's own parser."""


def make_exact(schema: CoreSchema) -> CoreSchema:
    """The same schema, with every leaf accepting what JSON Schema accepts; other kinds stay unchanged."""
    rebuild = _REBUILD.get(schema["type"])
    if rebuild is None:
        return schema
    rebuilt = rebuild(schema)
    return _show_as(rebuilt, schema) if schema["type"] in _LEAVES else rebuilt


def _show_as(rebuilt: CoreSchema, plain: CoreSchema) -> CoreSchema:
    """The schema, with the JSON Schema of the plain type for ``model_json_schema()``."""

    def show(_: CoreSchema, handler: Callable[[CoreSchema], dict[str, Any]]) -> dict[str, Any]:
        return handler(plain)

    metadata: Any = rebuilt.get("metadata") or {}
    changed: Any = {**rebuilt, "metadata": {**metadata, "pydantic_js_functions": [show]}}
    return changed  # type: ignore[no-any-return]


def _integer(schema: Any) -> CoreSchema:
    """An int, or a float without a fraction; limits are checked on the int."""
    # Python's own conversion, because that of pydantic-core stops at 64 bits; floats are rare here.
    to_int = core_schema.no_info_plain_validator_function(_whole)
    whole = core_schema.chain_schema([core_schema.float_schema(strict=True, allow_inf_nan=False), to_int])
    either = core_schema.union_schema([core_schema.int_schema(strict=True), whole], mode="left_to_right")
    plain = core_schema.custom_error_schema(either, custom_error_type="int_type")
    limits: Any = {key: _for_ints(key, schema[key]) for key in _LIMITS if key in schema}
    return core_schema.chain_schema([plain, core_schema.int_schema(**limits)]) if limits else plain


def _whole(value: float) -> int:
    if not value.is_integer():
        raise ValueError("not an integer")
    return int(value)


def _number(schema: Any) -> CoreSchema:
    """An int stays an int (no digit is lost), a float must be finite; each is checked as it is."""
    either = core_schema.union_schema(
        [core_schema.int_schema(strict=True), core_schema.float_schema(strict=True, allow_inf_nan=False)],
        mode="left_to_right",
    )
    plain = core_schema.custom_error_schema(either, custom_error_type="float_type")
    limits = [_number_limit(key, schema[key]) for key in _LIMITS if key in schema]
    return core_schema.chain_schema([plain, *limits]) if limits else plain


# pydantic's names for limits, and for their errors.
_LIMITS: Final = {
    "ge": "greater_than_equal",
    "gt": "greater_than",
    "le": "less_than_equal",
    "lt": "less_than",
    "multiple_of": "multiple_of",
}


def _number_limit(key: str, limit: float) -> CoreSchema:
    """One limit on a number, as its own step, so that the error names only this limit."""
    of_ints: Any = {key: _for_ints(key, limit)}
    for_ints = core_schema.int_schema(strict=True, **of_ints)
    # Even a strict float schema accepts ints, and would round them.
    for_floats = core_schema.chain_schema([core_schema.is_instance_schema(float), _float_limit(key, limit)])
    either = core_schema.union_schema([for_ints, for_floats], mode="left_to_right")
    return core_schema.custom_error_schema(either, custom_error_type=_LIMITS[key], custom_error_context={key: limit})


def _for_ints(key: str, limit: float) -> int:
    """The whole number that limits ints exactly as ``limit`` does."""
    if key == "multiple_of":
        return as_fraction(limit).numerator
    return math.ceil(limit) if key in ("ge", "lt") else math.floor(limit)


def _float_limit(key: str, limit: float) -> CoreSchema:
    if key == "multiple_of":
        # pydantic-core divides floats and rounds: 1e17 would count as a multiple of 3.
        return core_schema.no_info_plain_validator_function(lambda value: _multiple(value, limit))
    near = float(limit)
    if key in ("ge", "lt") and near < limit:
        near = math.nextafter(near, math.inf)
    elif key in ("le", "gt") and near > limit:
        near = math.nextafter(near, -math.inf)
    of_floats: Any = {key: near}
    return core_schema.float_schema(**of_floats)


def _multiple(value: float, step: float) -> float:
    if not is_multiple(value, step):
        raise ValueError("not a multiple")
    return value


def _string(schema: Any) -> CoreSchema:
    # Any limit makes pydantic-core encode the text as UTF-8, which refuses lone surrogates.
    return {**schema, "strict": True, "min_length": schema.get("min_length", 0)}


def _strict(schema: Any) -> CoreSchema:
    return {**schema, "strict": True}


def _array(schema: Any) -> CoreSchema:
    return {**schema, "strict": True, "items_schema": make_exact(schema["items_schema"])}


def _mapping(schema: Any) -> CoreSchema:
    keys, values = make_exact(schema["keys_schema"]), make_exact(schema["values_schema"])
    return {**schema, "strict": True, "keys_schema": keys, "values_schema": values}


def _literal(schema: Any) -> CoreSchema:
    """Text is compared as it is, other values as JSON: true is not 1, but 1.0 is."""
    expected = schema["expected"]
    if all(isinstance(value, str) for value in expected):
        return core_schema.literal_schema(expected)
    words = " or ".join(repr(value) for value in expected)

    def same(value: Any) -> Any:
        for wanted in expected:
            if same_json(value, wanted):
                return wanted
        raise PydanticCustomError("literal_error", "Input should be {expected}", {"expected": words})

    return core_schema.no_info_plain_validator_function(same, serialization=core_schema.simple_ser_schema("any"))


def _anything(_: Any) -> CoreSchema:
    return core_schema.no_info_plain_validator_function(check_json, serialization=core_schema.simple_ser_schema("any"))


def check_json(value: Any) -> Any:
    """Returns the value if all of it is JSON: no other types, NaN, lone surrogates or cycles."""
    pending: list[tuple[Any, int]] = [(value, 0)]
    while pending:
        item, depth = pending.pop()
        kind = type(item)
        if kind is str:
            if not item.isascii():
                _refuse_surrogates(item)
        elif kind is dict:
            _refuse_depth(depth)
            for key in item:
                if type(key) is not str:
                    raise PydanticCustomError("json_value", "Object keys should be strings")
                _refuse_surrogates(key)
            pending.extend((child, depth + 1) for child in item.values())
        elif kind is list:
            _refuse_depth(depth)
            pending.extend((child, depth + 1) for child in item)
        elif kind is float:
            if not math.isfinite(item):
                raise PydanticCustomError("finite_number", "Input should be a finite number")
        elif item is not None and kind is not int and kind is not bool:
            raise PydanticCustomError("json_value", "Input should be a JSON value")
    return value


def _refuse_depth(depth: int) -> None:
    # This also stops a value that contains itself.
    if depth >= MAX_DEPTH:
        raise PydanticCustomError("json_depth", "Input should nest at most {most} levels deep", {"most": MAX_DEPTH})


def _refuse_surrogates(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise PydanticCustomError(
            "string_unicode", "Input should be a valid string, unable to parse raw data as a unicode string"
        ) from None


def _inside(schema: Any) -> CoreSchema:
    return {**schema, "schema": make_exact(schema["schema"])}


def _union(schema: Any) -> CoreSchema:
    """Branches carry the JSON name of their type, which the location of an error shows."""
    choices = [choice[0] if isinstance(choice, tuple) else choice for choice in schema["choices"]]
    named = [(make_exact(choice), _JSON_NAMES.get(choice["type"])) for choice in choices]
    return {**schema, "choices": [(choice, name) if name else choice for choice, name in named]}


def _tagged_union(schema: Any) -> CoreSchema:
    """The tag chooses the branch. The message names the tags, and does not repeat the value as pydantic's own does."""
    found = {**schema, "choices": {tag: make_exact(choice) for tag, choice in schema["choices"].items()}}
    if isinstance(schema["discriminator"], str):
        found["custom_error_type"] = "union_tag"
        found["custom_error_message"] = "{tag} should be one of: {tags}"
        tags = ", ".join(map(repr, schema["choices"]))
        found["custom_error_context"] = {"tag": repr(schema["discriminator"]), "tags": tags}
    return found


_JSON_NAMES: Final = {
    "int": "integer",
    "float": "number",
    "str": "string",
    "bool": "boolean",
    "list": "array",
    "dict": "object",
}


def _definitions(schema: Any) -> CoreSchema:
    return {**_inside(schema), "definitions": [make_exact(part) for part in schema["definitions"]]}


def _model(schema: Any) -> CoreSchema:
    fields = schema["schema"]
    # Properties that a schema does not name must also be JSON: no cycle and no NaN.
    is_open = fields["type"] == "model-fields" and schema.get("config", {}).get("extra_fields_behavior") == "allow"
    if is_open and "extras_schema" not in fields:
        fields = {**fields, "extras_schema": core_schema.any_schema()}
    return {**schema, "schema": make_exact(fields)}


def _fields(schema: Any) -> CoreSchema:
    # The class of a nested model has already made it exact.
    marked = {**schema, "metadata": _DONE}
    if schema.get("metadata") != _DONE:
        marked["fields"] = {name: _inside(field) for name, field in schema["fields"].items()}
        if "extras_schema" in schema:
            marked["extras_schema"] = make_exact(schema["extras_schema"])
    return marked


_DONE: Final = {"toolkit_exact": True}

_LEAVES: Final = frozenset({"int", "float", "literal", "any"})

_REBUILD: Final[dict[str, Callable[[Any], CoreSchema]]] = {
    "int": _integer,
    "float": _number,
    "str": _string,
    "bool": _strict,
    "list": _array,
    "dict": _mapping,
    "literal": _literal,
    "any": _anything,
    "nullable": _inside,
    "default": _inside,
    "union": _union,
    "tagged-union": _tagged_union,
    "definitions": _definitions,
    "model": _model,
    "model-fields": _fields,
}


# ----------------------------------------------------------------------------------------------------------------------
# Which models hold nothing but single values: what is known of them does not depend on what is inside of a field.

_SINGLE: Final = frozenset({"str", "int", "bool", "none", "literal"})
_AROUND_ONE: Final = frozenset({"default", "nullable", "custom-error"})


def holds_scalars(model: type[BaseModel]) -> bool:
    """Whether every field is text, a finite number, a truth value or null.

    >>> from toolkit.schema.models import ToolModel
    >>> class Page(ToolModel):
    ...     number: int
    >>> class Pages(ToolModel):
    ...     numbers: list[int]
    >>> holds_scalars(Page), holds_scalars(Pages)
    (True, False)
    """
    schema: Any = model.__pydantic_core_schema__
    if schema["type"] != "model" or schema["schema"]["type"] != "model-fields":
        return False
    return all(_is_scalar(field["schema"]) for field in schema["schema"]["fields"].values())


def _is_scalar(schema: Any) -> bool:
    kind = schema["type"]
    if kind in _AROUND_ONE:
        return _is_scalar(schema["schema"])
    if kind == "union":
        return all(_is_scalar(choice[0] if isinstance(choice, tuple) else choice) for choice in schema["choices"])
    if kind == "chain":  # the first step decides what the others get
        return _is_scalar(schema["steps"][0])
    return kind in _SINGLE or kind == "float" and schema.get("allow_inf_nan") is False
