"""What crosses the border: base64 of Google's SDK, and calls that another model made."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from google.genai import types

from toolkit import ContentBlock, TextMessage, ToolCall, ToolResult, ToolResultMessage
from toolkit.adapters import anthropic, bedrock, ollama, openai_chat
from toolkit.adapters.gemini import decode_messages, decode_response, decode_tools, encode_messages, encode_tools
from toolkit.wire import AssistantToolCallMessage, ChatMessage, from_json, to_json

BYTES = bytes([251, 255, 254, 251, 240])
STANDARD, FOR_URLS = "+//++/A=", "-__--_A="
SKIP = "skip_thought_signature_validator"
CALLS = AssistantToolCallMessage("", [ToolCall("1", "f", {}), ToolCall("2", "g", {})])


# -- base64 ---------------------------------------------------------------------------------------------------------------


def test_bytes_of_the_sdk_become_standard_base64() -> None:
    content = types.Content(role="user", parts=[types.Part.from_bytes(data=BYTES, mime_type="image/png")])
    [message] = decode_messages([content])
    assert isinstance(message, TextMessage)
    assert [*message.content] == [ContentBlock("image", "image/png", data=STANDARD)]
    for adapter in (anthropic, openai_chat, ollama, bedrock):
        assert STANDARD in json.dumps(adapter.encode_messages([message]))
    assert (
        bedrock.boto3_messages(bedrock.encode_messages([message]))[0]["content"][0]["image"]["source"]["bytes"] == BYTES
    )


@pytest.mark.parametrize("data", [FOR_URLS, STANDARD, FOR_URLS.rstrip("="), "AAAA"])
@pytest.mark.parametrize(("key", "mime"), [("inlineData", "mimeType"), ("inline_data", "mime_type")])
def test_it_goes_back_in_the_alphabet_it_came_in(data: str, key: str, mime: str) -> None:
    part = {key: {mime: "image/png", "data": data}}
    response = {"name": "f", "response": {}, "parts": [part]}
    contents: list[dict[str, Any]] = [
        {"role": "user", "parts": [{"text": "see"}, part]},
        {"role": "model", "parts": [{"functionCall" if key == "inlineData" else "function_call": {"name": "f", "args": {"data": "a_b-c"}}}]},
        {"role": "user", "parts": [{"functionResponse" if key == "inlineData" else "function_response": response}]},
    ]  # fmt: skip
    messages = decode_messages(contents)
    assert encode_messages(from_json(to_json(messages))) == contents
    first = messages[0]
    assert isinstance(first, TextMessage) and isinstance(first.content[1], ContentBlock)
    assert base64.b64decode(first.content[1].data or "", validate=True)


def test_the_metadata_have_no_copy_of_the_data() -> None:
    data = base64.urlsafe_b64encode(BYTES * 1000).decode()
    [message] = decode_messages([{"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": data}}]}])
    assert len(json.dumps(message.metadata)) < 200


def test_the_sdk_reads_what_we_write() -> None:
    [content] = encode_messages([TextMessage("user", [ContentBlock("image", "image/png", data=STANDARD)])])
    part = types.Content.model_validate(content).parts[0]  # type: ignore[index]
    assert part.inline_data is not None and part.inline_data.data == BYTES


# -- signatures -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "signed"),
    [
        ("gemini-3-pro-preview", True),
        ("models/gemini-3.1-flash", True),
        ("gemini-10-pro", True),
        ("gemini-flash-latest", True),
        ("gemini-2.5-flash", False),
        ("projects/p/locations/l/endpoints/123", False),
        (None, False),
    ],
)
def test_calls_of_another_provider_get_what_google_documents_for_them(model: str | None, signed: bool) -> None:
    [content] = encode_messages([CALLS], model)
    first, second = content["parts"]
    assert first.get("thoughtSignature") == (SKIP if signed else None)
    assert "thoughtSignature" not in second, "only the first call of a turn has one"
    assert types.Content.model_validate(content).model_dump(mode="json", by_alias=True, exclude_none=True) == content


def test_real_signatures_stay_and_no_other_is_added() -> None:
    parts = [{"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "YQ=="}, {"functionCall": {"name": "g", "args": {}}}]  # fmt: skip
    answer = {"modelVersion": "gemini-3-pro", "candidates": [{"content": {"role": "model", "parts": parts}}]}
    assert encode_messages([decode_response(answer).message()], "gemini-3-pro")[0]["parts"] == parts
    later = encode_messages([decode_response(answer).message()], "gemini-4-pro")[0]["parts"]
    assert [part.get("thoughtSignature") for part in later] == [SKIP, None], "one of another family does not count"


def test_text_alone_needs_no_signature() -> None:
    [content] = encode_messages([TextMessage("assistant", "so")], "gemini-3-pro")
    assert content == {"role": "model", "parts": [{"text": "so"}]}


def test_an_empty_answer_of_another_model_is_left_out() -> None:
    messages: list[ChatMessage] = [TextMessage("user", "a"), TextMessage("assistant", ""), TextMessage("user", "b")]
    assert [content["role"] for content in encode_messages(messages)] == ["user", "user"]
    own = [{"role": "model", "parts": []}]
    assert encode_messages(decode_messages(own)) == own


# -- tools ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["functionDeclarations", "function_declarations"])
def test_one_tool_alone_is_read(key: str) -> None:
    tool = {key: [{"name": "f", "description": "F.", "parameters": {"type": "OBJECT"}}, {"name": "g"}]}
    assert [one.name for one in decode_tools(tool)] == ["f", "g"]  # type: ignore[union-attr]
    assert encode_tools(decode_tools(tool)) == [tool]


def test_one_tool_of_the_sdk_is_read() -> None:
    declared = types.FunctionDeclaration(name="f", description="F.", parameters_json_schema={"type": "object"})
    [found] = decode_tools(types.Tool(function_declarations=[declared]))
    assert (found.name, found.parameters) == ("f", {"type": "object"})  # type: ignore[union-attr]


def test_results_of_foreign_calls_have_their_ids() -> None:
    contents = encode_messages([CALLS, ToolResultMessage(ToolResult("2", "g", "text", "b"))], "gemini-3-pro")
    assert contents[1]["parts"][0]["functionResponse"]["id"] == "2"
