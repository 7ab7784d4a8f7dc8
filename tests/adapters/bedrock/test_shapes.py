"""Shapes that were not recorded, and changes of the neutral form, which change what is sent."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

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
from toolkit.adapters.bedrock import (
    boto3_messages,
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
from toolkit.wire import AssistantToolCallMessage, ChatMessage, alias

REASONING = {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "c2ln"}}}
REDACTED = {"reasoningContent": {"redactedContent": "b3BhcXVl"}}
SERVER_USE = {"toolUse": {"toolUseId": "s", "name": "nova_code_interpreter", "input": {"snippet": "1"}, "type": "server_tool_use"}}  # fmt: skip
SERVER_RESULT = {"toolResult": {"toolUseId": "s", "content": [{"json": {"stdOut": "1"}}], "type": "nova_code_interpreter_result", "status": "success"}}  # fmt: skip
CITED = {"citationsContent": {"content": [{"text": "b"}, {"text": "c"}], "citations": [{"title": "t"}]}}
CACHE = {"cachePoint": {"type": "default"}}
IMAGE = {"image": {"format": "png", "source": {"bytes": "AA=="}}}
PICTURE = ContentBlock("image", "image/png", data="AA==")


def text(words: str) -> dict[str, Any]:
    return {"text": words}


def use(id: str, arguments: Any, **more: Any) -> dict[str, Any]:
    return {"toolUse": {"toolUseId": id, "name": "add", "input": arguments, **more}}


def result(id: str, *content: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"toolResult": {"toolUseId": id, "content": list(content), **more}}


def answer(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def user(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


COMES_BACK = {
    "a text": [user(text("hi"))],
    "several texts": [user(text("a"), text("b"))],
    "an empty text": [user(text(""))],
    "no blocks": [user()],
    "cache points": [user(text("a"), CACHE, text("b"), CACHE)],
    "media": [user(text("see"), IMAGE, {"image": {"format": "jpeg", "source": {"s3Location": {"uri": "s3://b/k", "bucketOwner": "1"}}}}, {"audio": {"format": "mp3", "source": {"bytes": "AA=="}}})],
    "documents": [user({"document": {"name": "D 1", "format": "pdf", "source": {"bytes": "AA=="}, "citations": {"enabled": True}}}, {"document": {"name": "D 2", "format": "txt", "source": {"text": "a"}}}, {"document": {"name": "D 3", "format": "docx", "source": {"s3Location": {"uri": "s3://b/k"}}}})],
    "odd blocks": [user({"video": {"format": "mp4", "source": {"bytes": "AA=="}}}, text("hi"), {"guardContent": {"text": {"text": "g"}}}, {"image": {"format": "tiff", "source": {"bytes": "AA=="}}}, {"searchResult": {"source": "s"}}, {})],
    "reasoning, calls and a server's tools": [answer(REASONING, REDACTED, text("a"), SERVER_USE, SERVER_RESULT, CITED, use("1", {"a": 1}, type="tool_use"), use("2", {}))],
    "text with a type": [answer({"type": "text", "text": "a"})],
    "text behind a call": [answer(use("1", {}), text("so"))],
    "an answer with nothing in it": [answer()],
    "results": [answer(*(use(id, {}) for id in "123456")), user(result("1", text("ok")), result("2", text("ok"), status="success"), result("3", text("no"), status="error"), result("4", {"json": {"a": 1}}), result("5", text("a"), IMAGE, {"json": [1]}), result("6", {"video": {"format": "mp4"}}))],
    "results with an empty list": [answer(use("1", {})), user(result("1"))],
    "results that are odd JSON": [answer(use("1", {}), use("2", {})), user(result("1", {"json": [1]}), result("2", {"json": {"a": 1}}, status="error"))],
    "a text and a cache point beside results": [answer(use("1", {})), user(result("1", text("ok")), text("go on"), CACHE)],
    "roles that do not alternate": [user(text("a")), user(text("b")), answer(text("a")), answer(use("1", {})), answer(text("c"))],
    "ids as some models make them": [answer(use("functions.add:0", {})), user(result("functions.add:0", text("ok")))],
    "a message without content": [{"role": "user"}],
    "unknown fields around": [{"role": "user", "content": [text("a")], "more": 1}],
}  # fmt: skip


@pytest.mark.parametrize("case", COMES_BACK)
def test_comes_back_as_it_was(case: str) -> None:
    raw = COMES_BACK[case]
    assert encode_messages(decode_messages(json.loads(json.dumps(raw)))) == raw


def test_reads_into_the_neutral_form() -> None:
    raw = [
        user(text("hi")),
        answer(REASONING, text("a"), SERVER_USE, SERVER_RESULT, CITED, use("1", {"a": 1}), use("2", {})),
        user(result("1", {"json": {"sum": 3}}), result("2", text("no"), status="error"), text("and?")),
    ]
    first, calls, one, other, last = decode_messages(raw)
    assert isinstance(first, TextMessage) and (first.role, first.content) == ("user", "hi")
    assert isinstance(calls, AssistantToolCallMessage) and calls.content == "abc"
    assert [(call.id, call.name, call.arguments) for call in calls.tool_calls] == [("1", "add", {"a": 1}), ("2", "add", {})]  # fmt: skip
    assert isinstance(one, ToolResultMessage) and one.result == ToolResult("1", "add", "data", {"sum": 3})
    assert isinstance(other, ToolResultMessage) and other.result == ToolResult("2", "add", "error", "no")
    assert isinstance(last, TextMessage) and last.content == "and?"


CALLS = AssistantToolCallMessage("", [ToolCall("1", "add", {}), ToolCall("2", "add", {})])
ONE, TWO = (ToolResultMessage(ToolResult(id, "add", "text", "ok")) for id in "12")
HURRY = TextMessage("user", "hurry")
TURN = answer(use("1", {}), use("2", {}))
MENDED = user(result("1", text("ok")), result("2", text("ok")), text("hurry"))


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        pytest.param([CALLS, ONE, TWO], [TURN, user(*MENDED["content"][:2])], id="in one message"),
        pytest.param([CALLS, ONE, TWO, HURRY], [TURN, MENDED], id="a text behind"),
        pytest.param([CALLS, HURRY, ONE, TWO], [TURN, MENDED], id="a text before"),
        pytest.param([HURRY, HURRY], [user(text("hurry"), text("hurry"))], id="texts are put together: roles alternate"),
        pytest.param([*decode_messages([{"role": "user"}]), HURRY], [user(text("hurry"))], id="also with one that has no content"),
        pytest.param([TextMessage("assistant", "a"), CALLS], [answer(text("a"), *TURN["content"])], id="answers too"),
    ],
)  # fmt: skip
def test_results_are_right_after_their_calls(messages: list[ChatMessage], expected: Any) -> None:
    assert encode_messages(messages) == expected


@pytest.mark.parametrize(
    ("kind", "value", "content", "status"),
    [
        ("text", "7", [text("7")], None),
        ("data", "7", [text('"7"')], None),
        ("data", [1], [text("[1]")], None),
        ("data", {"é": [1]}, [{"json": {"é": [1]}}], None),
        ("error", "TOOL_FAILED: no", [text("TOOL_FAILED: no")], "error"),
        ("text", "", [], None),
        ("multimodal", (ContentBlock("text", text="see"), PICTURE), [text("see"), IMAGE], None),
        ("multimodal", (ContentBlock("image", url="https://x/y"), ContentBlock("document", file_id="f")), [text("[image at https://x/y: omitted, this model does not accept it]"), text("[document at f: omitted, this model does not accept it]")], None),
        ("multimodal", (ContentBlock("image", data="AA=="), ContentBlock("document", "video/quicktime", data="AA==")), [IMAGE, {"video": {"format": "mov", "source": {"bytes": "AA=="}}}], None),
        ("multimodal", (ContentBlock("image", "image/jpeg", url="s3://b/k"),), [{"image": {"format": "jpeg", "source": {"s3Location": {"uri": "s3://b/k"}}}}], None),
    ],
)  # fmt: skip
def test_results(kind: Any, value: Any, content: Any, status: str | None) -> None:
    [message] = encode_messages([ToolResultMessage(ToolResult("1", "f", kind, value))])
    expected = {"toolUseId": "1", "content": content, **({"status": status} if status else {})}
    assert message == user({"toolResult": expected})


def test_every_document_has_a_name_of_its_own() -> None:
    given = {"document": {"name": "document 2", "format": "pdf", "source": {"bytes": "AA=="}}}
    page = ContentBlock("document", "text/x-rst", data="AA==")
    answered = ToolResultMessage(ToolResult("9", "f", "multimodal", (page,)))
    encoded = encode_messages([*decode_messages([user(given)]), TextMessage("user", [page, page]), answered])
    blocks = [block for message in encoded for block in message["content"]]
    documents = [*blocks[:3], blocks[3]["toolResult"]["content"][0]]
    assert [one["document"]["name"] for one in documents] == ["document 2", "document 1", "document 3", "document 4"]
    assert {one["document"]["format"] for one in documents[1:]} == {"txt"}


def test_names_and_ids_that_would_be_refused() -> None:
    id, name = "call|" + "x" * 80, "n" * 65
    calls = AssistantToolCallMessage("", [ToolCall(id, name, {})])
    turn, after = encode_messages([calls, ToolResultMessage(ToolResult(id, name, "text", "1"))])
    assert turn["content"] == [{"toolUse": {"toolUseId": alias(id), "name": alias(name), "input": {}}}]
    assert after["content"][0]["toolResult"]["toolUseId"] == alias(id)


def test_arguments_that_are_no_json_object_go_back_wrapped() -> None:
    [message] = encode_messages([AssistantToolCallMessage("", [ToolCall("1", "add", {}, raw_arguments='{"a": ')])])
    assert message == answer(use("1", {"INVALID_JSON": '{"a": '}))


@pytest.mark.parametrize("raw", ["", "{ }", '{"removed": 1}', None])
def test_no_arguments_are_an_empty_object(raw: str | None) -> None:
    [message] = encode_messages([AssistantToolCallMessage("", [ToolCall("1", "add", {}, raw_arguments=raw)])])
    assert message == answer(use("1", {}))


def test_bytes_for_boto3() -> None:
    looks_alike = {"source": {"bytes": "AA=="}, "redactedContent": "AA=="}
    raw = [answer(REDACTED, use("1", looks_alike)), user(result("1", IMAGE, {"json": looks_alike}), IMAGE)]
    turn, after = boto3_messages(raw)
    assert turn["content"] == [{"reasoningContent": {"redactedContent": b"opaque"}}, use("1", looks_alike)]
    picture = {"image": {"format": "png", "source": {"bytes": b"\x00"}}}
    assert after["content"] == [result("1", picture, {"json": looks_alike}), picture]
    assert encode_messages(decode_messages([turn, after])) == raw, "and back"


# Changing what was decoded

RAW = [
    user(text("old"), CACHE),
    answer(REASONING, text("a"), CITED, SERVER_USE, SERVER_RESULT, use("1", {"a": 1}, type="tool_use"), use("2", {})),
    user(result("1", text("old"), status="success"), result("2", {"json": {"a": 1}}), {"video": {"format": "mp4"}}),
]


def decoded() -> list[Any]:
    return decode_messages(RAW)


def test_a_changed_text_is_what_is_sent() -> None:
    first = decoded()[0]
    assert encode_messages([replace(first, content="new words")]) == [user(text("new words"), CACHE)]


@pytest.mark.parametrize("words", ["xyz", "quite another text"], ids=["as long as before", "longer"])
def test_a_changed_answer_keeps_its_reasoning_and_the_servers_tools_in_place(words: str) -> None:
    calls = decoded()[1]
    expected = answer(REASONING, text(words), SERVER_USE, SERVER_RESULT, use("1", {"a": 1}, type="tool_use"), use("2", {}))  # fmt: skip
    assert encode_messages([replace(calls, content=words)]) == [expected]


def test_a_changed_text_is_no_longer_cited() -> None:
    [cited] = decode_messages([answer(CITED)])
    assert isinstance(cited, TextMessage) and cited.content == "bc"
    assert encode_messages([replace(cited, content="xy")]) == [answer(text("xy"))]


def test_changed_calls_and_results_are_what_is_sent() -> None:
    _, calls, one, two, _ = decoded()
    calls = replace(calls, tool_calls=[replace(calls.tool_calls[0], arguments={"a": 2})])
    one = replace(one, result=replace(one.result, value="new"))
    two = replace(two, result=ToolResult("2", "add", "error", "no"))
    turn, after = encode_messages([calls, one, two])
    assert turn == answer(*RAW[1]["content"][:5], use("1", {"a": 2}, type="tool_use"))
    assert after == user(result("1", text("new"), status="success"), result("2", text("no"), status="error"))


# Answers


def response(*blocks: dict[str, Any], word: str | None = "end_turn", **more: Any) -> dict[str, Any]:
    return {"output": {"message": answer(*blocks)}, "stopReason": word, "usage": {"inputTokens": 3, "outputTokens": 5, "cacheReadInputTokens": 2}, **more}  # fmt: skip


@pytest.mark.parametrize(
    ("word", "calls", "expected"),
    [
        ("end_turn", False, "stop"),
        ("stop_sequence", False, "stop"),
        ("tool_use", True, "tool_calls"),
        ("max_tokens", True, "length"),
        ("model_context_window_exceeded", False, "length"),
        ("guardrail_intervened", False, "filtered"),
        ("content_filtered", False, "filtered"),
        ("malformed_tool_use", True, "error"),
        ("malformed_model_output", False, "error"),
    ],
)
def test_why_it_stopped(word: str, calls: bool, expected: str) -> None:
    found = decode_response(response(text("x"), *([use("1", {})] if calls else []), word=word, trace={"t": 1}))
    assert found.finish_reason == expected
    told = found.metadata["bedrock"]
    assert isinstance(told, dict)
    assert (told["finish_reason"], told["trace"]) == (word, {"t": 1})
    assert (found.usage.input_tokens, found.usage.output_tokens, found.usage.cached_input_tokens) == (5, 5, 2)


def test_what_bedrock_runs_itself_is_no_call() -> None:
    found = decode_response(response(SERVER_USE, SERVER_RESULT, text("1")))
    assert (found.tool_calls, found.finish_reason, found.content) == ([], "stop", "1")
    assert encode_messages([found.message()]) == [answer(SERVER_USE, SERVER_RESULT, text("1"))]


def test_what_only_answers_may_say_is_not_sent_again() -> None:
    found = decode_response(response({"type": "text", "text": "a"}, use("1", {}, type="tool_use"), SERVER_USE))
    assert encode_messages([found.message()]) == [answer(text("a"), use("1", {}), SERVER_USE)]


def test_an_empty_text_of_an_answer_is_not_sent_again() -> None:
    """Converse refuses it, although a model wrote it."""
    calls = decode_response(response(text(""), use("1", {}), text(""))).message()
    nothing = decode_response(response(text(""))).message()
    assert encode_messages([calls, ONE, nothing]) == [answer(use("1", {})), user(result("1", text("ok")))]


@pytest.mark.parametrize("body", [{}, {"message": "no"}, {"output": None}, {"output": {"message": {}}}, "text", None, []])  # fmt: skip
def test_an_answer_that_is_none_is_an_error(body: Any) -> None:
    assert decode_response(body).finish_reason == "error"


@pytest.mark.parametrize(
    ("given", "arguments", "raw"), [('{"a": 1}', {"a": 1}, '{"a": 1}'), ("{", {}, "{"), ([1], {}, "[1]"), (None, {}, None)]
)  # fmt: skip
def test_input_that_is_no_object_never_raises(given: Any, arguments: Any, raw: str | None) -> None:
    [call] = decode_response(response(use("1", given))).tool_calls
    assert (call.arguments, call.raw_arguments) == (arguments, raw)


# Tools, choices, the system text


def test_definitions() -> None:
    made = ToolDefinition("math.factorial", "F.", JsonObject({"properties": {}}))
    [sent] = encode_tools([made], strict=True)
    assert sent == {"toolSpec": {"name": alias("math.factorial"), "description": "F.", "inputSchema": {"json": {"type": "object", "properties": {}, "required": [], "additionalProperties": False}}, "strict": True}}  # fmt: skip


@pytest.mark.parametrize(
    "raw",
    [
        {"toolSpec": {"name": "f", "inputSchema": {"json": {"type": "object"}}}},
        {"toolSpec": {"name": "f", "description": "", "inputSchema": {"json": {}}, "strict": False, "more": 1}},
        {"cachePoint": {"type": "default"}},
        {"systemTool": {"name": "nova_grounding"}},
        {"toolSpec": {"name": "f"}},
    ],
)
def test_tools_come_back_as_they_were(raw: dict[str, Any]) -> None:
    [tool] = decode_tools([raw])
    assert isinstance(tool, NativeTool) == ("inputSchema" not in raw.get("toolSpec", {}))
    assert encode_tools([tool]) == [raw]


@pytest.mark.parametrize(
    ("raw", "choice"), [({"auto": {}}, "auto"), ({"any": {}}, "required"), ({"tool": {"name": "f"}}, NamedTool("f"))]
)
def test_choices(raw: Any, choice: Any) -> None:
    assert decode_choice(raw) == choice
    assert encode_choice(choice) == raw


def test_choices_converse_cannot_say_or_nobody_else_knows() -> None:
    assert encode_choice("none") is None
    assert encode_choice(decode_choice({"auto": {}, "more": 1})) == {"auto": {}, "more": 1}


def test_system_texts_have_their_own_field() -> None:
    messages = [TextMessage("system", "a"), HURRY, TextMessage("system", "b")]
    assert split_system(messages) == ([text("a"), text("b")], [HURRY])
    assert split_system([HURRY]) == (None, [HURRY])
    for raw in ([text("a")], [text("a"), CACHE, text("b")], [{"text": "a", "more": 1}]):
        assert split_system(decode_system(raw)) == (raw, [])


# There and back

WORDS = st.text(max_size=20)
FILLED = st.text(min_size=1, max_size=20)
BLOCKS = st.one_of(
    st.builds(ContentBlock, st.just("text"), text=FILLED),
    st.builds(ContentBlock, st.just("image"), st.just("image/png"), data=st.just("AA==")),
    st.builds(ContentBlock, st.just("document"), st.just("video/mp4"), url=st.just("s3://b/k")),
    st.builds(ContentBlock, st.just("document"), st.just("text/csv"), data=st.just("AA==")),
)
MEDIA = st.lists(BLOCKS, min_size=2, max_size=3).map(tuple)
RESULTS = st.one_of(
    st.tuples(st.just("text"), WORDS),
    st.tuples(st.just("error"), WORDS),
    st.tuples(st.just("multimodal"), MEDIA),
    st.tuples(st.just("data"), st.dictionaries(WORDS, WORDS | st.integers(), max_size=2)),
)


@st.composite
def conversations(draw: st.DrawFn) -> list[ChatMessage]:
    """The turns of a conversation, in which each call has a result."""
    made: list[ChatMessage] = []
    for number in range(draw(st.integers(0, 3))):
        made.append(TextMessage("user", draw(FILLED | MEDIA.map(list))))
        ids = [f"t{number}_{at}" for at in range(draw(st.integers(0, 3)))]
        if not ids:
            made.append(TextMessage("assistant", draw(FILLED)))
            continue
        arguments = st.dictionaries(WORDS, st.integers() | WORDS, max_size=3)
        made.append(AssistantToolCallMessage(draw(WORDS), [ToolCall(id, f"tool_{id}", draw(arguments)) for id in ids]))
        results = [(id, *draw(RESULTS)) for id in ids]
        made += [ToolResultMessage(ToolResult(id, f"tool_{id}", kind, value)) for id, kind, value in results]
        made.append(TextMessage("assistant", draw(FILLED)))
    return made


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(conversations())
@pytest.mark.slow
def test_there_and_back(messages: list[ChatMessage]) -> None:
    sent = json.loads(json.dumps(encode_messages(messages)))
    assert [turn["role"] for turn in sent] == (["user", "assistant"] * len(sent))[: len(sent)]
    back = decode_messages(sent)
    assert encode_messages(back) == sent
    assert [_bare(message) for message in back] == [_bare(message) for message in messages]


def _bare(message: ChatMessage) -> Any:
    if isinstance(message, AssistantToolCallMessage):
        return message.content, [(call.id, call.name, call.arguments) for call in message.tool_calls]
    return (message.role, message.content) if isinstance(message, TextMessage) else message.result


def test_importing_the_adapter_loads_no_sdk() -> None:
    code = "import sys, toolkit.adapters.bedrock; print([m for m in ('boto3', 'botocore', 'httpx', 'asyncio') if m in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
