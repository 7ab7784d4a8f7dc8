"""The laws of adapters: what they write survives the round trip, what they read has the right types, and a wrong type in an
answer is an error, never an exception.
"""

from __future__ import annotations

import base64
import copy
import dataclasses
import json
import random
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from toolkit.wire import (
    AnswerEvent,
    ArgumentsDelta,
    AssistantToolCallMessage,
    CallCompleted,
    CallStarted,
    ChatMessage,
    ContentBlock,
    JsonObject,
    NamedTool,
    QueryResult,
    ReasoningDelta,
    TextDelta,
    TextMessage,
    ToolCall,
    ToolDefinition,
    ToolResult,
    ToolResultMessage,
    UsageUpdate,
    alias,
    from_json,
    to_json,
)

if TYPE_CHECKING:
    from toolkit.wire import ToolChoice


# ----------------------------------------------------------------------------------------------------------------------
# What an adapter is: the names that every package of ``toolkit.adapters`` has.


class StreamAccumulator(Protocol):
    """Takes the events of a stream in their order; ``result`` is the answer so far."""

    def feed(self, event: object, /) -> str: ...

    def feed_events(self, event: object, /) -> Sequence[AnswerEvent]: ...

    def result(self) -> QueryResult: ...


class Adapter(Protocol):
    """Translates between the neutral format and that of a provider. A module with these functions is one."""

    @property
    def Accumulator(self) -> Callable[[], StreamAccumulator]: ...

    def encode_messages(self, messages: Any, /) -> Any: ...

    def decode_messages(self, messages: Any, /) -> list[ChatMessage]: ...

    def encode_tools(self, definitions: Any, /) -> Any: ...

    def decode_tools(self, tools: Any, /) -> Sequence[Any]: ...

    def encode_choice(self, choice: Any, /) -> Any: ...

    def decode_choice(self, choice: Any, /) -> Any: ...

    def decode_response(self, response: Any, /) -> QueryResult: ...


def read_stream(adapter: Adapter, events: Sequence[object]) -> QueryResult:
    """The answer that a whole stream gives."""
    answer = adapter.Accumulator()
    for event in events:
        answer.feed(event)
    return answer.result()


def essence(result: QueryResult) -> Any:
    """What must never change unnoticed: the text, and the calls with their arguments."""
    return result.content, [(call.name, call.arguments, call.unread_text) for call in result.tool_calls]


_PLAIN_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,40}")


def check_messages_are_json(adapter: Adapter, messages: Sequence[ChatMessage]) -> None:
    """What is written is JSON, the same every time, and the neutral messages are not changed by it."""
    before = copy.deepcopy(list(messages))
    written = json.dumps(adapter.encode_messages(messages))
    assert written == json.dumps(adapter.encode_messages(messages)), "the same messages are written in two ways"
    assert list(messages) == before, "encode_messages changed the messages it was given"


def check_messages_round_trip(adapter: Adapter, messages: Sequence[ChatMessage]) -> None:
    """What was written, read and written again is the same: reading loses nothing that the provider was sent."""
    written = _as_sent(adapter.encode_messages(messages))
    back = adapter.decode_messages(copy.deepcopy(written))
    assert _as_sent(adapter.encode_messages(back)) == written, "reading and writing again changes the messages"


def check_calls_survive(adapter: Adapter, messages: Sequence[ChatMessage], *, keeps_ids: bool = True) -> None:
    """Calls come back with their names, arguments and ids, and each result belongs to the call that it belonged to.

    ``keeps_ids=False`` is for providers that have no ids. Those that no provider refuses must come back in all others.
    """
    back = adapter.decode_messages(_as_sent(adapter.encode_messages(messages)))
    sent, read = _calls(messages), _calls(back)
    assert len(sent) == len(read), f"{len(sent)} calls were written, and {len(read)} came back"
    for before, after in zip(sent, read, strict=True):
        assert after.name in (before.name, alias(before.name)), (
            f"the tool {before.name!r} came back as {after.name!r}, which no toolkit resolves; use toolkit.wire.alias"
        )
        if before.unread_text is None:
            assert after.arguments == before.arguments, f"the arguments of {before.name!r} changed"
        if keeps_ids and _PLAIN_ID.fullmatch(before.id):
            assert after.id == before.id, f"the id {before.id!r} came back as {after.id!r}"
    assert len({call.id for call in read}) == len(read), "two calls came back with the same id"
    expected, found = _results_by_call(messages, sent), _results_by_call(back, read)
    assert found.keys() == expected.keys(), "a result belongs to another call than before"
    changed = [place for place, text in expected.items() if text is not None and found[place] != text]
    assert not changed, f"the text of the result of {sent[changed[0]].name!r} changed, or belongs to another call"


def check_tool_survives(adapter: Adapter, tool: ToolDefinition, *, keeps_schemas: bool = True) -> None:
    """A definition comes back with a name that a toolkit resolves, its description and its schema."""
    written = _as_sent(adapter.encode_tools([tool]))
    back = adapter.decode_tools(copy.deepcopy(written))
    assert len(back) == 1 and isinstance(back[0], ToolDefinition), f"one tool was written, and {back!r} came back"
    assert back[0].name in (tool.name, alias(tool.name)), (
        f"the tool {tool.name!r} is sent as {back[0].name!r}, which no toolkit resolves; use toolkit.wire.alias"
    )
    assert back[0].description == tool.description, "the description changed"
    # Strict mode has rules of its own for schemas.
    if keeps_schemas and tool.parameters and not tool.strict:
        assert back[0].parameters == tool.parameters, "the schema changed"
    assert _as_sent(adapter.encode_tools(back)) == written, "reading and writing again changes the tool"


def check_choice_survives(adapter: Adapter, choice: ToolChoice) -> None:
    """A choice comes back as it was; one that the provider cannot express is a ``ValueError`` that says what to do."""
    try:
        written = adapter.encode_choice(choice)
    except ValueError as error:
        assert str(error), "the error does not say what to do instead"
        return
    if written is None:
        assert choice in ("auto", "none"), f"{choice!r} is left out of the request without an error"
        return
    back: Any = adapter.decode_choice(_as_sent(written))
    name = getattr(choice, "name", None)
    if name is not None:
        assert getattr(back, "name", None) in (name, alias(name)), f"{choice!r} came back as {back!r}"
    else:
        assert back == choice, f"{choice!r} came back as {back!r}"


def _as_sent(written: object) -> Any:
    return json.loads(json.dumps(written))


def _calls(messages: Sequence[ChatMessage]) -> list[ToolCall]:
    return [call for one in messages if isinstance(one, AssistantToolCallMessage) for call in one.tool_calls]


def _results_by_call(messages: Sequence[ChatMessage], calls: Sequence[ToolCall]) -> dict[int, object]:
    """The results by the places of their calls: the value of a text, None for others, whose form depends on the provider."""
    places = {call.id: place for place, call in enumerate(calls)}
    results = [one.result for one in messages if isinstance(one, ToolResultMessage)]
    return {places.get(one.tool_call_id, -1): one.value if one.kind == "text" else None for one in results}


# ----------------------------------------------------------------------------------------------------------------------
# Laws of what an adapter reads: whole answers and streams are results of the right types, and say the same.


def check_result(adapter: Adapter, result: QueryResult) -> None:
    """A result is what its types say, can be stored as JSON, and can be sent back to the provider."""
    assert isinstance(result, QueryResult), f"{type(result).__name__} is not a QueryResult"
    assert isinstance(result.content, str), "the content is not a text"
    for call in result.tool_calls:
        assert type(call.id) is str and call.id, "a call has no id"
        assert type(call.name) is str, "the name of a call is not a text"
        assert isinstance(call.arguments, dict), "the arguments of a call are not an object"
        assert call.raw_arguments is None or type(call.raw_arguments) is str, "the argument text is not a text"
    counts = dataclasses.astuple(result.usage)
    assert all(count is None or type(count) is int for count in counts), f"token counts are integers, not {counts}"
    json.dumps(to_json(result))
    json.dumps(adapter.encode_messages([TextMessage("user", "please"), result.message()]))


def check_answer(adapter: Adapter, answer: object) -> None:
    """A whole answer is read as a result that can be stored and restored."""
    result = adapter.decode_response(answer)
    check_result(adapter, result)
    assert from_json(json.loads(json.dumps(to_json(result)))) == result, "a result stored as JSON comes back changed"


def check_stream_equals_answer(adapter: Adapter, events: Sequence[object], answer: object) -> None:
    """A stream gives the text, the calls and the finish reason that the whole answer gives."""
    streamed, whole = read_stream(adapter, events), adapter.decode_response(answer)
    assert streamed.content == whole.content, "the text of the stream is not that of the whole answer"
    calls = [[(call.name, call.arguments) for call in result.tool_calls] for result in (streamed, whole)]
    assert calls[0] == calls[1], "the calls of the stream are not those of the whole answer"
    assert streamed.finish_reason == whole.finish_reason


def check_events_add_up(adapter: Adapter, stream: Sequence[object]) -> QueryResult:
    """The events of a stream are its result, piece by piece: text, reasoning, usage and calls. Returns the result."""
    answer = adapter.Accumulator()
    events = [event for raw in stream for event in answer.feed_events(raw)]
    result = answer.result()
    check_result(adapter, result)
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == result.content
    thought = "".join(event.text for event in events if isinstance(event, ReasoningDelta))
    assert thought == "".join(one.text for one in result.reasoning)
    usages = [event.usage for event in events if isinstance(event, UsageUpdate)]
    assert not usages or usages[-1] == result.usage
    if result.finish_reason != "error":
        completed = [event for event in events if isinstance(event, CallCompleted)]
        assert len(completed) == len(result.tool_calls), "not every call was reported as complete once"
        for call in result.tool_calls:
            _check_call(_events_of_call(events, call.id), call)
    return result


def check_stream_can_be_cut(adapter: Adapter, stream: Sequence[object], step: int = 1) -> None:
    """Wherever a stream is cut, it gives a result; a call is complete only if it has started, and starts once."""
    for at in range(0, len(stream), step):
        answer = adapter.Accumulator()
        events = [event for raw in stream[:at] for event in answer.feed_events(raw)]
        result = answer.result()
        check_result(adapter, result)
        completed = [event.call.id for event in events if isinstance(event, CallCompleted)]
        started = [event.id for event in events if isinstance(event, CallStarted)]
        assert len(set(started)) == len(started), f"cut after {at} events, a call starts twice"
        assert set(completed) <= set(started) <= {call.id for call in result.tool_calls}, f"cut after {at} events"


def check_empty_stream_is_an_error(adapter: Adapter) -> None:
    """A stream that broke before its first event does not look like an empty answer."""
    assert adapter.Accumulator().result().finish_reason == "error", "an empty stream looks like an empty answer"


def _events_of_call(events: Sequence[AnswerEvent], id: str) -> list[AnswerEvent]:
    return [
        event
        for event in events
        if (isinstance(event, CallStarted | ArgumentsDelta) and event.id == id)
        or (isinstance(event, CallCompleted) and event.call.id == id)
    ]


def _check_call(events: list[AnswerEvent], call: ToolCall) -> None:
    """A call starts once, its pieces are its arguments, and it completes once."""
    first, *pieces, last = events
    assert first == CallStarted(call.id, call.name), f"the call {call.id!r} does not start with CallStarted"
    assert isinstance(last, CallCompleted), f"the call {call.id!r} does not end with CallCompleted"
    assert (last.call.id, last.call.name) == (call.id, call.name)
    assert (last.call.arguments, last.call.raw_arguments) == (call.arguments, call.raw_arguments)
    texts = [event.text for event in pieces if isinstance(event, ArgumentsDelta)]
    assert len(texts) == len(pieces), f"the call {call.id!r} starts or completes twice"
    text, given = "".join(texts), call.arguments
    if call.raw_arguments is not None:
        assert text == call.raw_arguments
    elif set(given) == {"input"} and not text.startswith("{"):
        assert text == given["input"], "the pieces of a free text are not the text"
    else:
        read: Any = json.loads(text)
        assert read == given, "the pieces are not the arguments"


# ----------------------------------------------------------------------------------------------------------------------
# Conversations, tools and choices written from scratch: every shape that the neutral format has.

PNG: Final = base64.b64encode(b"\x89PNG\xfb\xff\xfe").decode()
PDF: Final = base64.b64encode(b"%PDF-1.7 \xfb\xff\xfe").decode()
WAV: Final = base64.b64encode(b"RIFF\xfb\xff\xfe").decode()
TEXT: Final = base64.b64encode("naïve notes".encode()).decode()

BLOCKS: Final[dict[str, ContentBlock]] = {
    "image": ContentBlock("image", "image/png", data=PNG),
    "image with filename": ContentBlock("image", "image/png", data=PNG, filename="shot.png"),
    "image with detail": ContentBlock("image", "image/jpeg", data=PNG, detail="low"),
    "image without media type": ContentBlock("image", data=PNG),
    "image by URL": ContentBlock("image", url="https://example.com/a.png"),
    "image by file id": ContentBlock("image", file_id="file-1"),
    "image in S3": ContentBlock("image", "image/png", url="s3://bucket/a.png"),
    "SVG": ContentBlock("image", "image/svg+xml", data=base64.b64encode(b"<svg/>").decode()),
    "SVG by URL": ContentBlock("image", "image/svg+xml", url="https://example.com/a.svg"),
    "JPEG, as people write it": ContentBlock("image", "image/JPG; q=1", data=PNG),
    "TIFF": ContentBlock("image", "image/tiff", data=PNG),
    "PDF": ContentBlock("document", "application/pdf", data=PDF),
    "PDF with filename": ContentBlock("document", "application/pdf", data=PDF, filename="Report (final), v2.pdf"),
    "PDF by URL": ContentBlock("document", "application/pdf", url="https://example.com/a.pdf"),
    "PDF by file id": ContentBlock("document", "application/pdf", file_id="file-1"),
    "text document": ContentBlock("document", "text/plain", data=TEXT, filename="notes.txt"),
    "JSON document": ContentBlock("document", "application/json", data=base64.b64encode(b'{"x":"as JSON"}').decode()),
    "spreadsheet": ContentBlock("document", "application/vnd.ms-excel", data=PDF, filename="a.xls"),
    "document without media type": ContentBlock("document", data=PDF),
    "file of unknown type": ContentBlock("document", "application/octet-stream", data=TEXT),
    "archive": ContentBlock("document", "application/zip", data=PDF, filename="a.zip"),
    "video": ContentBlock("document", "video/mp4", data=PNG, filename="a.mp4"),
    "video by URL": ContentBlock("document", "video/mp4", url="https://example.com/a.mp4"),
    "video as image": ContentBlock("image", "video/mp4", data=PNG),
    "audio": ContentBlock("audio", "audio/wav", data=WAV),
    "audio, MP3": ContentBlock("audio", "audio/mpeg", data=WAV, filename="a.mp3"),
    "audio, FLAC": ContentBlock("audio", "audio/flac", data=WAV),
    "audio, unknown": ContentBlock("audio", "audio/x-unknown", data=WAV),
    "audio by URL": ContentBlock("audio", "audio/wav", url="https://example.com/a.wav"),
}  # fmt: skip
"""Media of every kind, and from every place."""

QUESTION: Final = TextMessage("user", "please")
_CALL: Final = ToolCall("call_1", "f", {"a": 1})
TURN: Final = AssistantToolCallMessage("", [_CALL])


def result(kind: Any, value: Any, id: str = "call_1") -> ToolResultMessage:
    return ToolResultMessage(ToolResult(id, "f", kind, value))


def in_result(*blocks: ContentBlock) -> list[ChatMessage]:
    """A conversation in which a tool returned these blocks."""
    return [QUESTION, TURN, result("multimodal", blocks)]


def _called(call: ToolCall, *results: ToolResultMessage) -> list[ChatMessage]:
    return [QUESTION, AssistantToolCallMessage("", [call]), *results]


def _answer(id: str, name: str = "f", text: str = "7") -> ToolResultMessage:
    return ToolResultMessage(ToolResult(id, name, "text", text))


_LEAD: Final = ContentBlock("text", text="here it is")
_LONG: Final = "call_" + "0123456789" * 9

CONVERSATIONS: Final[dict[str, list[ChatMessage]]] = {
    "text": [QUESTION],
    "system": [TextMessage("system", "be brief"), QUESTION],
    "system text with an image": [TextMessage("system", [_LEAD, BLOCKS["image"]]), QUESTION],
    "answer": [QUESTION, TextMessage("assistant", "done"), QUESTION],
    "text blocks": [TextMessage("user", [_LEAD, _LEAD]), TextMessage("assistant", [_LEAD, _LEAD])],
    "call": [QUESTION, TURN],
    "call after text": [QUESTION, AssistantToolCallMessage("I look.", [_CALL]), result("text", "7")],
    "parallel calls": [
        QUESTION,
        AssistantToolCallMessage("", [_CALL, ToolCall("call_2", "g", {})]),
        _answer("call_1"),
        _answer("call_2", "g", "8"),
    ],
    "call with broken arguments": _called(ToolCall("call_1", "f", {}, None, '{"a": '), result("error", "INVALID: no")),
    "call with an odd name": _called(ToolCall("call_1", "a.b c", {}), _answer("call_1", "a.b c")),
    "call with a long id": _called(ToolCall(_LONG, "f", {}), _answer(_LONG)),
    "call with an odd id": _called(ToolCall("functions.f:0", "f", {}), _answer("functions.f:0")),
    "result: text": [QUESTION, TURN, result("text", "7")],
    "result: empty text": [QUESTION, TURN, result("text", "")],
    "result: object": [QUESTION, TURN, result("data", {"n": 7})],
    "result: list": [QUESTION, TURN, result("data", [1, None, "ä"])],
    "result: null": [QUESTION, TURN, result("data", None)],
    "result: error": [QUESTION, TURN, result("error", "CODE: no")],
    "result: text blocks": in_result(_LEAD, _LEAD),
    "result: no blocks": in_result(),
    **{f"user: {name}": [TextMessage("user", [_LEAD, block])] for name, block in BLOCKS.items()},
    **{f"assistant: {name}": [QUESTION, TextMessage("assistant", [_LEAD, block])] for name, block in BLOCKS.items()},
    **{f"result: {name}": in_result(_LEAD, block) for name, block in BLOCKS.items()},
    "result: only media": in_result(BLOCKS["image"]),
    "results of parallel calls, with media": [
        QUESTION,
        AssistantToolCallMessage("", [_CALL, ToolCall("call_2", "f", {})]),
        result("multimodal", (BLOCKS["image"], BLOCKS["PDF"])),
        result("multimodal", (BLOCKS["PDF"], BLOCKS["audio"]), "call_2"),
        QUESTION,
    ],
}  # fmt: skip

_SCHEMA: Final = JsonObject({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})
TOOLS: Final[dict[str, ToolDefinition]] = {
    "tool": ToolDefinition("f", "Do it.", _SCHEMA),
    "tool without description": ToolDefinition("f", "", _SCHEMA),
    "tool without parameters": ToolDefinition("f", "Do it.", JsonObject({})),
    "tool with an odd name": ToolDefinition("math.factorial of n", "Do it.", _SCHEMA),
    "tool with a long name": ToolDefinition("f" * 200, "Do it.", _SCHEMA),
    "strict tool": ToolDefinition("f", "Do it.", _SCHEMA, strict=True),
}

CHOICES: Final[dict[str, Any]] = {
    "auto": "auto",
    "none": "none",
    "required": "required",
    "one tool": NamedTool("f"),
    "one tool with an odd name": NamedTool("math.factorial of n"),
}


# ----------------------------------------------------------------------------------------------------------------------
# Laws for what no provider should send: values of a wrong type are results with an error, never exceptions.

_WRONG: Final[tuple[Any, ...]] = (True, 7, 1.5, "x", [], ["x"], [7], [{}], [[]], {}, {"x": 1}, {"x": {}}, None)
_ARGUMENTS: Final = ("arguments", "args", "input", "partial_json")
# Some servers send the arguments of a call as an object, or a text as a list of parts; LangChain also has texts as indexes.
_ALSO_RIGHT: Final[dict[Any, type]] = {**dict.fromkeys(_ARGUMENTS, dict), "content": list, "index": str}
NOT_EVENTS: Final[tuple[Any, ...]] = (7, [], [{}], True, "half of an event")
ODD_HISTORIES: Final[tuple[Any, ...]] = (
    None, 7, "x", [], {}, {"role": 7}, {"role": "user", "content": 7}, {"role": "user", "content": [7, None, "x", {}]},
    {"role": "assistant", "tool_calls": [7, {}, {"function": 7}], "function_call": 7},
    {"role": "assistant", "content": [7, None]}, {"role": "tool", "tool_call_id": 7, "content": [None]},
    {"role": "user", "content": [{"type": "text", "text": 7}]},
    {"role": "user", "content": [{"toolResult": {"content": 7}}, {"type": "tool_result", "content": 7}]},
    {"role": "model", "parts": [7, {"functionCall": 7}]}, {"type": "function_call_output", "output": 7},
    {"type": "ai", "data": {"content": 7, "tool_calls": 7}},
)  # fmt: skip
"""Messages of no provider, or of a different one."""


@dataclass(frozen=True, slots=True)
class MalformedCopy:
    """A copy of an answer, or of the events of a stream, with a value of a wrong type at one place."""

    value: Any
    place: tuple[Any, ...]
    was: object
    wrong: object

    def __str__(self) -> str:
        return f"{self.wrong!r} instead of {self.was!r} at {self.place}"


def check_malformed_streams(adapter: Adapter, stream: Sequence[object], *, count: int = 60, name: str = "") -> None:
    """A value of a wrong type in a stream never raises, and loses nothing without ``finish_reason="error"``.

    ``count`` copies of the stream are read, each with one wrong value. ``name`` chooses other places and values.
    """
    untouched = read_stream(adapter, stream)
    for one in malformed_copies(list(stream), name, count):
        check_malformed_stream(adapter, one, read_stream(adapter, one.value), untouched)


def check_malformed_stream(adapter: Adapter, one: MalformedCopy, result: QueryResult, untouched: QueryResult) -> None:
    """The result of a malformed stream has the right types, and differs from the untouched one only with an error."""
    check_result(adapter, result)
    if essence(result) != essence(untouched) and None not in (one.was, one.wrong):
        assert result.finish_reason == "error", f"{one}: the answer changed without an error"


def check_events_that_are_not_objects(adapter: Adapter, stream: Sequence[object]) -> None:
    """An event that is not an object is an error, and the events after it are still read."""
    untouched = read_stream(adapter, stream)
    for wrong in NOT_EVENTS:
        result = read_stream(adapter, [wrong, *stream])
        assert result.finish_reason == "error", f"the event {wrong!r} is not an error"
        assert essence(result) == essence(untouched), f"the event {wrong!r} changes what comes after it"


def check_malformed_answers(adapter: Adapter, answer: object, *, count: int = 60, name: str = "") -> None:
    """A value of a wrong type in a whole answer never raises."""
    for one in malformed_copies(answer, name, count):
        check_result(adapter, adapter.decode_response(one.value))


def check_malformed_history(adapter: Adapter, message: object) -> None:
    """A message of a wrong shape is read and written without an exception."""
    json.dumps(adapter.encode_messages(adapter.decode_messages([message])))


def malformed_copies(whole: Any, name: str, count: int) -> Iterator[MalformedCopy]:
    """Copies of JSON with a wrong value each; the same ones for the same name."""
    chance = random.Random(zlib.crc32(name.encode()))
    # What is inside arguments may be anything.
    places = [place for place in _places(whole) if not set(place[:-1]) & set(_ARGUMENTS)]
    for _ in range(count if places else 0):
        place = chance.choice(places)
        was = _value_at(whole, place)
        is_right = _ALSO_RIGHT.get(place[-1])
        wrong = chance.choice([one for one in _WRONG if type(one) not in (type(was), is_right)])
        yield MalformedCopy(_put(whole, place, wrong), place, was, wrong)


def _places(value: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all values inside a value."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inside:
        yield (*before, key)
        yield from _places(item, (*before, key))


def _value_at(value: Any, place: tuple[Any, ...]) -> Any:
    for key in place:
        value = value[key]
    return value


def _put(value: Any, place: tuple[Any, ...], wrong: Any) -> Any:
    """A copy of a value with another value at a place."""
    made = copy.deepcopy(value)
    _value_at(made, place[:-1])[place[-1]] = copy.deepcopy(wrong)
    return made
