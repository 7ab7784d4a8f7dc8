"""Unusual shapes, and changes of the neutral form, which change what is sent."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from typing import Any

import pytest
from google.genai import types
from hypothesis import given
from hypothesis import strategies as st

from tests.adapters.metadata import metadata_of
from tests.examples import tries
from toolkit import (
    ContentBlock,
    JsonObject,
    NamedTool,
    NativeTool,
    QueryResult,
    TextMessage,
    ToolCall,
    ToolDefinition,
    ToolResult,
    ToolResultMessage,
)
from toolkit.adapters.gemini import (
    Accumulator,
    decode_choice,
    decode_messages,
    decode_response,
    decode_tools,
    encode_choice,
    encode_messages,
    encode_tools,
)
from toolkit.adapters.gemini.codec import to_snake_case
from toolkit.adapters.requests import MADE_ID
from toolkit.wire import AssistantToolCallMessage, ChatMessage, alias

Part = dict[str, Any]


def call(name: str = "f", *, id: str | None = None, signature: str | None = None, **args: Any) -> Part:
    inner = {**({"id": id} if id else {}), "name": name, "args": args}
    return {"functionCall": inner, **({"thoughtSignature": signature} if signature else {})}


def answer_of(*parts: Part, word: str | None = "STOP", **more: Any) -> Part:
    candidate = {"content": {"role": "model", "parts": list(parts)}, **({"finishReason": word} if word else {})}
    return {"candidates": [candidate], "responseId": "r", **more}


def streamed(*chunks: object) -> QueryResult:
    answer = Accumulator()
    texts = [answer.feed(chunk) for chunk in chunks]
    assert "".join(texts) == answer.result().content
    return answer.result()


def pieces(*partial: Part, follows: bool = True, name: str | None = None) -> Part:
    inner = {**({"name": name} if name else {}), **({"partialArgs": list(partial)} if partial else {})}
    return {"functionCall": {**inner, **({"willContinue": True} if follows else {})}}


def value(path: str, **kind: Any) -> Part:
    return {"jsonPath": path, **kind}


def called(*parts: Part) -> list[tuple[str, dict[str, object]]]:
    result = streamed(*(answer_of(part, word=None) for part in parts), answer_of())
    return [(one.name, one.arguments) for one in result.tool_calls]


PARTIAL: dict[str, tuple[list[Part], dict[str, Any]]] = {
    "a text in pieces": ([value("$.a", stringValue="x", willContinue=True), value("$.a", stringValue="y"), value("$.a")], {"a": "xy"}),
    "a text that is announced": ([value("$.a", willContinue=True), value("$.a", stringValue="x")], {"a": "x"}),
    "an empty text": ([value("$.a", stringValue="")], {"a": ""}),
    "every kind": ([value("$.n", numberValue=1), value("$.f", numberValue=1.5), value("$.b", boolValue=False), value("$.z", nullValue="NULL_VALUE")], {"n": 1, "f": 1.5, "b": False, "z": None}),
    "nested": ([value("$.a.b[0].c", stringValue="x"), value("$.a.b[1].c", stringValue="y"), value("$.a.d", numberValue=2)], {"a": {"b": [{"c": "x"}, {"c": "y"}], "d": 2}}),
    "lists in lists": ([value("$.a[0][0]", numberValue=1), value("$.a[0][1]", numberValue=2), value("$.a[1][0]", numberValue=3)], {"a": [[1, 2], [3]]}),
    "quoted": ([value("$['a.b']", numberValue=1), value('$["c d"].e', numberValue=2), value(r"$['it\'s']", numberValue=3), value("$['']", numberValue=4)], {"a.b": 1, "c d": {"e": 2}, "it's": 3, "": 4}),
    "not ASCII": ([value("$.größe", stringValue="é")], {"größe": "é"}),
    "a list begun late": ([value("$.a[2]", numberValue=1)], {"a": [None, None, 1]}),
    "a whole as a float": ([value("$.a", numberValue=3.0)], {"a": 3}),
}  # fmt: skip


@pytest.mark.parametrize("shape", PARTIAL)
@pytest.mark.parametrize("together", [True, False], ids=["in one chunk", "a chunk each"])
def test_arguments_value_by_value(shape: str, together: bool) -> None:
    partial, expected = PARTIAL[shape]
    grown = [pieces(*partial)] if together else [pieces(one) for one in partial]
    assert called(pieces(name="f"), *grown, pieces(follows=False)) == [("f", expected)]
    two = called(pieces(name="f"), *grown, pieces(follows=False), pieces(*partial, name="g", follows=False))
    assert two == [("f", expected), ("g", expected)]


@pytest.mark.parametrize(
    "path",
    ["", "a", "$", "$.", "$..a", "$[0]", "$.a[-1]", "$.a[*]", "$.a[999999]", f"$.a[{'9' * 5000}]", "$.a" + "[9]" * 1000, "$.a" + ".b" * 10_000, "$['a", None, 7],
)  # fmt: skip
def test_a_place_that_cannot_be_read_breaks_the_call_and_nothing_else(path: Any) -> None:
    broken = pieces(value("$.x", numberValue=1), {"jsonPath": path, "stringValue": "y"}, name="f", follows=False)
    first, second = streamed(answer_of(broken, call("g", a=1))).tool_calls
    # A call that lacks an argument must not look whole: its text is no JSON.
    assert (first.name, first.arguments) == ("f", {})
    assert first.raw_arguments is not None
    assert first.raw_arguments.startswith('{"x":1')
    assert not first.raw_arguments.endswith("}")
    assert (second.name, second.arguments, second.raw_arguments) == ("g", {"a": 1}, None)


@pytest.mark.parametrize("word", [None, "STOP"])
def test_a_call_that_is_cut_is_kept_and_cannot_run(word: str | None) -> None:
    parts = [call("g", a=1), pieces(value("$.path", stringValue="/tm"), name="f")]
    result = streamed(answer_of({"text": "so"}, *parts, word=word))
    assert result.content == "so"
    assert [(one.name, one.arguments, one.raw_arguments) for one in result.tool_calls] == [
        ("g", {"a": 1}, None),
        ("f", {}, '{"path":"/tm"'),
    ]
    assert result.finish_reason == ("tool_calls" if word else "error")


def test_calls_without_ids_get_one_that_is_never_sent() -> None:
    result = decode_response(answer_of(call(a=1), call(a=2), call(id="real")))
    ids = [one.id for one in result.tool_calls]
    assert len(set(ids)) == 3
    assert [id.startswith(MADE_ID) for id in ids] == [True, True, False]
    results: list[ChatMessage] = [
        ToolResultMessage(ToolResult(id, "", "text", str(at))) for at, id in reversed(list(enumerate(ids)))
    ]
    turn, answers = encode_messages([result.message(), *results])
    assert [part["functionCall"].get("id") for part in turn["parts"]] == [None, None, "real"]
    sent = [part["functionResponse"] for part in answers["parts"]]
    # Without ids the order tells: it is the calls' order, whatever order the results came in.
    assert [(one.get("id"), one["response"]["output"]) for one in sent] == [("real", "2"), (None, "0"), (None, "1")]
    assert {one["name"] for one in sent} == {"f"}


def test_results_find_their_calls_by_name_and_order() -> None:
    def response(name: str, output: str) -> Part:
        return {"functionResponse": {"name": name, "response": {"output": output}}}

    contents = [
        {"role": "model", "parts": [call("f", a=1), call("g"), call("f", a=2)]},
        {"role": "user", "parts": [response("g", "3"), response("f", "1"), response("f", "2"), response("h", "?")]},
    ]
    turn, *results = decode_messages(contents)
    assert isinstance(turn, AssistantToolCallMessage)
    by_id = {one.id: (one.name, one.arguments) for one in turn.tool_calls}
    found = [(by_id.get(one.result.tool_call_id), one.result.value) for one in results if isinstance(one, ToolResultMessage)]  # fmt: skip
    assert found == [(("g", {}), "3"), (("f", {"a": 1}), "1"), (("f", {"a": 2}), "2"), (None, "?")]


def test_thoughts_are_no_text_and_keep_their_place() -> None:
    thought, signed = {"text": "hm", "thought": True}, {"text": "", "thoughtSignature": "c2ln"}
    parts: list[Part] = [thought, {"text": "so"}, thought, call(signature="YQ=="), {"text": "and"}, signed]
    for result in (decode_response(answer_of(*parts)), streamed(*(answer_of(part, word=None) for part in parts), answer_of())):  # fmt: skip
        assert (result.content, len(result.tool_calls)) == ("soand", 1)
        assert encode_messages([result.message()]) == [{"role": "model", "parts": parts}]


@tries(50)
@given(st.lists(st.tuples(st.booleans(), st.text("ab", min_size=1, max_size=6)), max_size=6), st.data())
def test_any_chunking_gives_the_same(said: list[tuple[bool, str]], data: st.DataObject) -> None:
    whole: list[Part] = []
    for thought, text in said:
        if whole and whole[-1].get("thought", False) == thought:
            whole[-1]["text"] += text
        else:
            whole.append({"text": text, **({"thought": True} if thought else {})})
    chunks: list[Part] = []
    for part in whole:
        at = data.draw(st.integers(0, len(part["text"])))
        chunks += [{**part, "text": part["text"][:at]}, {**part, "text": part["text"][at:]}]
    assert streamed(*(answer_of(one, word=None) for one in chunks), answer_of()) == decode_response(answer_of(*whole))


@pytest.mark.parametrize(
    ("word", "calls", "expected"),
    [
        ("STOP", False, "stop"),
        ("STOP", True, "tool_calls"),
        ("MAX_TOKENS", True, "length"),
        ("MALFORMED_FUNCTION_CALL", False, "error"),
        ("UNEXPECTED_TOOL_CALL", True, "error"),
        ("SAFETY", False, "filtered"),
        ("anything", False, "stop"),
    ],
)
def test_why_it_stopped(word: str, calls: bool, expected: str) -> None:
    body = answer_of(*([call()] if calls else []), word=word)
    for result in (decode_response(body), streamed(body)):
        assert result.finish_reason == expected
        assert metadata_of(result, "gemini")["finish_reason"] == word


@pytest.mark.parametrize("read", [decode_response, streamed])
def test_a_prompt_that_was_blocked_says_so(read: Any) -> None:
    result = read({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 3}})
    assert (result.finish_reason, result.usage.input_tokens) == ("filtered", 3)
    assert result.metadata["gemini"]["error"] == {"blockReason": "SAFETY"}


@pytest.mark.parametrize("read", [decode_response, streamed])
def test_of_several_candidates_the_first_answers(read: Any) -> None:
    candidates = [{"index": at, "content": {"parts": [{"text": str(at)}]}, "finishReason": "STOP"} for at in (1, 0)]
    assert read({"candidates": candidates}).content == "0"


@pytest.mark.parametrize("body", [{}, {"error": {"message": "no"}}, {"candidates": []}, {"candidates": [None]}, "text", None, []])  # fmt: skip
@pytest.mark.parametrize("read", [decode_response, streamed])
def test_an_answer_that_is_none_is_an_error(body: Any, read: Any) -> None:
    assert read(body).finish_reason == "error"


ODD_CONTENTS: list[Part] = [
    {"role": "user", "parts": []},
    {"parts": [{"text": "no role"}]},
    {"role": "function", "parts": [{"functionResponse": {"name": "f", "response": {"a": 1}}}]},
    {"role": "model", "parts": [{"functionCall": None, "text": "dumped with its nulls"}]},
    {"role": "model", "parts": [{"functionCall": {}}, {"functionCall": {"name": "f", "args": None}}]},
    {"role": "model", "parts": [call(id="a"), call(id="a", x=1)]},
    {"role": "model", "parts": [{"executableCode": {"language": "PYTHON", "code": "1"}}, {"codeExecutionResult": {"outcome": "OUTCOME_OK"}}]},
    {"role": "model", "parts": [{"inlineData": {"mimeType": "image/png", "data": "AA=="}, "thoughtSignature": "YQ=="}]},
    {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {"a_b": {"cD": 1}}, "new_key": 1}, "thought_signature": "YQ=="}]},
    {"role": "user", "parts": [{"functionResponse": None, "text": "x"}, {"odd": 1}]},
    {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": "a text"}}]},
    {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"output": {"a": 1}}}}, {"text": "and"}]},
    {"role": "user", "parts": [{"fileData": {"fileUri": "gs://x"}, "videoMetadata": {"fps": 1}}, {"text": ""}]},
    {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"x": 1}, "parts": [{"inlineData": {"mimeType": "image/png", "data": "AA==", "displayName": "x"}}]}}]},
]  # fmt: skip


@pytest.mark.parametrize("content", ODD_CONTENTS)
@pytest.mark.parametrize("spell", [lambda raw: raw, to_snake_case], ids=["camel", "snake"])
def test_odd_contents_come_back_as_they_were(content: Part, spell: Any) -> None:
    raw = spell(content)
    assert encode_messages(decode_messages([raw])) == [raw]
    assert encode_messages(decode_messages([raw, raw])) == [raw, raw]


def test_a_text_alone_is_what_the_user_says() -> None:
    assert decode_messages("hello") == decode_messages(["hello"]) == [TextMessage("user", "hello")]


def test_reads_the_objects_of_the_sdk() -> None:
    parts: list[Part] = [
        {"text": "hm", "thought": True},
        {"text": "so"},
        call(signature="YWJj", a_b=1),
        call(id="1", x=[1.5]),
    ]
    body = answer_of(*parts, usageMetadata={"promptTokenCount": 3}, modelVersion="gemini-3-pro")
    typed = types.GenerateContentResponse.model_validate(body)
    assert decode_response(typed) == streamed(typed) == decode_response(body)
    image = {"inlineData": {"mimeType": "image/png", "data": "YWJj"}}
    response = {"functionResponse": {"name": "f", "response": {"output": "1"}, "parts": [image]}}
    contents = [body["candidates"][0]["content"], {"role": "user", "parts": [response, image, {"text": "see"}]}]
    objects = [types.Content.model_validate(one) for one in contents]
    assert encode_messages(decode_messages(objects)) == contents
    dumped = decode_messages([one.model_dump(mode="json", exclude_none=True) for one in objects])
    assert [_bare(one) for one in dumped] == [_bare(one) for one in decode_messages(contents)]
    declared = types.Tool.model_validate({"functionDeclarations": [{"name": "f", "description": "F.", "parameters": {"type": "OBJECT", "properties": {"n": {"type": "INTEGER", "nullable": True}}}}]})  # fmt: skip
    [definition] = decode_tools([declared])
    assert isinstance(definition, ToolDefinition)
    assert definition.parameters == {"type": "object", "properties": {"n": {"type": ["integer", "null"]}}}
    config = types.ToolConfig.model_validate({"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]}})
    assert decode_choice(config) == NamedTool("f")
    grows = [pieces(value("$.a", numberValue=1), name="f"), pieces(value("$.b", stringValue="x"), follows=False)]
    chunks = [answer_of(one, word=None) for one in grows]
    assert streamed(*map(types.GenerateContentResponse.model_validate, chunks)) == streamed(*chunks)


@pytest.mark.parametrize(
    ("kind", "given_value", "response"),
    [
        ("text", "7", {"output": "7"}),
        ("data", "7", {"output": "7"}),
        ("data", 7, {"output": 7}),
        ("data", [1], {"output": [1]}),
        ("data", {"é": [1]}, {"é": [1]}),
        ("error", "no", {"error": "no"}),
    ],
)
def test_results(kind: Any, given_value: Any, response: Any) -> None:
    [content] = encode_messages([ToolResultMessage(ToolResult("1", "f", kind, given_value))])
    assert content == {"role": "user", "parts": [{"functionResponse": {"id": "1", "name": "f", "response": response}}]}


def test_media_of_a_result_go_beside_its_text() -> None:
    blocks = (ContentBlock("text", text="see"), ContentBlock("image", "image/png", data="AA=="), ContentBlock("document", "application/pdf", url="gs://x"))  # fmt: skip
    message = ToolResultMessage(ToolResult("1", "f", "multimodal", blocks))
    [content] = encode_messages([message])
    assert content["parts"][0]["functionResponse"] == {
        "id": "1", "name": "f", "response": {"output": "see"},
        "parts": [{"inlineData": {"mimeType": "image/png", "data": "AA=="}}, {"fileData": {"fileUri": "gs://x", "mimeType": "application/pdf"}}],
    }  # fmt: skip
    assert decode_messages([content]) == [message]


@pytest.mark.parametrize("spell", [lambda raw: raw, to_snake_case], ids=["camel", "snake"])
def test_what_is_changed_is_what_is_sent(spell: Any) -> None:
    thought, code = {"text": "hm", "thought": True}, {"executableCode": {"language": "PYTHON", "code": "1"}}
    raw = spell([
        {"role": "user", "parts": [{"text": "old", "partMetadata": {"x": 1}}, {"odd": 1}]},
        {"role": "model", "parts": [thought, {"text": "old"}, code, call(id="1", signature="YQ==", a=1)]},
        {"role": "user", "parts": [{"functionResponse": {"id": "1", "name": "f", "response": {"output": "old"}, "willContinue": False}}]},
    ])  # fmt: skip
    user, turn, result = decode_messages(raw)
    assert isinstance(user, TextMessage)
    assert isinstance(turn, AssistantToolCallMessage)
    assert isinstance(result, ToolResultMessage)
    changed: list[ChatMessage] = [
        dataclasses.replace(user, content=[ContentBlock("text", text="new")]),
        dataclasses.replace(turn, content="new", tool_calls=[ToolCall("1", "f", {"a": 2}, turn.tool_calls[0].metadata)]),
        dataclasses.replace(result, result=dataclasses.replace(result.result, value="new")),
    ]  # fmt: skip
    assert encode_messages(changed) == spell([
        {"role": "user", "parts": [{"text": "new", "partMetadata": {"x": 1}}, {"odd": 1}]},
        {"role": "model", "parts": [thought, {"text": "new"}, code, call(id="1", signature="YQ==", a=2)]},
        {"role": "user", "parts": [{"functionResponse": {"id": "1", "name": "f", "response": {"output": "new"}, "willContinue": False}}]},
    ])  # fmt: skip


@pytest.mark.parametrize(
    ("minted", "asked", "signed"),
    [
        ("gemini-3-pro-preview", "gemini-3-flash", True),
        ("gemini-3-pro-preview", "models/gemini-3.1-pro", True),
        ("gemini-3-pro-preview", "gemini-2.5-pro", False),
        ("gemini-3-pro-preview", "gemini-30-pro", False),
        ("gemini-3-pro-preview", "gemini-flash-latest", True),
        ("gemini-3-pro-preview", "projects/p/locations/l/endpoints/123", True),
        ("gemini-3-pro-preview", None, True),
    ],
)
@pytest.mark.parametrize("spell", [lambda raw: raw, to_snake_case], ids=["camel", "snake"])
def test_a_signature_goes_only_to_the_family_that_made_it(minted: str, asked: str | None, signed: bool, spell: Any) -> None:  # fmt: skip
    parts = [{"text": "so", "thoughtSignature": "YQ=="}, call(signature="YQ=="), {"text": "", "thought": True, "thoughtSignature": "YQ=="}]  # fmt: skip
    result = decode_response(spell(answer_of(*parts, modelVersion=minted)))
    assert ("YQ==" in json.dumps(encode_messages([result.message()], asked))) is signed
    [content] = encode_messages([result.message()], asked)
    assert [part.get("text") for part in content["parts"] if "functionCall" not in part][:1] == ["so"]
    assert any("functionCall" in part for part in content["parts"])


def test_what_another_provider_keeps_is_its_own() -> None:
    other = {"anthropic": {"layout": [{"native": {"type": "thinking"}}]}, "openai_chat": {"signature": "s"}}
    made = AssistantToolCallMessage("so", [ToolCall("a", "f", {}, other)], other)
    assert encode_messages([made]) == [{"role": "model", "parts": [{"text": "so"}, call(id="a")]}]


TEXT = st.text(max_size=20)
CALLS = st.builds(ToolCall, st.uuids().map(str), st.text("abc_", min_size=1), st.dictionaries(TEXT, st.integers() | TEXT, max_size=3))  # fmt: skip
MESSAGES: st.SearchStrategy[ChatMessage] = st.one_of(
    st.builds(TextMessage, st.sampled_from(["user", "assistant"]), st.text(min_size=1, max_size=20)),
    st.builds(AssistantToolCallMessage, TEXT, st.lists(CALLS, min_size=1, max_size=3)),
    st.builds(ToolResultMessage, st.builds(ToolResult, st.just("id"), st.just("f"), st.just("text"), TEXT)),
)


@tries(50)
@given(st.lists(MESSAGES, max_size=5))
def test_there_and_back(messages: list[ChatMessage]) -> None:
    sent = json.loads(json.dumps(encode_messages(messages)))
    back = decode_messages(sent)
    assert encode_messages(back) == sent
    assert [_bare(message) for message in back] == [_bare(message) for message in messages]


def _bare(message: ChatMessage) -> Any:
    if isinstance(message, AssistantToolCallMessage):
        return message.content, [(call.id, call.name, call.arguments) for call in message.tool_calls]
    return (message.role, message.content) if isinstance(message, TextMessage) else message.result.value


def test_definitions_and_choices() -> None:
    made = ToolDefinition("a tool", "F.", JsonObject({"type": "object"}))
    search = NativeTool("gemini", JsonObject({"googleSearch": {}}))
    sent = encode_tools([made, made, search, made])
    declared = {"name": alias("a tool"), "description": "F.", "parametersJsonSchema": {"type": "object"}}
    assert sent == [{"functionDeclarations": [declared, declared]}, {"googleSearch": {}}, {"functionDeclarations": [declared]}]  # fmt: skip
    assert encode_tools(decode_tools(sent)) == sent
    for choice in ("auto", "none", "required", NamedTool("f")):
        assert decode_choice(encode_choice(choice)) == choice
    several = {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f", "g"]}}
    assert encode_choice(decode_choice(several)) == several
    assert encode_messages([AssistantToolCallMessage("", [ToolCall("1", "a tool", {})])])[0]["parts"] == [call(alias("a tool"), id="1")]  # fmt: skip


@pytest.mark.parametrize(
    "tools",
    [
        [{"function_declarations": [{"name": "f", "description": "F.", "parameters_json_schema": {"type": "object"}}, {"name": "g"}]}],
        [{"functionDeclarations": [{"name": "f"}]}, {"functionDeclarations": [{"name": "g", "parameters": {"type": "OBJECT"}}]}],
        [{"functionDeclarations": [{"name": "f"}], "googleSearch": {}}, {"functionDeclarations": [{"name": "g"}]}],
        [{"functionDeclarations": []}, {"functionDeclarations": [{"name": "g", "behavior": "NON_BLOCKING"}]}, {}],
    ],
)  # fmt: skip
def test_lists_of_tools_come_back_as_they_were(tools: list[Part]) -> None:
    assert encode_tools(decode_tools(tools)) == tools
    assert any(isinstance(one, ToolDefinition) for one in decode_tools(tools))


@pytest.mark.slow
def test_importing_the_adapter_loads_no_sdk() -> None:
    code = "import sys, toolkit.adapters.gemini; print([m for m in ('google.genai', 'httpx', 'asyncio') if m in sys.modules])"  # fmt: skip
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
