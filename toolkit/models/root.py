"""The base class of generated models whose schema is not an object."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from pydantic import ConfigDict, GetCoreSchemaHandler, RootModel
from pydantic_core import CoreSchema

from toolkit.models.base import complete

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
