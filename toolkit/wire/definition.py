"""What a model is given besides messages: tool definitions, whether it must call one, and the schema of its answer."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Generic, Literal, TypeAlias

from typing_extensions import TypeVar

from toolkit.wire.call import JsonObject

if TYPE_CHECKING:
    from pydantic import BaseModel

    from toolkit.wire.query import QueryResult

ToolCallers: TypeAlias = Literal["model", "programs", "both"]
"""Who may call a tool: the model, programs that it writes and the provider runs, or both."""
ModelT_co = TypeVar("ModelT_co", bound="BaseModel", covariant=True)
_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}\Z")
_ODD: Final = re.compile(r"[^A-Za-z0-9_-]+")
_DIGEST: Final = 8


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool's name, its description and the JSON Schema of its arguments, for any provider.

    ``strict`` asks for strict mode and is ignored by providers that have none. ``metadata`` carries what a provider adds to
    a definition and the neutral form has no field for. With ``defer_loading`` the model sees the tool only after it has
    searched for it; providers without a search for tools show it at once, and drivers of the others add the search.

    ``callers`` says whether programs that the provider runs may call the tool. Providers without such programs ignore it, and
    drivers of the others add the provider's tool that runs them. ``text_argument`` names the argument that a model writes as
    plain text instead of JSON, where the provider has such tools (OpenAI's custom tools); it cannot give others then.
    """

    name: str
    description: str
    parameters: JsonObject
    strict: bool | None = None
    metadata: Mapping[str, object] = field(default_factory=dict)
    defer_loading: bool = False
    callers: ToolCallers = "model"
    text_argument: str | None = None


@dataclass(frozen=True, slots=True)
class NativeTool:
    """A tool that the provider runs itself (web search, code interpreter), in its own form; it is sent unchanged, and to no
    other provider."""

    provider: str
    raw: JsonObject


AnyDefinition: TypeAlias = ToolDefinition | NativeTool


# -- whether a model may or must call a tool, and which ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NamedTool:
    """The model must call this tool."""

    name: str


@dataclass(frozen=True, slots=True)
class NativeChoice:
    """A choice that only one provider has, in that provider's form; it is sent unchanged, and to no other provider."""

    provider: str
    raw: object


ToolChoice: TypeAlias = Literal["auto", "none", "required"] | NamedTool | NativeChoice
"""``auto`` leaves it to the model, ``none`` forbids calls, ``required`` asks for at least one."""


# -- aliases for names that a provider would refuse; the toolkit that has the tool resolves them -------------------------


def is_plain(name: str) -> bool:
    """Whether every provider accepts the name as it is."""
    return _PLAIN.match(name) is not None


def alias(name: str) -> str:
    """A name that every provider accepts: the name itself, or a readable form of it with a digest, which makes it unique.

    >>> alias("read_file"), alias("math.factorial")
    ('read_file', 'math_factorial-2f2114b7')
    """
    if is_plain(name):
        return name
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]
    readable = _ODD.sub("_", name)
    if not readable or readable[0].isdigit() or readable[0] == "-":
        readable = f"t_{readable}"
    return f"{readable[: 63 - _DIGEST]}-{digest}"


# -- answers that are data -----------------------------------------------------------------------------------------------


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
