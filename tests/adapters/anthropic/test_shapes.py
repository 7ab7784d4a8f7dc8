"""Shapes that were not recorded, and changes of the neutral form, which change what is sent."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from typing import Any

import anthropic
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.adapters.metadata import metadata_of
from toolkit import (
    ContentBlock,
    JsonObject,
    NamedTool,
    NativeTool,
    TextMessage,
    ToolCall,
    ToolDefinition,
    ToolResult,
    ToolResultMessage,
)
from toolkit.adapters.anthropic import (
    decode_choice,
    decode_messages,
    decode_response,
    decode_system,
    decode_tools,
    encode_choice,
    encode_messages,
    encode_tools,
    split_system,
)
from toolkit.wire import AssistantToolCallMessage, ChatMessage, NativeChoice, alias

THINKING = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
REDACTED = {"type": "redacted_thinking", "data": "b3BhcXVl"}
SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [{"type": "web_search_result", "url": "u", "encrypted_content": "e"}]}  # fmt: skip
MCP = {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "echo", "server_name": "s", "input": {"a": 1}}


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


def use(id: str, arguments: Any, **more: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": "add", "input": arguments, **more}


def result(id: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id, "content": content, **more}


def answer(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def user(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


COMES_BACK = {
    "a string": [{"role": "user", "content": "hi"}],
    "a list of one text": [user(text("hi"))],
    "several texts": [user(text("a"), text("b"))],
    "an empty text": [user(text(""))],
    "no blocks": [user()],
    "a cached text": [user(text("hi", cache_control={"type": "ephemeral"}))],
    "media": [user(text("see"), {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}, "cache_control": {"type": "ephemeral"}}, {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}}, {"type": "image", "source": {"type": "file", "file_id": "f"}})],
    "documents": [user({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "grün"}, "title": "t", "citations": {"enabled": True}}, {"type": "document", "source": {"type": "content", "content": [text("a")]}}, {"type": "document", "source": {"type": "url", "url": "https://x/y.pdf"}})],
    "odd blocks": [user({"type": "container_upload", "file_id": "f"}, text("hi"), {"type": "search_result", "source": "s", "title": "t", "content": []}, {"type": "text"}, {"nothing": 1})],
    "thinking, calls and a server's tools": [answer(THINKING, REDACTED, text("a"), SEARCH, FOUND, text("b", citations=[{"type": "char_location"}]), MCP, use("1", {"a": 1}, caller={"type": "direct"}), use("2", {}))],
    "an answer of nothing but a server's tools": [answer(SEARCH)],
    "text behind a call": [answer(use("1", {}), text("so"))],
    "an answer with nothing in it": [answer()],
    "results": [answer(use("1", {}), use("2", {}), use("3", {}), use("4", {})), user(result("1", "ok"), result("2", [text("ok")], is_error=False), result("3", "no", is_error=True), result("4", [text("a"), {"type": "image", "source": {"type": "url", "url": "u"}}, {"type": "tool_reference", "tool_name": "t"}], cache_control={"type": "ephemeral"}))],
    "results without content": [answer(use("1", {})), user({"type": "tool_result", "tool_use_id": "1"})],
    "results with an empty list": [answer(use("1", {})), user(result("1", []))],
    "an error in blocks": [answer(use("1", {})), user(result("1", [text("no"), {"type": "image", "source": {"type": "url", "url": "u"}}], is_error=True))],
    "a text beside results": [answer(use("1", {})), user(result("1", "ok"), text("go on", cache_control={"type": "ephemeral"}))],
    "a text after results": [answer(use("1", {})), user(result("1", "ok")), user(text("go on")), user(text("now"))],
    "a string after results": [answer(use("1", {})), user(result("1", "ok")), {"role": "user", "content": "go on"}],
    "calls in two messages": [answer(use("1", {})), answer(use("2", {})), user(result("1", "ok"), result("2", "ok"))],
    "the same id in two turns": [answer(use("1", {"a": 1})), user(result("1", "x")), answer(use("1", {"a": 2})), user(result("1", "y"))],
    "a result of no call": [user(text("hi"), result("9", "ok"))],
    "a system text in between": [user(text("hi")), {"role": "system", "content": [{"type": "tool_addition", "tool": {"name": "t"}}, text("note")], "clear_at": "never"}],
    "a message without content": [{"role": "system", "output_config": {"effort": "low"}}],
}  # fmt: skip


@pytest.mark.parametrize("case", COMES_BACK)
def test_comes_back_as_it_was(case: str) -> None:
    raw = COMES_BACK[case]
    assert encode_messages(decode_messages(json.loads(json.dumps(raw)))) == raw


def test_reads_into_the_neutral_form() -> None:
    raw = [
        user(text("hi")),
        answer(THINKING, text("let "), SEARCH, text("me"), use("1", {"a": 1}), use("2", {})),
        user(result("1", [text("3")]), result("2", "no", is_error=True), text("and?")),
    ]
    first, calls, one, other, last = decode_messages(raw)
    assert isinstance(first, TextMessage) and (first.role, first.content) == ("user", "hi")
    assert isinstance(calls, AssistantToolCallMessage) and calls.content == "let me"
    assert [(call.id, call.name, call.arguments) for call in calls.tool_calls] == [("1", "add", {"a": 1}), ("2", "add", {})]  # fmt: skip
    assert isinstance(one, ToolResultMessage) and one.result == ToolResult("1", "add", "text", "3")
    assert isinstance(other, ToolResultMessage) and other.result == ToolResult("2", "add", "error", "no")
    assert isinstance(last, TextMessage) and last.content == "and?"


CALLS = AssistantToolCallMessage("", [ToolCall("1", "add", {}), ToolCall("2", "add", {})])
ONE, TWO = (ToolResultMessage(ToolResult(id, "add", "text", "ok")) for id in "12")
HURRY = TextMessage("user", "hurry")
TURN = answer(use("1", {}), use("2", {}))
MENDED = user(result("1", "ok"), result("2", "ok"), text("hurry"))


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        pytest.param([CALLS, ONE, TWO], [TURN, user(result("1", "ok"), result("2", "ok"))], id="in one message"),
        pytest.param([CALLS, ONE, TWO, HURRY], [TURN, MENDED], id="a text behind"),
        pytest.param([CALLS, ONE, HURRY, TWO], [TURN, MENDED], id="a text between"),
        pytest.param([CALLS, HURRY, ONE, TWO], [TURN, MENDED], id="a text before"),
        pytest.param([CALLS, ONE, TextMessage("assistant", "so"), TWO], [TURN, user(result("1", "ok"), result("2", "ok")), {"role": "assistant", "content": "so"}], id="an answer between"),
        pytest.param([CALLS, TextMessage("system", "note"), ONE, TWO], [TURN, user(result("1", "ok"), result("2", "ok")), {"role": "system", "content": "note"}], id="a system text between"),
        pytest.param([replace(CALLS, tool_calls=[one]) for one in CALLS.tool_calls] + [TWO, ONE], [TURN, user(result("2", "ok"), result("1", "ok"))], id="calls in two messages"),
        pytest.param([HURRY, HURRY], [{"role": "user", "content": "hurry"}] * 2, id="texts alone stay apart"),
    ],
)  # fmt: skip
def test_results_are_right_after_their_calls(messages: list[ChatMessage], expected: Any) -> None:
    assert encode_messages(messages) == expected


def test_results_that_came_in_a_wrong_order_are_mended() -> None:
    raw = [TURN, user(text("hurry"), result("2", "ok")), user(result("1", "ok"))]
    assert encode_messages(decode_messages(raw)) == [TURN, user(result("2", "ok"), result("1", "ok"), text("hurry"))]


PICTURE = ContentBlock("image", "image/png", data="AA==")


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("text", "7", {"content": "7"}),
        ("data", "7", {"content": '"7"'}),
        ("data", 7, {"content": "7"}),
        ("data", {"é": [1]}, {"content": '{"é":[1]}'}),
        ("error", "TOOL_FAILED: no", {"content": "TOOL_FAILED: no", "is_error": True}),
        ("multimodal", (ContentBlock("text", text="see"), PICTURE), {"content": [text("see"), {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}]}),
        ("multimodal", (ContentBlock("audio", "audio/wav", data="AAAA"),), {"content": [text("[audio/wav, 3 bytes: omitted, this model does not accept it]")]}),
        ("multimodal", (ContentBlock("document", "text/csv", data="YSxi"),), {"content": [{"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "a,b"}}]}),
        ("multimodal", (ContentBlock("document", data="AA=="),), {"content": [{"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "AA=="}}]}),
    ],
)  # fmt: skip
def test_results(kind: Any, value: Any, expected: dict[str, Any]) -> None:
    [message] = encode_messages([ToolResultMessage(ToolResult("1", "f", kind, value))])
    assert message == {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", **expected}]}


def test_names_and_ids_that_would_be_refused() -> None:
    calls = AssistantToolCallMessage("", [ToolCall("call:1|x", "math.factorial", {})])
    turn, after = encode_messages([calls, ToolResultMessage(ToolResult("call:1|x", "math.factorial", "text", "1"))])
    assert turn["content"] == [{"type": "tool_use", "id": alias("call:1|x"), "name": alias("math.factorial"), "input": {}}]  # fmt: skip
    assert after["content"][0]["tool_use_id"] == alias("call:1|x")


@pytest.mark.parametrize("broken", ['{"a": ', "nonsense", "[1]", "null"])
def test_arguments_that_are_no_json_object_go_back_wrapped(broken: str) -> None:
    [message] = encode_messages([AssistantToolCallMessage("", [ToolCall("1", "add", {}, raw_arguments=broken)])])
    assert message == answer(use("1", {"INVALID_JSON": broken}))


@pytest.mark.parametrize("raw", ["", "  ", "{}", " {} ", "{ }", '{"removed": 1}', None])
def test_no_arguments_are_an_empty_object(raw: str | None) -> None:
    [message] = encode_messages([AssistantToolCallMessage("", [ToolCall("1", "add", {}, raw_arguments=raw)])])
    assert message == answer(use("1", {}))


def test_an_answer_of_the_sdk_in_the_list_is_a_message_of_a_request() -> None:
    found = anthropic.types.Message.model_validate({**MESSAGE, "content": [text("x"), use("1", {"a": 1})]})
    turns = encode_messages(decode_messages([{"role": "user", "content": "hi"}, found]))
    assert turns == [{"role": "user", "content": "hi"}, answer(text("x"), use("1", {"a": 1}))]
    blocks = {"role": "assistant", "content": found.content}
    assert encode_messages(decode_messages([blocks])) == turns[1:]


def test_an_answer_that_said_nothing_is_not_sent() -> None:
    nothing = decode_response({"content": [], "stop_reason": "end_turn"}).message()
    assert encode_messages([HURRY, nothing, HURRY]) == [{"role": "user", "content": "hurry"}] * 2
    blank = decode_response({"content": [THINKING, text(""), use("1", {}), text("")], "stop_reason": "tool_use"})
    assert encode_messages([blank.message()]) == [answer(THINKING, use("1", {}))]


# Changing what was decoded

RAW = [
    user(text("old", cache_control={"type": "ephemeral"}), {"type": "container_upload", "file_id": "f"}),
    answer(THINKING, text("a", citations=[1]), SEARCH, FOUND, text("b"), use("1", {"a": 1}, caller={"type": "direct"}), use("2", {})),
    user(result("1", [text("old")], is_error=False), result("2", [text("t"), {"type": "tool_reference", "tool_name": "x"}])),
]  # fmt: skip


def decoded() -> tuple[TextMessage, AssistantToolCallMessage, ToolResultMessage, ToolResultMessage]:
    first, calls, one, two = decode_messages(RAW)
    assert isinstance(first, TextMessage)
    assert isinstance(calls, AssistantToolCallMessage)
    assert isinstance(one, ToolResultMessage) and isinstance(two, ToolResultMessage)
    return first, calls, one, two


def test_a_changed_text_is_what_is_sent() -> None:
    first, _, _, _ = decoded()
    assert encode_messages([replace(first, content="new words")]) == [
        user(text("new words", cache_control={"type": "ephemeral"}), {"type": "container_upload", "file_id": "f"})
    ]
    picture = replace(first, content=[ContentBlock("text", text="see"), PICTURE])
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}
    assert encode_messages([picture]) == [user(text("see"), image, {"type": "container_upload", "file_id": "f"})]


@pytest.mark.parametrize("words", ["xy", "quite another text"], ids=["as long as before", "longer"])
def test_a_changed_answer_keeps_its_thinking_and_the_servers_tools_in_place(words: str) -> None:
    _, calls, _, _ = decoded()
    [message] = encode_messages([replace(calls, content=words)])
    # One text now, where the first was; what was cited for the old one is not cited for the new one.
    assert message == answer(THINKING, text(words), SEARCH, FOUND, use("1", {"a": 1}, caller={"type": "direct"}), use("2", {}))  # fmt: skip


def test_a_text_that_was_taken_away_or_is_new() -> None:
    _, calls, _, _ = decoded()
    [message] = encode_messages([replace(calls, content="")])
    assert message == answer(THINKING, SEARCH, FOUND, use("1", {"a": 1}, caller={"type": "direct"}), use("2", {}))
    [silent] = decode_messages([answer(THINKING, use("1", {}))])
    assert isinstance(silent, AssistantToolCallMessage)
    assert encode_messages([replace(silent, content="so")]) == [answer(THINKING, text("so"), use("1", {}))]


def test_changed_calls_are_what_is_sent() -> None:
    _, calls, _, _ = decoded()
    first = calls.tool_calls[0]
    more = replace(calls, tool_calls=[replace(first, arguments=JsonObject({"a": 2})), ToolCall("3", "add", {})])
    [message] = encode_messages([more])
    assert message == answer(*RAW[1]["content"][:5], use("1", {"a": 2}, caller={"type": "direct"}), use("3", {}))


def test_changed_results_are_what_is_sent() -> None:
    _, calls, one, two = decoded()
    changed = [
        replace(one, result=replace(one.result, value="new")),
        replace(two, result=replace(two.result, kind="error", value="no")),
    ]
    assert encode_messages([calls, *changed])[1] == user(
        result("1", [text("new")], is_error=False),
        result("2", [text("no"), {"type": "tool_reference", "tool_name": "x"}], is_error=True),
    )


def test_another_providers_metadata_is_ignored() -> None:
    message = TextMessage("user", "hi", {"openai_chat": {"layout": [{"native": {"x": 1}}], "difference": {"put": 1}}})
    assert encode_messages([message]) == [{"role": "user", "content": "hi"}]


# Answers

MESSAGE: dict[str, Any] = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [text("x")], "usage": {"input_tokens": 3, "output_tokens": 5, "cache_read_input_tokens": 2, "output_tokens_details": {"thinking_tokens": 4}}}  # fmt: skip


@pytest.mark.parametrize(
    ("word", "calls", "expected"),
    [
        ("end_turn", False, "stop"),
        ("stop_sequence", False, "stop"),
        ("tool_use", True, "tool_calls"),
        ("end_turn", True, "tool_calls"),
        ("tool_use", False, "stop"),
        ("max_tokens", False, "length"),
        ("max_tokens", True, "length"),
        ("model_context_window_exceeded", True, "length"),
        ("pause_turn", False, "paused"),
        ("refusal", False, "refused"),
        ("compaction", False, "paused"),
        (None, False, "stop"),
    ],
)
def test_why_it_stopped(word: str | None, calls: bool, expected: str) -> None:
    content = [text("x"), use("1", {})] if calls else [text("x")]
    found = decode_response({**MESSAGE, "content": content, "stop_reason": word})
    assert found.finish_reason == expected
    assert metadata_of(found, "anthropic")["finish_reason"] == word


def test_what_an_answer_tells_beside_its_content() -> None:
    details = {"type": "refusal", "category": "bio", "explanation": None}
    found = decode_response({**MESSAGE, "stop_reason": "refusal", "stop_details": details, "container": {"id": "c"}})
    usage = found.usage
    assert (usage.input_tokens, usage.output_tokens, usage.cached_input_tokens, usage.reasoning_tokens) == (5, 5, 2, 4)
    told = found.metadata["anthropic"]
    assert isinstance(told, dict)
    assert (told["id"], told["stop_details"], told["container"]) == ("msg_1", details, {"id": "c"})


def test_a_paused_answer_goes_back_as_it_is_to_be_continued() -> None:
    blocks = [THINKING, text("let me look"), SEARCH]
    found = decode_response({**MESSAGE, "content": blocks, "stop_reason": "pause_turn"})
    assert found.tool_calls == []
    assert encode_messages([found.message()]) == [answer(*blocks)]


@pytest.mark.parametrize("body", [{}, {"type": "error", "error": {"type": "overloaded_error"}}, {"content": None}, "text", None, []])  # fmt: skip
def test_an_answer_that_is_none_is_an_error(body: Any) -> None:
    assert decode_response(body).finish_reason == "error"


@pytest.mark.parametrize(
    ("given", "arguments", "raw"),
    [
        ({"a": 1}, {"a": 1}, None),
        ('{"a": 1}', {"a": 1}, '{"a": 1}'),
        ('{"a": ', {}, '{"a": '),
        ([1], {}, "[1]"),
        (7, {}, "7"),
        (None, {}, None),
    ],
)
def test_input_that_is_no_object_never_raises(given: Any, arguments: Any, raw: str | None) -> None:
    [call] = decode_response({**MESSAGE, "content": [use("1", given)]}).tool_calls
    assert (call.arguments, call.raw_arguments) == (arguments, raw)


def test_a_call_without_an_id_gets_one_that_holds_for_both_ends() -> None:
    found = decode_response({**MESSAGE, "content": [use("", {}), use("", {})]})
    assert [call.id for call in found.tool_calls] == ["call_0", "call_1"]
    results = [ToolResultMessage(ToolResult(call.id, call.name, "text", "")) for call in found.tool_calls]
    turn, after = encode_messages([found.message(), *results])
    assert [b["id"] for b in turn["content"]] == [b["tool_use_id"] for b in after["content"]] == ["call_0", "call_1"]


# Tools, choices, the system text


def test_definitions() -> None:
    made = ToolDefinition("math.factorial", "F.", JsonObject({"properties": {}}))
    [sent] = encode_tools([made], strict=True)
    assert sent == {"name": alias("math.factorial"), "description": "F.", "input_schema": {"type": "object", "properties": {}, "required": [], "additionalProperties": False}, "strict": True}  # fmt: skip
    long = "n" * 128
    assert encode_tools([ToolDefinition(long, "", JsonObject({}))]) == [{"name": long, "input_schema": {"type": "object"}}]  # fmt: skip


@pytest.mark.parametrize(
    "raw",
    [
        {"name": "f", "input_schema": {"type": "object"}},
        {"type": "custom", "name": "f", "description": "", "input_schema": {"properties": {}}, "cache_control": {"type": "ephemeral"}},
        {"name": "f", "description": "d", "input_schema": {"type": "object"}, "strict": False, "eager_input_streaming": True, "defer_loading": True, "allowed_callers": ["direct"], "input_examples": [{}]},
        {"type": "web_search_20250305", "name": "web_search", "max_uses": 5},
        {"type": "mcp_toolset", "mcp_server_name": "s"},
        {"odd": True},
    ],
)  # fmt: skip
def test_tools_come_back_as_they_were(raw: dict[str, Any]) -> None:
    [tool] = decode_tools([raw])
    assert isinstance(tool, NativeTool) == (raw.get("type") not in (None, "custom") or "name" not in raw)
    assert encode_tools([tool]) == [raw]


@pytest.mark.parametrize(
    ("raw", "choice"),
    [
        ({"type": "auto"}, "auto"),
        ({"type": "none"}, "none"),
        ({"type": "any"}, "required"),
        ({"type": "tool", "name": "f"}, NamedTool("f")),
        ({"type": "auto", "disable_parallel_tool_use": True}, NativeChoice("anthropic", {"type": "auto", "disable_parallel_tool_use": True})),
        ({"type": "tool", "name": "f", "disable_parallel_tool_use": False}, NativeChoice("anthropic", {"type": "tool", "name": "f", "disable_parallel_tool_use": False})),
    ],
)  # fmt: skip
def test_choices(raw: Any, choice: Any) -> None:
    assert decode_choice(raw) == choice
    assert encode_choice(choice) == raw


@pytest.mark.parametrize(
    ("messages", "system", "left"),
    [
        ([HURRY], None, 1),
        ([TextMessage("system", "a"), HURRY], "a", 1),
        ([TextMessage("system", "a"), TextMessage("system", [ContentBlock("text", text="b")]), HURRY], [text("a"), text("b")], 1),
        ([TextMessage("system", "a"), HURRY, TextMessage("system", "later")], "a", 2),
    ],
)  # fmt: skip
def test_system_texts_at_the_front_have_their_own_field(messages: list[ChatMessage], system: Any, left: int) -> None:
    found, rest = split_system(messages)
    assert (found, len(rest)) == (system, left)


@pytest.mark.parametrize("raw", ["a", [text("a")], [text("a", cache_control={"type": "ephemeral"}), text("b")]])
def test_a_system_text_comes_back_as_it_was(raw: Any) -> None:
    assert split_system(decode_system(raw)) == (raw, [])


# There and back

WORDS = st.text(max_size=20)
FILLED = st.text(min_size=1, max_size=20)
BLOCKS = st.one_of(
    st.builds(ContentBlock, st.just("text"), text=FILLED),
    st.builds(ContentBlock, st.just("image"), st.just("image/png"), data=st.just("AA==")),
    st.builds(ContentBlock, st.just("image"), url=FILLED),
    st.builds(ContentBlock, st.sampled_from(["image", "document"]), file_id=FILLED, provider=st.just("anthropic")),
    st.builds(ContentBlock, st.just("document"), st.just("text/plain"), data=st.just("YQ==")),
)
MEDIA = st.lists(BLOCKS, min_size=2, max_size=3).map(tuple)
RESULTS = st.one_of(
    st.tuples(st.just("text"), WORDS), st.tuples(st.just("error"), WORDS), st.tuples(st.just("multimodal"), MEDIA)
)


@st.composite
def conversations(draw: st.DrawFn) -> list[ChatMessage]:
    """The turns of a conversation, in which each call has a result."""
    made: list[ChatMessage] = []
    for number in range(draw(st.integers(0, 3))):
        role: Any = draw(st.sampled_from(["user", "system"]))
        made.append(TextMessage(role, draw(FILLED | MEDIA.map(list) if role == "user" else FILLED)))
        ids = [f"t{number}_{at}" for at in range(draw(st.integers(0, 3)))]
        if not ids:
            made.append(TextMessage("assistant", draw(FILLED)))
            continue
        arguments = st.dictionaries(WORDS, st.integers() | WORDS, max_size=3)
        made.append(AssistantToolCallMessage(draw(WORDS), [ToolCall(id, f"tool_{id}", draw(arguments)) for id in ids]))
        results = [(id, *draw(RESULTS)) for id in ids]
        made += [ToolResultMessage(ToolResult(id, f"tool_{id}", kind, value)) for id, kind, value in results]
    return made


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # how fast a machine is tells nothing
@given(conversations())
@pytest.mark.slow
def test_there_and_back(messages: list[ChatMessage]) -> None:
    sent = json.loads(json.dumps(encode_messages(messages)))
    back = decode_messages(sent)
    assert encode_messages(back) == sent
    assert [_bare(message) for message in back] == [_bare(message) for message in messages]


def _bare(message: ChatMessage) -> Any:
    if isinstance(message, AssistantToolCallMessage):
        return message.content, [(call.id, call.name, call.arguments) for call in message.tool_calls]
    return (message.role, message.content) if isinstance(message, TextMessage) else message.result


def test_importing_the_adapter_loads_no_sdk() -> None:
    code = "import sys, toolkit.adapters.anthropic; print([m for m in ('anthropic', 'httpx', 'httpx2', 'asyncio') if m in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
