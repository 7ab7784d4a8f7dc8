"""Every way an answer can end. The SDKs' own types say which words there are, so that a new word is noticed."""

from __future__ import annotations

import typing
from importlib import import_module
from typing import Any

import anthropic.types
import anthropic.types.beta
import openai.types.chat.chat_completion as chat
import openai.types.responses as responses
import pytest
from google.genai import types as genai

from tests.adapters.metadata import metadata_of
from toolkit import QueryResult
from toolkit.adapters import answers as finish_reasons
from toolkit.adapters.openai_responses.codec import CLIENT_RUN
from toolkit.wire import FinishReason

# -- every word is known -------------------------------------------------------------------------------------------------


def literals(annotation: Any) -> set[str]:
    """All texts in a type, however deep."""
    inside = typing.get_args(annotation)
    found = {annotation} if isinstance(annotation, str) else set()
    return found.union(*map(literals, inside)) if inside else found


WORDS = {
    "openai_chat": (literals(chat.Choice.model_fields["finish_reason"].annotation), finish_reasons.OPENAI_CHAT),
    "status of openai_responses": (
        literals(responses.Response.model_fields["status"].annotation),
        finish_reasons.OPENAI_RESPONSES,
    ),
    "reasons of openai_responses": (
        literals(responses.response.IncompleteDetails.model_fields["reason"].annotation),
        finish_reasons.OPENAI_RESPONSES,
    ),
    "errors of openai_responses": (
        literals(responses.ResponseError.model_fields["code"].annotation),
        finish_reasons.OPENAI_ERRORS,
    ),
    "anthropic": (literals(anthropic.types.StopReason), finish_reasons.ANTHROPIC),
    "beta of anthropic": (literals(anthropic.types.beta.BetaStopReason), finish_reasons.ANTHROPIC),
    "gemini": ({reason.value for reason in genai.FinishReason}, finish_reasons.GEMINI),
    "blocks of gemini": ({reason.value for reason in genai.BlockedReason}, finish_reasons.GEMINI_BLOCKS),
}


@pytest.mark.parametrize("name", WORDS)
def test_every_word_of_the_sdk_has_a_meaning(name: str) -> None:
    words, table = WORDS[name]
    assert len(words) > 3, "the SDK moved its types"
    assert words <= table.keys()


SERVER_RUN = {
    "message", "reasoning", "function_call", "custom_tool_call", "file_search_call", "web_search_call", "image_generation_call",
    "code_interpreter_call", "mcp_call", "mcp_list_tools", "compaction", "program", "program_output", "additional_tools",
    "function_call_output", "custom_tool_call_output",
}  # fmt: skip


def test_every_kind_of_item_is_the_clients_or_the_servers() -> None:
    items = typing.get_args(typing.get_args(responses.ResponseOutputItem)[0])
    kinds = set().union(*(literals(item.model_fields["type"].annotation) for item in items))
    assert len(kinds) > 20
    assert kinds == SERVER_RUN | CLIENT_RUN.keys() | set(CLIENT_RUN.values())


def test_langchain_knows_the_words_of_all() -> None:
    for _, table in WORDS.values():
        if table not in (finish_reasons.OPENAI_ERRORS, finish_reasons.GEMINI_BLOCKS):
            assert {word.lower() for word in table} <= finish_reasons.LANGCHAIN.keys()


# -- which reason is reported --------------------------------------------------------------------------------------------


def chat_answer(word: str, **message: Any) -> QueryResult:
    return decode("openai_chat", {"choices": [{"message": {"role": "assistant", "content": "x", **message}, "finish_reason": word}]})  # fmt: skip


def decode(adapter: str, answer: Any) -> QueryResult:
    result: QueryResult = import_module(f"toolkit.adapters.{adapter}").decode_response(answer)
    return result


FUNCTION = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
MESSAGE = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "x"}]}
REFUSAL = {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "I will not."}]}
CALL = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
SHELL = {"type": "shell_call", "id": "s1", "call_id": "c2", "action": {"commands": ["ls"]}, "status": "completed"}
IN_CONTAINER = {"environment": {"type": "container_reference", "container_id": "x"}}
APPROVAL = {"type": "mcp_approval_request", "id": "a1", "name": "delete", "arguments": "{}", "server_label": "db"}

ENDS: dict[str, tuple[QueryResult, FinishReason]] = {
    "chat: a refusal": (chat_answer("stop", refusal="I will not."), "refused"),
    "chat: an empty refusal is none": (chat_answer("stop", refusal=""), "stop"),
    "chat: a refusal comes before calls": (chat_answer("stop", refusal="no", tool_calls=[FUNCTION]), "refused"),
    "chat: filtered": (chat_answer("content_filter"), "filtered"),
    "chat: filtered comes before refused": (chat_answer("content_filter", refusal="no"), "filtered"),
    "chat: calls announced, none made": (chat_answer("tool_calls"), "stop"),
    "chat: a filtered prompt": (decode("openai_chat", {"error": {"code": "content_filter"}}), "filtered"),
    "chat: another error": (decode("openai_chat", {"error": {"code": "no_such_model"}}), "error"),
    "anthropic: refusal": (decode("anthropic", {"content": [], "stop_reason": "refusal"}), "refused"),
    "anthropic: paused": (decode("anthropic", {"content": [], "stop_reason": "pause_turn"}), "paused"),
    "anthropic: paused with a call": (
        decode("anthropic", {"content": [{"type": "tool_use", "id": "c1", "name": "f", "input": {}}], "stop_reason": "pause_turn"}),
        "tool_calls",
    ),
    "gemini: a blocked prompt": (decode("gemini", {"promptFeedback": {"blockReason": "JAILBREAK"}}), "filtered"),
    "gemini: a new word for it": (decode("gemini", {"promptFeedback": {"blockReason": "NEW"}}), "filtered"),
    "gemini: neither blocked nor answered": (decode("gemini", {"promptFeedback": {}}), "error"),
    "bedrock: a guardrail": (
        decode("bedrock", {"output": {"message": {"content": [{"text": "x"}]}}, "stopReason": "guardrail_intervened"}),
        "filtered",
    ),
    "cohere: toxic": (decode("cohere", {"message": {"content": []}, "finish_reason": "ERROR_TOXIC"}), "filtered"),
    "ollama: loaded": (decode("ollama", {"message": {"content": ""}, "done_reason": "load"}), "stop"),
    "langchain: paused": (
        decode("langchain", {"type": "ai", "data": {"type": "ai", "content": "", "response_metadata": {"stop_reason": "pause_turn"}}}),
        "paused",
    ),
    "langchain: incomplete": (
        decode("langchain", {"type": "ai", "data": {"type": "ai", "content": "", "response_metadata": {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}}}),
        "filtered",
    ),
    "langchain: refusal": (
        decode("langchain", {"type": "ai", "data": {"type": "ai", "content": "", "additional_kwargs": {"refusal": "no"}}}),
        "refused",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ENDS)
def test_an_end_that_is_no_plain_stop(name: str) -> None:
    result, expected = ENDS[name]
    assert result.finish_reason == expected


RESPONSES: dict[str, tuple[list[Any], dict[str, Any], FinishReason]] = {
    "plain": ([MESSAGE], {}, "stop"),
    "refusal": ([REFUSAL], {}, "refused"),
    "filtered": ([MESSAGE], {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, "filtered"),
    "cut": ([MESSAGE], {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "length"),
    "cut for a new reason": ([MESSAGE], {"status": "incomplete", "incomplete_details": {"reason": "new"}}, "length"),
    "steered": ([MESSAGE], {"status": "incomplete", "incomplete_details": {"reason": "steered"}}, "paused"),
    "in the background": ([], {"status": "queued"}, "needs_action"),
    "failed": ([], {"status": "failed", "error": {"code": "server_error"}}, "error"),
    "failed for a policy": ([], {"status": "failed", "error": {"code": "bio_policy"}}, "filtered"),
    "a shell command": ([SHELL], {}, "needs_action"),
    "a shell command that the server ran": ([{**SHELL, **IN_CONTAINER}], {}, "stop"),
    "a shell command and its output": ([SHELL, {"type": "shell_call_output", "call_id": "c2", "output": []}], {}, "stop"),
    "an approval": ([APPROVAL], {}, "needs_action"),
    "an approval and a call": ([APPROVAL, CALL], {}, "tool_calls"),
    "a refusal and an approval": ([REFUSAL, APPROVAL], {}, "refused"),
    "a search for tools by the client": ([{"type": "tool_search_call", "id": "t", "execution": "client"}], {}, "needs_action"),
    "a search for tools by the server": ([{"type": "tool_search_call", "id": "t", "execution": "server"}], {}, "stop"),
}  # fmt: skip
LAST = {"failed": "failed", "incomplete": "incomplete"}


@pytest.mark.parametrize("name", RESPONSES)
def test_the_ends_of_responses_streamed_or_not(name: str) -> None:
    output, more, expected = RESPONSES[name]
    answer = {"id": "r1", "status": "completed", "output": output, **more}
    assert decode("openai_responses", answer).finish_reason == expected
    streamed = import_module("toolkit.adapters.openai_responses").Accumulator()
    for place, item in enumerate(output):
        streamed.feed({"type": "response.output_item.done", "output_index": place, "item": item})
    streamed.feed({"type": f"response.{LAST.get(answer['status'], 'completed')}", "response": {**answer, "output": []}})
    assert streamed.result().finish_reason == expected


@pytest.mark.parametrize("kind", ["computer_call", "shell_call", "local_shell_call", "apply_patch_call", "mcp_approval_request"])  # fmt: skip
def test_what_the_client_must_do_is_in_the_metadata(kind: str) -> None:
    item = {"type": kind, "id": "i1", "call_id": "c1"}
    result = decode("openai_responses", {"status": "completed", "output": [MESSAGE, item]})
    assert result.finish_reason == "needs_action"
    assert metadata_of(result, "openai_responses")["needs_action"] == [item]


def test_a_refusal_that_is_streamed_is_one_also_when_the_stream_is_cut() -> None:
    streamed = import_module("toolkit.adapters.openai_responses").Accumulator()
    for piece in ("I will ", "not."):
        assert streamed.feed({"type": "response.refusal.delta", "output_index": 0, "content_index": 0, "delta": piece}) == ""  # fmt: skip
    assert streamed.result().finish_reason == "error"
    streamed.feed({"type": "response.completed", "response": {"status": "completed", "output": []}})
    assert streamed.result().finish_reason == "refused"
    [entry] = metadata_of(streamed.result(), "openai_responses")["layout"]
    assert entry["text"]["content"] == [{"type": "refusal", "refusal": "I will not."}]


def test_a_refusal_of_chat_that_is_streamed() -> None:
    streamed = import_module("toolkit.adapters.openai_chat").Accumulator()
    for delta in ({"role": "assistant", "refusal": "I will "}, {"refusal": "not."}):
        assert streamed.feed({"choices": [{"index": 0, "delta": delta}]}) == ""
    streamed.feed({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    result = streamed.result()
    assert (result.finish_reason, result.content) == ("refused", "")
    assert metadata_of(result, "openai_chat")["extra"] == {"refusal": "I will not."}
