"""What MCP servers may ask for while a call runs, and the functions of yours that answer.

Without a function the server is told that nobody answers, in a sentence it can pass on to the model.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from toolkit.wire.message import TextMessage


@dataclass(frozen=True, slots=True)
class ElicitRequest:
    """A server asks the person for something. What it says is untrusted text.

    :param server: the name of the server in the settings.
    :param schema: the JSON Schema of the answer: an object with properties that are texts, numbers, flags and choices.
    :param url: if it is not empty, the server wants this address to be opened instead of a form to be filled in.
    """

    server: str
    message: str
    schema: Mapping[str, Any]
    url: str = ""


@dataclass(frozen=True, slots=True)
class SampleRequest:
    """A server asks for the text of a model. What it says is untrusted text, and your tokens are spent."""

    server: str
    messages: Sequence[TextMessage]
    max_tokens: int
    system: str | None = None
    temperature: float | None = None
    stop: tuple[str, ...] = ()
    model_hints: tuple[str, ...] = ()
    """Names of models that the server would like, best first."""


@dataclass(frozen=True, slots=True)
class SampleAnswer:
    """The text of a model, for the server."""

    text: str
    model: str
    """The name of the model that wrote it."""
    cut: bool = False
    """Whether it ended because of ``max_tokens``."""


ElicitAnswer: TypeAlias = Mapping[str, object] | None
Elicit: TypeAlias = Callable[[ElicitRequest], ElicitAnswer | Awaitable[ElicitAnswer]]
"""Returns what the person filled in, or None if the person declines. Defaults of the schema are added to it."""

Sample: TypeAlias = Callable[[SampleRequest], SampleAnswer | Awaitable[SampleAnswer | None] | None]
"""Returns the text of a model, or None to refuse."""

OpenUrl: TypeAlias = Callable[[str], object]
"""Shows an address to the person or opens it in a browser, and returns at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class McpCallbacks:
    """Functions that answer MCP servers, sync (run in a thread of their own) or async (run in the loop of the call).

    :param elicit: asks the person; without it servers are refused.
    :param sample: asks a model; without it servers are refused.
    :param open_url: called with the address at which the person logs in to a server; without it, a server that needs a
        login fails with what to run instead. The time limit of the call is paused meanwhile.

    >>> McpCallbacks(elicit=lambda request: {"name": "Ada"}).sample is None
    True
    """

    elicit: Elicit | None = None
    sample: Sample | None = None
    open_url: OpenUrl | None = None
