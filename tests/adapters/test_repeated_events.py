"""Events that come twice, and keys that come in several events: no call appears twice, nothing is overwritten."""

from __future__ import annotations

from typing import Any

import pytest

from tests.adapters.metadata import metadata_of
from tests.adapters.streams import Stream, read_stream
from toolkit.adapters import openai_chat

# -- Anthropic and Bedrock -----------------------------------------------------------------------------------------------


def message(id: str | None = "m1") -> Any:
    return {"type": "message_start", "message": {**({"id": id} if id else {}), "role": "assistant", "content": []}}


def use(index: int, id: str) -> Any:
    return {"type": "content_block_start", "index": index, "content_block": {"type": "tool_use", "id": id, "name": "f", "input": {}}}  # fmt: skip


def piece(index: int, text: str) -> Any:
    return {"type": "content_block_delta", "index": index, "delta": {"type": "input_json_delta", "partial_json": text}}


def text(index: int, words: str) -> Stream:
    return [
        {"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": words}},
        {"type": "content_block_stop", "index": index},
    ]


def stop(index: int) -> Any:
    return {"type": "content_block_stop", "index": index}


END: Stream = [{"type": "message_delta", "delta": {"stop_reason": "tool_use"}}, {"type": "message_stop"}]
WHOLE: Stream = [*text(0, "so"), use(1, "a"), piece(1, '{"x":1}'), stop(1)]
HALF: Stream = [*text(0, "so"), use(1, "a"), piece(1, '{"x"')]

ANTHROPIC: dict[str, Stream] = {
    "once": [message(), *WHOLE],
    "announced twice in a row": [message(), message(), *WHOLE],
    "announced again in the middle of a call": [message(), *HALF, message(), piece(1, ":1}"), stop(1)],
    "announced again, with all that came": [message(), *HALF, message(), *WHOLE],
    "announced again after the call": [message(), *WHOLE, message(), *WHOLE],
    "another answer in place of this one": [
        message("m0"),
        *text(0, "no"),
        use(1, "z"),
        piece(1, "{"),
        message(),
        *WHOLE,
    ],
    "no ids, announced again": [message(None), *HALF, message(None), *WHOLE],
    "the call announced again": [message(), *HALF, use(1, "a"), piece(1, ":1}"), stop(1)],
    "the call announced again when it is whole": [message(), *WHOLE, use(1, "a"), stop(1)],
    "the call again, with its arguments": [message(), *WHOLE, use(1, "a"), piece(1, '{"x":1}'), stop(1)],
    "the call announced again elsewhere": [message(), *HALF, use(2, "a"), piece(2, ":1}"), stop(2)],
    "the call again elsewhere, with its arguments": [message(), *WHOLE, use(2, "a"), piece(2, '{"x":1}'), stop(2)],
}


@pytest.mark.parametrize("name", ANTHROPIC)
def test_no_ghosts_in_anthropics_streams(name: str) -> None:
    result = read_stream("anthropic", [*ANTHROPIC[name], *END])
    assert (result.content, result.finish_reason) == ("so", "tool_calls")
    assert [(call.id, call.arguments, call.raw_arguments) for call in result.tool_calls] == [("a", {"x": 1}, '{"x":1}')]


def bedrock_start(index: int, id: str) -> Any:
    return {"contentBlockStart": {"contentBlockIndex": index, "start": {"toolUse": {"toolUseId": id, "name": "f"}}}}


def bedrock_piece(index: int, words: str) -> Any:
    return {"contentBlockDelta": {"contentBlockIndex": index, "delta": {"toolUse": {"input": words}}}}


def bedrock_stop(index: int) -> Any:
    return {"contentBlockStop": {"contentBlockIndex": index}}


MESSAGE = {"messageStart": {"role": "assistant"}}
CALL: Stream = [bedrock_start(0, "a"), bedrock_piece(0, '{"x":1}'), bedrock_stop(0)]
BEDROCK: dict[str, Stream] = {
    "once": [MESSAGE, *CALL],
    "announced twice in a row": [MESSAGE, MESSAGE, *CALL],
    "announced again in the middle": [MESSAGE, bedrock_start(0, "a"), bedrock_piece(0, '{"x"'), MESSAGE, bedrock_piece(0, ":1}")],
    "another call in its place": [MESSAGE, bedrock_start(0, "z"), bedrock_piece(0, '{"y'), MESSAGE, *CALL],
    "announced again after the call": [MESSAGE, *CALL, MESSAGE, *CALL],
    "the call announced again when it is whole": [MESSAGE, *CALL, bedrock_start(0, "a"), bedrock_stop(0)],
    "the call announced again elsewhere": [MESSAGE, bedrock_start(0, "a"), bedrock_start(1, "a"), bedrock_piece(1, '{"x":1}')],
}  # fmt: skip


@pytest.mark.parametrize("name", BEDROCK)
def test_no_ghosts_in_bedrocks_streams(name: str) -> None:
    result = read_stream("bedrock", [*BEDROCK[name], {"messageStop": {"stopReason": "tool_use"}}])
    assert [(call.id, call.arguments, call.raw_arguments) for call in result.tool_calls] == [("a", {"x": 1}, '{"x":1}')]


# -- chat ----------------------------------------------------------------------------------------------------------------


def chunk(finish: str | None = None, **call: Any) -> Any:
    return {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": 0, **call}]}, "finish_reason": finish}]}


SIGNED: Any = {"extra_content": {"google": {"thought_signature": "sig"}}}
KEYS: dict[str, tuple[list[Any], Any]] = {
    "another key": ([SIGNED, {"note": 1}], {**SIGNED, "note": 1}),
    "another key inside": (
        [SIGNED, {"extra_content": {"google": {"turn": 2}}}],
        {"extra_content": {"google": {"thought_signature": "sig", "turn": 2}}},
    ),
    "the same key, empty": ([SIGNED, {"extra_content": None}], SIGNED),
    "the same key, empty inside": ([SIGNED, {"extra_content": {"google": {"thought_signature": ""}}}], SIGNED),
    "the same key again": ([SIGNED, SIGNED], SIGNED),
    "the same key with another value": ([{"thought_signature": "sig"}, {"thought_signature": "x"}], {"thought_signature": "sig"}),
    "late": ([{}, SIGNED], SIGNED),
}  # fmt: skip


@pytest.mark.parametrize("name", KEYS)
def test_unknown_keys_of_a_streamed_call_are_all_sent_back(name: str) -> None:
    pieces, expected = KEYS[name]
    result = read_stream(
        "openai_chat",
        [
            chunk(id="c1", type="function", function={"name": "f", "arguments": ""}, **pieces[0]),
            chunk(function={"arguments": '{"a":1}'}, **pieces[1]),
            chunk("tool_calls"),
        ],
    )
    [sent] = openai_chat.encode_messages([result.message()])
    [call] = sent["tool_calls"]
    function = {"name": "f", "arguments": '{"a":1}'}
    assert call == {"id": "c1", "type": "function", "function": function, **expected}


def test_unknown_keys_of_the_function_are_sent_back_too() -> None:
    function = {"name": "f", "arguments": "{}", "signature": "sig"}
    result = read_stream("openai_chat", [chunk("tool_calls", id="c1", type="function", function=function)])
    [sent] = openai_chat.encode_messages([result.message()])
    assert sent["tool_calls"] == [{"id": "c1", "type": "function", "function": function}]


CUSTOM = {"id": "c1", "type": "custom", "custom": {"name": "patch", "input": "*** Begin"}}


@pytest.mark.parametrize(
    "pieces",
    [
        [CUSTOM],
        [{**CUSTOM, "custom": {"name": "patch", "input": ""}}, {"custom": {"input": "*** "}}, {"custom": {"input": "Begin"}}],
        [{"id": "c1", "type": "custom", "custom": {"name": "patch"}}, {"custom": {"input": "*** Begin"}}],
        [{"id": "c1", "custom": {"name": "patch", "input": "*** Begin"}}],
    ],
)  # fmt: skip
def test_calls_of_custom_tools_are_streamed_like_others(pieces: list[Any]) -> None:
    result = read_stream("openai_chat", [*(chunk(**one) for one in pieces), chunk("tool_calls")])
    whole = openai_chat.decode_response({"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": [CUSTOM]}, "finish_reason": "tool_calls"}]})  # fmt: skip
    assert result.tool_calls == whole.tool_calls
    [call] = result.tool_calls
    assert (call.id, call.name, call.arguments) == ("c1", "patch", {"input": "*** Begin"})
    assert metadata_of(call, "openai_chat")["type"] == "custom"
    [sent] = openai_chat.encode_messages([result.message()])
    assert sent["tool_calls"] == [CUSTOM]
