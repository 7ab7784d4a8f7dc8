"""Answers that are data: the schema that is asked for, and the typed value that came."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic

from typing_extensions import TypeVar

from toolkit.wire.json_types import JsonObject

if TYPE_CHECKING:
    from pydantic import BaseModel

    from toolkit.wire.query import QueryResult

ModelT_co = TypeVar("ModelT_co", bound="BaseModel", covariant=True)


@dataclass(frozen=True, slots=True)
class OutputSchema:
    """Asks for an answer that is JSON of this schema, an object. ``query_output`` of a driver makes one from a model.

    Where a provider enforces only a part of JSON Schema, the schema is rewritten (``toolkit.adapters.strict``), and so is
    the answer: ``query_output`` turns it back.
    """

    name: str
    schema: JsonObject


@dataclass(frozen=True, slots=True)
class Output(Generic[ModelT_co]):
    """A typed answer: the value, and the result it was read from."""

    value: ModelT_co
    result: QueryResult
