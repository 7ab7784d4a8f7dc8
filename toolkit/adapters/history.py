"""Conversations as providers accept them: repaired, and encoded piece by piece while a run makes them longer.

Every provider wants the results of a turn right after it, one for each call. Histories lose that when a run is interrupted,
when old messages are dropped to save tokens, or when two histories are joined. Some servers send the same call ids in every
turn. Providers also refuse messages without content, and some a conversation that the assistant starts.

Messages are immutable, so a run repairs and encodes each of them once. It recognizes earlier messages by identity, and reads
an edited conversation again from its beginning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import is_
from typing import Any, Final, Literal, TypeAlias, TypeVar

from toolkit.adapters.lossless import has_native_parts
from toolkit.adapters.values import mend
from toolkit.wire.call import ToolCall, ToolResult
from toolkit.wire.content import ContentBlock
from toolkit.wire.message import (
    AssistantToolCallMessage,
    ChatMessage,
    TextMessage,
    ToolResultMessage,
)

_Raw = TypeVar("_Raw")
_Made = TypeVar("_Made")
ProblemKind: TypeAlias = Literal[
    "call without result", "result without call", "duplicate result", "result out of place", "result with another name",
    "duplicate call id", "call without id", "no tool calls", "blank text", "assistant first",
]  # fmt: skip
LOST_RESULT: Final = "TOOL_CANCELLED: the result of this call was lost; call the tool again if it is still needed"
NO_FIRST_MESSAGE: Final = "[The conversation starts with a message of the assistant.]"


# -- repairing -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HistoryProblem:
    """What is wrong, and where: the index of the message in the list, and the id of the call, if it is about one."""

    kind: ProblemKind
    index: int
    tool_call_id: str = ""

    def __str__(self) -> str:
        call = f" ({self.tool_call_id!r})" if self.tool_call_id else ""
        return f"message {self.index}: {self.kind}{call}"


@dataclass(frozen=True, slots=True)
class RepairedHistory:
    """A conversation that every provider accepts, and what was changed to get it."""

    messages: list[ChatMessage]
    changes: list[HistoryProblem]


def validate_history(messages: Sequence[ChatMessage]) -> list[HistoryProblem]:
    """What some provider would refuse. Calls of the last turn may still have no results.

    >>> from toolkit import ToolResult, ToolResultMessage
    >>> [str(problem) for problem in validate_history([ToolResultMessage(ToolResult("1", "add", "text", "3"))])]
    ["message 0: result without call ('1')"]
    """
    return repair_history(messages).changes


def repair_history(messages: Sequence[ChatMessage]) -> RepairedHistory:
    """Moves results to their calls, adds an error for each lost one, and drops results without a call.

    Calls with the same id get distinct ones, even across turns, and their results with them; what is added to a conversation
    later changes no id before it, so prompt caches stay valid. Blank texts are dropped. If the assistant speaks first, a line
    of the user is put before it. No other text of users and models is dropped or moved.

    >>> from toolkit import TextMessage, ToolCall, ToolResult, ToolResultMessage
    >>> from toolkit.wire import AssistantToolCallMessage
    >>> question = TextMessage("user", "What is 1 + 2, and 3 + 4?")
    >>> calls = AssistantToolCallMessage("", [ToolCall("1", "add", {"a": 1}), ToolCall("1", "add", {"a": 3})])
    >>> results = [ToolResultMessage(ToolResult("1", "add", "text", text)) for text in ("3", "7")]
    >>> repaired = repair_history([question, calls, *results])
    >>> [message.result.tool_call_id for message in repaired.messages[2:]]
    ['1', '1_1']
    """
    return GrowingHistory().repair(messages)


class GrowingHistory:
    """Repairs a conversation that grows. Messages that were repaired before are recognized by identity and not read again.

    >>> from toolkit import TextMessage
    >>> history = GrowingHistory()
    >>> before = history.repair([TextMessage("user", "hi")]).messages
    >>> after = history.repair([*before, TextMessage("assistant", "hello"), TextMessage("user", " ")])
    >>> [str(problem) for problem in after.changes]
    ['message 2: blank text']
    """

    def __init__(self) -> None:
        self._known: list[ChatMessage] = []
        self._ids = _Ids()
        self._has_start = False

    def repair(self, messages: Sequence[ChatMessage]) -> RepairedHistory:
        """Repairs what was added since the last call; the whole conversation if anything before that has changed."""
        if not starts_with(messages, self._known):
            self._known, self._ids, self._has_start = [], _Ids(), False
        changes: list[HistoryProblem] = []
        placed = list(_repair_contents(messages, len(self._known), changes))
        if not self._has_start:
            placed = _start_with_user(placed, changes)
        turns = _Turns(placed, self._ids, changes)
        added = list(turns.with_results())
        repaired = [*self._known, *added]
        # A turn whose calls wait for results is read again with them.
        waiting = next((at for at, message in enumerate(added) if message is turns.waiting), len(added))
        if turns.waiting is not None:
            self._ids.taken.difference_update(call.id for call in turns.waiting.tool_calls)
        self._known += added[:waiting]
        self._has_start = self._has_start or any(map(_is_start, added[:waiting]))
        return RepairedHistory(repaired, sorted(changes, key=lambda problem: problem.index))


def starts_with(messages: Sequence[ChatMessage], known: Sequence[ChatMessage]) -> bool:
    """Whether the first messages are the known ones, as objects: equal messages may be encoded differently (1 and True)."""
    return len(messages) >= len(known) and all(map(is_, messages, known))


# -- contents ------------------------------------------------------------------------------------------------------------

_Placed: TypeAlias = tuple[int, ChatMessage]
"""A message and the index it was given at."""


def _repair_contents(messages: Sequence[ChatMessage], begin: int, changes: list[HistoryProblem]) -> Iterator[_Placed]:
    """The messages from ``begin`` on, without blank texts and empty lists of calls."""
    for index, message in enumerate(messages[begin:], begin):
        if isinstance(message, ToolResultMessage):
            yield index, message
            continue
        if isinstance(message, AssistantToolCallMessage) and not message.tool_calls:
            changes.append(HistoryProblem("no tool calls", index))
            message = TextMessage("assistant", message.content, message.metadata)
        may_be_empty = isinstance(message, AssistantToolCallMessage) or _has_native_content(message.metadata)
        content = _without_blank_texts(message.content)
        if content != message.content or not (content or may_be_empty):
            changes.append(HistoryProblem("blank text", index))
            message = replace(message, content=content)
        if content or may_be_empty:
            yield index, message


def _without_blank_texts(content: str | Sequence[ContentBlock]) -> Any:
    """The content as it is, or what is left of it without blank texts."""
    if isinstance(content, str):
        return content if content.strip() else ""
    left = [block for block in content if block.text is None or block.text.strip()]
    return content if len(left) == len(content) else left


def _has_native_content(metadata: Mapping[str, object]) -> bool:
    """Whether a message has content that only its provider knows, such as the call of a tool that the server ran."""
    kept = [found for found in metadata.values() if isinstance(found, dict)]
    return any(has_native_parts(one) or any("native" in entry for entry in _layout(one)) for one in kept)


def _native_call_ids(metadata: Mapping[str, object]) -> Iterator[str]:
    """The ids of calls that only their provider knows and the client answers."""
    for kept in metadata.values():
        for entry in _layout(kept) if isinstance(kept, dict) else ():
            native = entry.get("native")
            if isinstance(native, dict) and isinstance(native.get("call_id"), str):
                yield native["call_id"]


def _layout(kept: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The order of what is in a message, which several adapters keep in its metadata."""
    layout = kept.get("layout")
    return [entry for entry in layout if isinstance(entry, dict)] if isinstance(layout, list) else []


def _start_with_user(placed: list[_Placed], changes: list[HistoryProblem]) -> list[_Placed]:
    """The messages, with a line of the user before the assistant's first one if nothing of the user is."""
    at = next((at for at, (_, message) in enumerate(placed) if _is_start(message)), None)
    if at is None or getattr(placed[at][1], "role", "") == "user":
        return placed
    index = placed[at][0]
    changes.append(HistoryProblem("assistant first", index))
    return [*placed[:at], (index, TextMessage("user", NO_FIRST_MESSAGE)), *placed[at:]]


def _is_start(message: ChatMessage) -> bool:
    """Whether this is the user's or the assistant's, of whom one speaks first."""
    return isinstance(message, AssistantToolCallMessage) or (
        isinstance(message, TextMessage) and message.role != "system"
    )


# -- calls and their results ---------------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class _Call:
    """A call with the id it gets, the id it came with, and its result once that is found."""

    index: int
    """The index of its message."""
    call: ToolCall
    given_id: str
    result: ToolResultMessage | None = None


@dataclass(slots=True)
class _Ids:
    """The ids of calls so far: those that are taken, how many were made from each, and those of native calls."""

    taken: set[str] = field(default_factory=set)
    made: Counter[str] = field(default_factory=Counter)
    native: set[str] = field(default_factory=set)


class _Turns:
    """Assigns results to calls, each to the nearest call before it that waits for one."""

    def __init__(self, placed: Sequence[_Placed], ids: _Ids, changes: list[HistoryProblem]) -> None:
        self._changes = changes
        self._ids = ids
        ids.native.update(id for _, message in placed for id in _native_call_ids(message.metadata))
        self._messages = [(index, message) for index, message in placed if not self._is_result_of_call(message)]
        self._last_turn = max(
            (index for index, message in placed if not isinstance(message, ToolResultMessage)), default=-1
        )
        self._calls: dict[int, list[_Call]] = {}
        self._waiting: dict[str, list[_Call]] = {}
        """Calls without a result so far, by the id they came with."""
        self.waiting: AssistantToolCallMessage | None = None
        """The last turn, if none of its calls has a result."""
        self._assign_results(placed)

    def with_results(self) -> Iterator[ChatMessage]:
        """The messages, each turn with one result for each of its calls, in the order of the calls."""
        for index, message in self._messages:
            if not isinstance(message, AssistantToolCallMessage):
                yield message
                continue
            calls = self._calls[index]
            turn = _with_calls(message, calls)
            yield turn
            if index == self._last_turn and not any(call.result for call in calls):
                self.waiting = turn
                continue
            for call in calls:
                if call.result is not None:
                    yield call.result
                else:
                    self._note("call without result", index, call.call.id)
                    yield ToolResultMessage(ToolResult(call.call.id, call.call.name, "error", LOST_RESULT))

    def _assign_results(self, placed: Sequence[_Placed]) -> None:
        early: list[tuple[int, ToolResultMessage]] = []
        current = -1
        for index, message in placed:
            if not isinstance(message, ToolResultMessage):
                current = index
                if isinstance(message, AssistantToolCallMessage):
                    made = [_Call(index, self._with_distinct_id(index, call), call.id) for call in message.tool_calls]
                    self._calls[index] = made
                    for one in made:
                        self._waiting.setdefault(one.given_id, []).append(one)
            elif not self._is_result_of_call(message):
                continue
            elif waiting := self._waiting.get(message.result.tool_call_id):
                nearest = [call for call in waiting if call.index == waiting[-1].index]
                self._assign(index, message, nearest, current)
            else:
                early.append((index, message))
        for index, message in early:
            id = message.result.tool_call_id
            if waiting := self._waiting.get(id):
                self._assign(index, message, waiting, -1)
            else:
                self._note("duplicate result" if id in self._waiting else "result without call", index, id)

    def _is_result_of_call(self, message: ChatMessage) -> bool:
        """Whether this is a result, and not that of a call that only the provider knows, which stays where it is."""
        return isinstance(message, ToolResultMessage) and message.result.tool_call_id not in self._ids.native

    def _assign(self, index: int, message: ToolResultMessage, possible: Sequence[_Call], current: int) -> None:
        """Assigns a result to one of the calls it may belong to; ``current`` is the index of the turn it follows."""
        result = message.result
        owner = next((call for call in possible if call.call.name == result.name), possible[0])
        self._waiting[result.tool_call_id].remove(owner)
        if owner.index != current:
            self._note("result out of place", index, result.tool_call_id)
        if result.name not in ("", owner.call.name):
            self._note("result with another name", index, result.tool_call_id)
        owner.result = message
        # A copy would look for the ref of the output, and so store it.
        if (result.tool_call_id, result.name) != (owner.call.id, owner.call.name):
            mended = replace(result, tool_call_id=owner.call.id, name=owner.call.name)
            owner.result = replace(message, result=mended)

    def _with_distinct_id(self, index: int, call: ToolCall) -> ToolCall:
        id = call.id
        if not id or id in self._ids.taken:
            self._note("duplicate call id" if id else "call without id", index, id)
        while not id or id in self._ids.taken:
            self._ids.made[call.id] += 1
            id = f"{call.id or 'call'}_{self._ids.made[call.id]}"
        self._ids.taken.add(id)
        return call if id == call.id else replace(call, id=id)

    def _note(self, kind: ProblemKind, index: int, id: str) -> None:
        self._changes.append(HistoryProblem(kind, index, id))


def _with_calls(message: AssistantToolCallMessage, calls: Sequence[_Call]) -> AssistantToolCallMessage:
    """The message with the calls under their new ids, also where its metadata keeps the order of calls and other content."""
    if all(call.call.id == call.given_id for call in calls):
        return message
    metadata = {name: _with_new_ids(kept, calls) for name, kept in message.metadata.items()}
    return replace(message, tool_calls=[call.call for call in calls], metadata=metadata)


def _with_new_ids(kept: Any, calls: Sequence[_Call]) -> Any:
    if not isinstance(kept, dict) or not _layout(kept):
        return kept
    left = list(calls)
    layout: list[Mapping[str, Any]] = []
    for entry in _layout(kept):
        named = next((call for call in left if call.given_id == entry.get("call")), None)
        if named is not None:
            left.remove(named)
        layout.append(entry if named is None else {**entry, "call": named.call.id})
    return {**kept, "layout": layout}


# -- encoding the requests of a run, each of which repeats the messages of the one before --------------------------------


class RunMessages(list[ChatMessage]):
    """The messages of a run's next request. ``encoded`` belongs to the run: what drivers encoded for earlier requests.

    Copies are plain lists.
    """

    def __init__(self, messages: Iterable[ChatMessage], encoded: dict[object, EncodedHistory]) -> None:
        super().__init__(messages)
        self.encoded: Final = encoded

    def __reduce__(self) -> tuple[type[list[ChatMessage]], tuple[list[ChatMessage]]]:
        return list, (list(self),)


def encode_history(
    prompt: str | Sequence[ChatMessage],
    messages: Sequence[ChatMessage],
    encode: Callable[..., list[_Made]],
    *settings: Hashable,
) -> list[_Made]:
    """``encode(messages, *settings)`` without lone surrogates. For the ``prompt`` of a run, encodes only new messages."""

    def encode_some(some: Sequence[ChatMessage]) -> list[_Made]:
        made: list[_Made] = mend(encode(some, *settings))
        return made

    if not isinstance(prompt, RunMessages):
        return encode_some(messages)
    encoded = prompt.encoded.setdefault((encode, *settings), EncodedHistory())
    return encoded.encode(messages, encode_some)


class EncodedHistory:
    """The encoded form of a repaired conversation up to its last turn, which is encoded again with what follows it."""

    def __init__(self) -> None:
        # One tuple that is only replaced: a driver that asks two models at once encodes in two threads.
        self._made: tuple[list[ChatMessage], list[Any]] = [], []

    def encode(
        self, messages: Sequence[ChatMessage], encode: Callable[[Sequence[ChatMessage]], list[_Made]]
    ) -> list[_Made]:
        # Drivers put a new message for ``QueryOptions.system`` in front of each request.
        start = next((at for at, one in enumerate(messages) if getattr(one, "role", "") != "system"), len(messages))
        body = messages[start:]
        known, encoded = self._made
        # A hook may have removed the turn that followed.
        if not starts_with(body, known) or not _starts_turn(body, len(known)):
            known, encoded = [], []
        end = _find_last_turn(body, len(known))
        if end > len(known):
            encoded = [*encoded, *encode(body[len(known) : end])]
            self._made = [*body[:end]], encoded
        return [*encode(messages[:start]), *encoded, *encode(body[end:])]


def _find_last_turn(messages: Sequence[ChatMessage], begin: int) -> int:
    """Where the last turn of the assistant starts; ``begin`` if there is none after it."""
    return next((at for at in range(len(messages) - 1, begin, -1) if _starts_turn(messages, at)), begin)


def _starts_turn(messages: Sequence[ChatMessage], at: int) -> bool:
    """Whether a turn of the assistant starts here. In a repaired conversation, no adapter joins or moves anything across that
    place.
    """
    if not 0 < at < len(messages):
        return False
    message, before = messages[at], messages[at - 1]
    is_answer = isinstance(message, TextMessage) and message.role == "assistant" and bool(message.content)
    follows_user = isinstance(before, ToolResultMessage) or getattr(before, "role", "") == "user"
    return follows_user and (is_answer or isinstance(message, AssistantToolCallMessage))


# -- walking through a conversation --------------------------------------------------------------------------------------


def decode_with_call_names(
    messages: Iterable[_Raw], decode: Callable[[_Raw, Mapping[str, str]], ChatMessage]
) -> list[ChatMessage]:
    """Decodes messages in their order. ``decode`` also gets the tool name of each call so far, by id, because many
    providers send a result with the id of its call only.
    """
    names: dict[str, str] = {}
    decoded: list[ChatMessage] = []
    for raw in messages:
        message = decode(raw, names)
        if isinstance(message, AssistantToolCallMessage):
            names.update((call.id, call.name) for call in message.tool_calls)
        decoded.append(message)
    return decoded


def group_results(messages: Iterable[ChatMessage]) -> Iterator[tuple[ChatMessage | None, list[ToolResultMessage]]]:
    """Each message that is not a result, with the results right after it. Results at the front come with None."""
    current: ChatMessage | None = None
    results: list[ToolResultMessage] = []
    for message in messages:
        if isinstance(message, ToolResultMessage):
            results.append(message)
            continue
        if current is not None or results:
            yield current, results
        current, results = message, []
    if current is not None or results:
        yield current, results
