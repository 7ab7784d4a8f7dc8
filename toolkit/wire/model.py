"""The base of every generated model, and the type of a field that may be left out but not be null."""

from __future__ import annotations

from typing import Annotated, Any, Generic, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, RootModel
from pydantic_core import CoreSchema

from toolkit.wire.exact import exact

T = TypeVar("T")
RootT = TypeVar("RootT")


class _NullRefused:
    """Marks an optional field that is None when absent although its schema forbids null."""

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        return schema["schema"] if schema["type"] == "nullable" else schema

    def __repr__(self) -> str:
        return "null refused"


Omissible: TypeAlias = Annotated[T | None, _NullRefused()]
"""The type of an optional field whose schema forbids null: ``None`` means the field was left out."""


class ToolModel(BaseModel):
    """Base of every generated input and output model: immutable, and exact as its JSON Schema is.

    >>> class Page(ToolModel):
    ...     number: int
    >>> Page.model_validate({"number": 2.0})
    Page(number=2)
    """

    model_config = ConfigDict(
        frozen=True,
        extra="allow",
        validate_by_name=True,
        validate_by_alias=True,
        hide_input_in_errors=True,
        protected_namespaces=(),
        regex_engine="rust-regex",
        ser_json_inf_nan="null",
    )

    @classmethod
    def __get_pydantic_core_schema__(cls, source: type[Any], handler: GetCoreSchemaHandler) -> CoreSchema:
        return exact(handler(source))


class ToolRootModel(RootModel[RootT], Generic[RootT]):
    """The same for a schema whose root is no object: the value is ``.root``.

    >>> ToolRootModel[list[int]].model_validate([1.0]).root
    [1]
    """

    model_config = ConfigDict(frozen=True, hide_input_in_errors=True, regex_engine="rust-regex")

    @classmethod
    def __get_pydantic_core_schema__(cls, source: type[Any], handler: GetCoreSchemaHandler) -> CoreSchema:
        return exact(handler(source))
