"""Fields that were not given: ``None`` in Python, nothing on the wire.

The attribute of an optional field without a default is ``None`` if the field was not given. A dump leaves it out, so that the
schema accepts what was dumped:

- ``Omissible`` fields, whose schema forbids null, are never dumped as null. pydantic-core decides that by the value.
- Other fields that default to ``None`` may be null, so only ``model_fields_set`` tells whether null was given. A class with
  such fields has a serializer that looks there.
- A class that is checked with its JSON Schema (``__enforced__``) is dumped as it was given, without any defaults. Its schema
  may limit or compare properties that it gives defaults to: ``maxProperties``, ``uniqueItems``, ``oneOf`` by ``required``.

Python code may pass ``None`` for an ``Omissible`` field, which means that the field is not given: ``Query(q=a.q, o=a.o)``
copies an absent field. From the wire, null is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from operator import is_
from typing import Annotated, Any, Final, TypeAlias, TypeVar

from pydantic import BaseModel, Field, GetCoreSchemaHandler
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, core_schema

T = TypeVar("T")

Dump: TypeAlias = core_schema.SerializerFunctionWrapHandler
_OPTIONS: Final = (
    "mode", "include", "exclude", "by_alias", "context", "exclude_defaults", "exclude_none", "exclude_computed_fields",
    "round_trip", "serialize_as_any", "polymorphic_serialization",
)  # fmt: skip
"""The options of a dump that a serializer can see, but for ``exclude_unset``."""


class _NullRefused:
    """Marks an optional field that is None when absent although its schema forbids null."""

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        return schema["schema"] if schema["type"] == "nullable" else schema

    def __repr__(self) -> str:
        return "null refused"


# A built-in callable, which pydantic-core calls without running Python code.
Omissible: TypeAlias = Annotated[T | None, _NullRefused(), Field(exclude_if=partial(is_, None))]
"""The type of an optional field whose schema forbids null: ``None`` means the field was left out."""


# -- given by Python code --------------------------------------------------------------------------------------------


def omissible_names(model: type[BaseModel]) -> frozenset[str]:
    """The Python and wire names of the ``Omissible`` fields of a class."""
    fields = [(name, field) for name, field in model.model_fields.items() if _is_omissible(field)]
    return frozenset(name for python_name, field in fields for name in (python_name, field.alias) if name is not None)


def _is_omissible(field: FieldInfo) -> bool:
    return field.default is None and any(isinstance(mark, _NullRefused) for mark in field.metadata)


def without_none(values: Mapping[str, Any], omissible: Collection[str]) -> dict[str, Any]:
    """The values, without those that are None for a field that may be left out but not be null."""
    return {name: value for name, value in values.items() if value is not None or name not in omissible}


# -- dumped ----------------------------------------------------------------------------------------------------------


def leave_out_absent(model: type[BaseModel], schema: CoreSchema) -> CoreSchema:
    """The schema of a class, with a serializer that leaves absent fields out, if the class needs one."""
    if schema["type"] in ("function-after", "function-before", "function-wrap"):  # validators of a user's own subclass
        inner: Any = schema
        return {**inner, "schema": leave_out_absent(model, inner["schema"])}
    if schema["type"] != "model" or "serialization" in schema:  # it has a serializer of its own
        return schema
    if "__enforced__" in vars(model):
        serializer = _serializer(_dump_as_given(model), has_info=True)
    else:
        absent = {
            name: field.get("serialization_alias", name)
            for name, field in fields_of(schema).items()
            if _may_be_null(field)
        }
        if not absent:
            return schema
        has_aliases = any(name != wire for name, wire in absent.items())
        dump = _dump_by_wire_name(absent) if has_aliases else _dump_by_name(tuple(absent))
        serializer = _serializer(dump, has_info=has_aliases)
    return {**schema, "serialization": serializer}


def fields_of(schema: Any) -> dict[str, Any]:
    """The fields of a model by their Python names, as core schemas. ``model_fields`` does not know the aliases and marks of
    a class that refers to classes below it, which pydantic completes only when one of those is made."""
    while schema["type"] != "model-fields":
        if "schema" not in schema:
            return {}
        schema = schema["schema"]
    return schema["fields"]  # type: ignore[no-any-return]


def _may_be_null(field: Any) -> bool:
    is_null_by_default = field["schema"]["type"] == "default" and field["schema"].get("default", ...) is None
    return is_null_by_default and "serialization_exclude_if" not in field


def _serializer(dump: Callable[..., Any], *, has_info: bool) -> core_schema.WrapSerializerFunctionSerSchema:
    return core_schema.wrap_serializer_function_ser_schema(dump, info_arg=has_info)


# Each of these functions may get a value that is not of its class: models can be made without validation.


def _dump_by_name(absent: Collection[str]) -> Callable[[Any, Dump], Any]:
    def dump_given(value: Any, dump: Dump) -> Any:
        data = dump(value)
        given = getattr(value, "__pydantic_fields_set__", None)
        if given is not None:
            for name in absent:
                if name not in given:
                    data.pop(name, None)
        return data

    return dump_given


def _dump_by_wire_name(absent: Mapping[str, str]) -> Callable[[Any, Dump, Any], Any]:
    def dump_given(value: Any, dump: Dump, info: core_schema.SerializationInfo) -> Any:
        data = dump(value)
        given = getattr(value, "__pydantic_fields_set__", None)
        if given is None:
            return data
        # An undeclared property may have the Python name of a field.
        by_name, extra = info.by_alias is False, value.__pydantic_extra__ or ()
        for name, wire in absent.items():
            if name not in given and not (by_name and name in extra):
                data.pop(name if by_name else wire, None)
        return data

    return dump_given


def _dump_as_given(model: type[BaseModel]) -> Callable[[Any, Dump, Any], Any]:
    def dump_given(value: Any, dump: Dump, info: core_schema.SerializationInfo) -> Any:
        if info.exclude_unset or not isinstance(value, model):
            return dump(value)
        options: Any = {option: getattr(info, option) for option in _OPTIONS}
        return model.__pydantic_serializer__.to_python(value, exclude_unset=True, warnings=False, **options)

    return dump_given
