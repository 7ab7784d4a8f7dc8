"""The base classes of generated models, fields that plain types cannot express, and the same exactness for your own types."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from enum import Enum
from functools import partial
from operator import is_
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Generic, Literal, Self, TypeAlias, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    RootModel,
    TypeAdapter,
    ValidationError,
    ValidatorFunctionWrapHandler,
)
from pydantic.errors import PydanticInvalidForJsonSchema
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import CoreSchema, PydanticCustomError, SchemaValidator, core_schema

from toolkit.errors import SetupError
from toolkit.schema.accepts import same_json
from toolkit.schema.enforce import Enforced
from toolkit.schema.exact import holds_scalars, make_exact
from toolkit.schema.keywords import UNIONS, subschemas
from toolkit.wire.call import JsonObject

# ----------------------------------------------------------------------------------------------------------------------
# Fields that were not given: ``None`` in Python, nothing on the wire.
#
# The attribute of an optional field without a default is ``None`` if the field was not given. A dump leaves it out, so
# that the schema accepts what was dumped:
#
# - ``Omissible`` fields, whose schema forbids null, are never dumped as null. pydantic-core decides that by the value.
# - Other fields that default to ``None`` may be null, so only ``model_fields_set`` tells whether null was given. A class with
#   such fields has a serializer that looks there.
# - A class that is checked with its JSON Schema (``__enforced__``) is dumped as it was given, without any defaults. Its
#   schema may limit or compare properties that it gives defaults to: ``maxProperties``, ``uniqueItems``, ``oneOf`` by
#   ``required``.
#
# Python code may pass ``None`` for an ``Omissible`` field, which means that the field is not given: ``Query(q=a.q, o=a.o)``
# copies an absent field. From the wire, null is refused.

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


# ----------------------------------------------------------------------------------------------------------------------
# A faster validator for closed classes of single values.
#
# pydantic-core spends a fifth of a validation on looking for properties that a closed class does not have. This validator
# ignores them instead. Its callers compare how many properties were given with how many fields were set: if the numbers are
# equal, nothing was ignored; otherwise the validator of the class decides. It stays because every call pays for it: without
# it, ``execute_raw`` takes longer by a tenth of the limit of ``python -m benchmarks calls``.


def ignoring_validator(model: type[BaseModel]) -> SchemaValidator | None:
    """The validator of a closed class without the search for other properties; None for any other class.

    >>> from toolkit.schema.models import ToolModel
    >>> class Page(ToolModel, extra="forbid"):
    ...     number: int
    >>> ignoring_validator(Page).validate_python({"number": 1, "size": 2}).model_fields_set
    {'number'}
    """
    schema: Any = model.__pydantic_core_schema__
    # Classes in the fields would be built again, and a `post_init` would run twice if the class decides.
    if not holds_scalars(model) or "post_init" in schema:
        return None
    config = schema.get("config", {})
    if config.get("extra_fields_behavior") != "forbid":
        return None
    open_schema: Any = {**schema, "config": {**config, "extra_fields_behavior": "ignore"}}
    return SchemaValidator(open_schema, _use_prebuilt=False)


# ----------------------------------------------------------------------------------------------------------------------
# The constructors of classes with ``Omissible`` fields: None for one of them means that it is not given.

_OURS: Final = "__toolkit_constructor__"


def needs_constructor(model: Any) -> bool:
    """Whether the constructor of a class with such fields is pydantic's, or one that a class below it got here."""
    return model.__init__ is BaseModel.__init__ or hasattr(model.__init__, _OURS)


def _mark(constructor: Callable[..., None]) -> Callable[..., None]:
    # pydantic-core does not call such a constructor while it validates: from the wire, null is refused.
    vars(constructor).update({"__pydantic_base_init__": True, _OURS: True})
    return constructor


@_mark
def first_constructor(self: Any, /, **data: Any) -> None:
    """The constructor until there is an instance: most classes of a package are never used, so the faster one waits."""
    __tracebackhide__ = True
    _construct(self, **data)
    model = type(self)
    if vars(model).get("__init__") is first_constructor:
        ignoring = ignoring_validator(model)
        setattr(model, "__init__", _construct if ignoring is None else _quick_constructor(model, ignoring))  # noqa: B010


@_mark
def _construct(self: Any, /, **data: Any) -> None:
    __tracebackhide__ = True
    for value in data.values():
        if value is None:
            data = without_none(data, self.__omissible__)
            break
    if self is not self.__pydantic_validator__.validate_python(data, self_instance=self):
        BaseModel.__init__(self, **data)  # which warns about a validator that returns another object


def _quick_constructor(model: Any, ignoring: SchemaValidator) -> Callable[..., None]:
    """What is not plainly right is left to ``_construct``, as are instances of classes below this one."""
    validate, omissible = ignoring.validate_python, model.__omissible__
    required = sum(field.is_required() for field in model.model_fields.values())

    @_mark
    def construct(self: Any, /, **data: Any) -> None:
        __tracebackhide__ = True
        if type(self) is model:
            if len(data) != required:  # else it has just those, or it is refused
                for value in data.values():
                    if value is None:
                        data = without_none(data, omissible)
                        break
            try:
                validate(data, self_instance=self)
                if len(self.__pydantic_fields_set__) == len(data):
                    return
            except ValidationError:
                pass
        _construct(self, **data)

    return construct


class _OrAnything:
    """Marks a field of which only some branches of a union say what it holds: the others accept anything."""

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.union_schema([handler(source), core_schema.any_schema()], mode="left_to_right")

    def __repr__(self) -> str:
        return "declared by some branches"


DeclaredBySome: TypeAlias = Annotated[T, _OrAnything()]
"""The type of an argument that some branches of the tool's union declare. Where another branch holds, any value passes."""


class Exact:
    """Makes a type that holds itself as exact as the models it is used in, which do not see what is inside of it."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return make_exact(handler(source))


_COMPLETE: Final = "toolkit_complete"


def complete(model: type[BaseModel], schema: Any) -> CoreSchema:
    """The schema that pydantic made for a class, as exact as its JSON Schema and with what a dump leaves out."""
    if _COMPLETE in schema.get("metadata", {}):  # of a class that was made before and is now used in a new one
        return schema  # type: ignore[no-any-return]
    complete: Any = _add_checks(model, leave_out_absent(model, make_exact(schema)))
    return {**complete, "metadata": {**complete.get("metadata", {}), _COMPLETE: True}}


def _add_checks(model: type[BaseModel], schema: CoreSchema) -> CoreSchema:
    """The schema of a class, with checks for what its types cannot express."""
    fields = fields_of(schema)
    aliases = {name: field["validation_alias"] for name, field in fields.items() if "validation_alias" in field}
    if aliases and model.model_config.get("extra") == "allow":
        schema = _around(schema, partial(core_schema.no_info_wrap_validator_function, _Namesakes(aliases)))
    enforced = vars(model).get("__enforced__")
    if enforced is None:
        return schema
    return _around(schema, partial(core_schema.no_info_after_validator_function, Enforced(enforced)))


def _around(schema: Any, wrap: Callable[[CoreSchema], CoreSchema]) -> CoreSchema:
    """A schema with a function around it. The name by which a class refers to itself moves to the outside: a reference
    inside the class would otherwise lead to the schema that pydantic made, which is not exact."""
    named = {"ref": schema["ref"]} if "ref" in schema else {}
    inner = {word: value for word, value in schema.items() if word != "ref"}
    outer: Any = {**wrap(inner), **named}
    return outer  # type: ignore[no-any-return]


class _Namesakes:
    """Stops an extra property with the Python name of a field from marking that field as set.

    Without it, a model whose field ``a_b`` has the alias ``a-b`` would turn ``{"a_b": 1}`` into
    ``{"a-b": null, "a_b": 1}``.
    """

    def __init__(self, aliases: Mapping[str, str]) -> None:
        self._aliases = aliases

    def __call__(self, value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
        model = validate(value)
        extra = model.__pydantic_extra__
        if extra and not self._aliases.keys().isdisjoint(extra):
            for name in self._aliases.keys() & extra.keys():
                if isinstance(value, dict) and self._aliases[name] not in value:
                    model.__pydantic_fields_set__.discard(name)
        return model


class ToolModel(BaseModel):
    """Base of every generated input and output model: immutable, and as exact as its JSON Schema.

    >>> class Page(ToolModel):
    ...     number: int
    >>> Page.model_validate({"number": 2.0})
    Page(number=2)
    """

    if TYPE_CHECKING:
        # Not None here, so that a class may declare the type of its extra properties.
        __pydantic_extra__: dict[str, Any] = Field(init=False)

    model_config = ConfigDict(
        frozen=True,
        extra="allow",
        validate_by_name=True,
        validate_by_alias=True,
        hide_input_in_errors=True,
        protected_namespaces=(),
        regex_engine="rust-regex",
        ser_json_inf_nan="null",
        serialize_by_alias=True,
    )

    __carries_content__: ClassVar[bool] = False
    """Whether it is a ``ContentOutput``. Asked here, so that a call path need not import and build that model."""
    __omissible__: ClassVar[frozenset[str]] = frozenset()
    """The Python and wire names of its ``Omissible`` fields."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: type[Any], handler: GetCoreSchemaHandler) -> CoreSchema:
        return complete(cls, handler(source))

    @classmethod
    def __pydantic_on_complete__(cls) -> None:
        super().__pydantic_on_complete__()
        cls.__omissible__ = omissible_names(cls)
        if cls.__omissible__ and needs_constructor(cls):
            setattr(cls, "__init__", first_constructor)  # noqa: B010

    @classmethod
    def model_construct(cls, _fields_set: set[str] | None = None, **values: Any) -> Self:
        return super().model_construct(_fields_set, **without_none(values, cls.__omissible__))

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        copied = super().model_copy(update=update, deep=deep)
        if update and self.__omissible__:
            absent = update.keys() - without_none(update, self.__omissible__).keys()
            copied.__pydantic_fields_set__.difference_update(absent)
        return copied


# ----------------------------------------------------------------------------------------------------------------------
# JSON Schemas of the user's own types, for tools: pydantic's schemas, closed, and without noise.


class _Plain(GenerateJsonSchema):
    """Without titles derived from names; defaults that are not JSON are left out without a warning."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def emit_warning(self, kind: Any, detail: str) -> None:
        pass


def schema_of_arguments(model: type[BaseModel]) -> JsonObject:
    """The schema of what a call may send, 2020-12."""
    return _tidy(model.model_json_schema(schema_generator=_Plain))


def schema_of_output(adapter: TypeAdapter[Any]) -> JsonObject:
    """The schema of a value on the wire."""
    mode: Literal["serialization"] = "serialization"
    return _tidy(adapter.json_schema(schema_generator=_Plain, mode=mode))


def _tidy(schema: dict[str, Any]) -> JsonObject:
    definitions = schema.get("$defs", {})
    for key, node in definitions.items():
        if re.sub(r"\W", "_", node.get("title", "")) == key:
            del node["title"]
    if "$ref" in schema:
        # A recursive type is only in $defs; the object of arguments must be at the top.
        schema = {**definitions[schema["$ref"].rpartition("/")[2]], "$defs": definitions}
    schema.pop("title", None)
    for _, node in subschemas(schema):
        if node.get("type") == "object" and "additionalProperties" not in node:
            node["additionalProperties"] = False
        if "default" in node and node["default"] is None and not _takes_null(node, definitions):
            # None is the function's own default for a missing argument; on the wire it is not allowed.
            del node["default"]
    return JsonObject(schema)


def _takes_null(node: dict[str, Any], definitions: dict[str, Any]) -> bool:
    if "$ref" in node:
        return _takes_null(definitions.get(node["$ref"].rpartition("/")[2], {}), {})
    for word in UNIONS:
        if word in node:
            return any(_takes_null(branch, definitions) for branch in node[word])
    if "enum" in node or "const" in node:
        return None in node.get("enum", [node.get("const")])
    return bool(node.get("type", "null") == "null")


# ----------------------------------------------------------------------------------------------------------------------
# The base class of generated models whose schema is not an object.

RootT = TypeVar("RootT")


class ToolRootModel(RootModel[RootT], Generic[RootT]):
    """``ToolModel`` for a schema whose root is not an object: the value is ``.root``.

    >>> ToolRootModel[list[int]].model_validate([1.0]).root
    [1]
    """

    model_config = ConfigDict(
        frozen=True, hide_input_in_errors=True, regex_engine="rust-regex", serialize_by_alias=True
    )

    @classmethod
    def __get_pydantic_core_schema__(cls, source: type[Any], handler: GetCoreSchemaHandler) -> CoreSchema:
        return complete(cls, handler(source))


# ----------------------------------------------------------------------------------------------------------------------
# Validates wire values into the user's own Python types: exact as for generated models, and every object closed.
#
# The core schemas that pydantic makes for models, dataclasses, typed dicts, tuples, sets, enums and dates accept more than
# their JSON Schema: a number for a date, text for a flag, undeclared properties. ``from_wire`` rebuilds such a schema so that
# it accepts what the JSON Schema of ``schema_of_arguments`` accepts. A ``format`` is checked by the type itself: text that is
# not a date is refused where a date is expected.


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


def _from_wire_inside(schema: Any) -> CoreSchema:
    return {**schema, "schema": from_wire(schema["schema"])}


def _tuple(schema: Any) -> CoreSchema:
    items = [from_wire(item) for item in schema["items_schema"]]
    return _behind(_LIST, {**schema, "items_schema": items})


def _named_tuple(schema: Any) -> CoreSchema:
    return _behind(_LIST, {**schema, "fields": [_from_wire_inside(field) for field in schema["fields"]]})


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
    fields = {name: _from_wire_inside(field) for name, field in schema["fields"].items()}
    behaviour = _behaviour(schema.get("extra_behavior") or schema.get("config", {}).get("extra_fields_behavior"))
    return {**schema, "strict": True, "fields": fields, "extra_behavior": behaviour}


def _dataclass(schema: Any) -> CoreSchema:
    return _close(_from_wire_inside(schema))


def _dataclass_fields(schema: Any) -> CoreSchema:
    return {**schema, "fields": [_from_wire_inside(field) for field in schema["fields"]]}


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
    "custom-error": _from_wire_inside,
    "dataclass": _dataclass,
    "dataclass-args": _dataclass_fields,
    "enum": _enum,
    "frozenset": _set,
    "function-after": _from_wire_inside,
    "function-before": _from_wire_inside,
    "function-wrap": _from_wire_inside,
    "generator": _iterable,
    "json-or-python": _from_json,
    "named-tuple": _named_tuple,
    "set": _set,
    "tagged-union": _tagged_union,
    "tuple": _tuple,
    "typed-dict": _typed_dict,
}
