"""The base classes of generated models, and the types of fields that plain types cannot express."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Self, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, ValidatorFunctionWrapHandler
from pydantic_core import CoreSchema, core_schema

from toolkit.models.absent import fields_of, leave_out_absent, omissible_names, without_none
from toolkit.models.construct import first_constructor, needs_constructor
from toolkit.schema.enforce import Enforced
from toolkit.schema.exact import make_exact

T = TypeVar("T")


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
    if _COMPLETE in schema.get("metadata", {}):  # of a class that was made before, now used in another one
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
