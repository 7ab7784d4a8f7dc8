"""One request to a model and its answer, for any provider."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from toolkit.wire.call import ToolCall
from toolkit.wire.choice import ToolChoice
from toolkit.wire.definition import AnyDefinition
from toolkit.wire.message import AssistantToolCallMessage, ChatMessage, TextMessage
from toolkit.wire.output import OutputSchema

ReasoningEffort: TypeAlias = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
"""How much a model may think before it answers. A provider with fewer steps takes the nearest."""

CachePoint: TypeAlias = Literal["tools", "system", "messages"]
"""The end of a part of a request that later requests repeat."""

FinishReason: TypeAlias = Literal[
    "stop", "length", "error", "tool_calls", "refused", "filtered", "paused", "needs_action"
]  # fmt: skip
"""Why the model stopped.

================  =======================================================================================================
``stop``          the answer is complete
``tool_calls``    the model waits for the results of its calls
``length``        the answer was cut at the token limit; its last call may be incomplete
``error``         the provider reported an error, or the stream was cut
``refused``       the model declined to answer
``filtered``      the provider's safety filter blocked the request, or stopped the answer
``paused``        the provider paused a long turn: send the conversation again as it is, and it goes on
``needs_action``  the provider waits for something that is no tool call: an approval, or an action of one of its own tools
                  that the client must take. ``metadata[provider]["needs_action"]`` has the items, also next to calls
================  =======================================================================================================

The first that holds is reported: ``error``, ``length``, ``filtered``, ``refused``, ``tool_calls``, ``needs_action``,
``paused``, ``stop``. The provider's own word is in the metadata.
"""


@dataclass(frozen=True, slots=True)
class QueryOptions:
    """What is sent with the prompt. ``messages`` come after it; ``extra`` goes into the request as it is.

    These ask for care or thrift, and a provider that has none of it ignores them (docs/adapters.md has the table):

    ``strict``          tool calls follow their schemas
    ``parallel_calls``  whether the model may make several calls at once
    ``reasoning``       how much the model thinks: an effort, or a number of tokens
    ``cache_after``     what is written to the prompt cache: the prompt up to the end of the tools, the system text, or the
                        last message

    What changes the meaning of an answer (``tool_choice``, ``output``) is refused where it cannot be had.

    >>> QueryOptions(tool_choice="none", reasoning="low").tools
    ()
    """

    tools: Sequence[AnyDefinition] = ()
    tool_choice: ToolChoice = "auto"
    messages: Sequence[ChatMessage] = ()
    system: str | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    strict: bool | None = None
    timeout: float | None = None
    extra: Mapping[str, object] = field(default_factory=dict)
    parallel_calls: bool | None = None
    reasoning: ReasoningEffort | int | None = None
    cache_after: Sequence[CachePoint] = ()
    output: OutputSchema | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts, with one meaning for all providers; None where a provider reports none.

    ``input_tokens`` includes what was read from a cache (``cached_input_tokens``) and written to one
    (``cache_write_tokens``). ``output_tokens`` includes the reasoning. What else a provider counts is in the metadata of the
    result.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_input_tokens: int | None = None
    reasoning_tokens: int | None = None
    cache_write_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Reasoning:
    """What a model thought before it answered, as far as the provider shows it: all of it, a summary, or nothing.

    What the provider needs back in the next request (signatures, encrypted content) is in the metadata of the answer, and is
    sent back by itself.
    """

    text: str = ""
    is_hidden: bool = False


@dataclass(frozen=True, slots=True)
class QueryResult:
    """A model's answer. ``metadata`` has what only the provider knows: its own finish reason, signatures, an error.

    ``raw`` is the response of the provider's SDK, or the list of its events for a stream, if a driver made the request. It
    is not stored as JSON.

    >>> QueryResult("hello").finish_reason
    'stop'
    """

    content: str
    tool_calls: Sequence[ToolCall] = ()
    finish_reason: FinishReason = "stop"
    usage: Usage = field(default_factory=Usage)
    metadata: Mapping[str, object] = field(default_factory=dict)
    reasoning: Sequence[Reasoning] = ()
    raw: object = field(default=None, repr=False, compare=False, metadata={"is_stored": False})

    def message(self) -> ChatMessage:
        """The answer as a message for the next request, with everything the provider needs back."""
        if self.tool_calls:
            return AssistantToolCallMessage(self.content, self.tool_calls, self.metadata)
        return TextMessage("assistant", self.content, self.metadata)
