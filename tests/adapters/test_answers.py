"""What an answer tells besides its text and calls: reasoning, token counts with one meaning, sources, state, the raw response."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import Any

import openai
import pytest

from tests.adapters.loopback import Answer, serve
from tests.adapters.matrix import ADAPTERS as COLUMNS
from tests.adapters.matrix import THOUGHT
from tests.adapters.metadata import metadata_of
from tests.adapters.streams import read_stream
from toolkit import JsonObject, QueryOptions, QueryResult, ToolDefinition, Usage
from toolkit.adapters.openai_chat import AsyncOpenAIChatDriver, OpenAIChatDriver
from toolkit.wire import AnswerEnded, AnswerEvent, CallCompleted, Reasoning, TextDelta, UsageUpdate, from_json, to_json


def decode(adapter: str, answer: Any) -> QueryResult:
    result: QueryResult = import_module(f"toolkit.adapters.{adapter}").decode_response(answer)
    return result


# -- reasoning -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: str(column.module))
def test_reasoning_is_shown_by_every_provider(column: Any) -> None:
    result = column.decode_response(column.thinking)
    assert result.reasoning == [Reasoning(THOUGHT)]
    assert from_json(to_json(result)).reasoning == result.reasoning


def chat(**message: Any) -> Any:
    return {"choices": [{"message": {"role": "assistant", "content": "so", **message}, "finish_reason": "stop"}]}


REASONING: dict[str, tuple[str, Any, list[Reasoning]]] = {
    "chat, none": ("openai_chat", chat(), []),
    "chat, OpenRouter": ("openai_chat", chat(reasoning="hm", reasoning_details=[{"type": "reasoning.text", "text": "hm"}]), [Reasoning("hm")]),
    "chat, details alone": ("openai_chat", chat(reasoning_details=[{"type": "reasoning.summary", "summary": "hm"}]), [Reasoning("hm")]),
    "chat, encrypted": ("openai_chat", chat(reasoning_details=[{"type": "reasoning.encrypted", "data": "x"}]), [Reasoning(is_hidden=True)]),
    "chat, Mistral": ("openai_chat", chat(content=[{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "so"}]), [Reasoning("hm")]),
    "responses, encrypted": ("openai_responses", {"status": "completed", "output": [{"type": "reasoning", "summary": [], "encrypted_content": "x"}]}, [Reasoning(is_hidden=True)]),
    "responses, texts": ("openai_responses", {"status": "completed", "output": [{"type": "reasoning", "summary": [{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}], "content": [{"type": "reasoning_text", "text": "c"}]}]}, [Reasoning("a"), Reasoning("b"), Reasoning("c")]),
    "anthropic, redacted": ("anthropic", {"content": [{"type": "redacted_thinking", "data": "x"}], "stop_reason": "end_turn"}, [Reasoning(is_hidden=True)]),
    "anthropic, left out": ("anthropic", {"content": [{"type": "thinking", "thinking": "", "signature": "s"}], "stop_reason": "end_turn"}, [Reasoning(is_hidden=True)]),
    "bedrock, redacted": ("bedrock", {"output": {"message": {"content": [{"reasoningContent": {"redactedContent": "eA=="}}]}}, "stopReason": "end_turn"}, [Reasoning(is_hidden=True)]),
    "cohere, thinking": ("cohere", {"message": {"content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "so"}]}, "finish_reason": "COMPLETE"}, [Reasoning("hm")]),
    "langchain, OpenAI": ("langchain", {"type": "ai", "data": {"type": "ai", "content": [{"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}]}}, [Reasoning("hm")]),
    "langchain, DeepSeek": ("langchain", {"type": "ai", "data": {"type": "ai", "content": "so", "additional_kwargs": {"reasoning_content": "hm"}}}, [Reasoning("hm")]),
}  # fmt: skip


@pytest.mark.parametrize("name", REASONING)
def test_reasoning_is_found_wherever_servers_put_it(name: str) -> None:
    adapter, answer, expected = REASONING[name]
    assert decode(adapter, answer).reasoning == expected


def test_a_cut_stream_of_responses_keeps_its_reasoning() -> None:
    item = {"type": "reasoning", "id": "r1", "summary": []}
    delta = {"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 0, "delta": "h"}
    added = {"type": "response.output_item.added", "output_index": 0, "item": item}
    result = read_stream("openai_responses", [added, delta, {**delta, "delta": "m"}])
    assert (result.reasoning, result.finish_reason) == ([Reasoning("hm")], "error")


# -- token counts --------------------------------------------------------------------------------------------------------

USAGE: dict[str, tuple[str, Any, Usage]] = {
    "chat": ("openai_chat", {**chat(), "usage": {"prompt_tokens": 10, "completion_tokens": 7, "total_tokens": 17, "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2}, "completion_tokens_details": {"reasoning_tokens": 3}}}, Usage(10, 7, 4, 3, 2)),
    "chat, xAI counts reasoning in the total only": ("openai_chat", {**chat(), "usage": {"prompt_tokens": 291, "completion_tokens": 26, "total_tokens": 513, "completion_tokens_details": {"reasoning_tokens": 196}}}, Usage(291, 222, None, 196)),
    "chat, Gemini counts it nowhere else": ("openai_chat", {**chat(), "usage": {"prompt_tokens": 35, "completion_tokens": 12, "total_tokens": 109}}, Usage(35, 74, None, 62)),
    "chat, DeepSeek": ("openai_chat", {**chat(), "usage": {"prompt_tokens": 10, "completion_tokens": 7, "prompt_cache_hit_tokens": 4}}, Usage(10, 7, 4)),
    "chat, Mistral": ("openai_chat", {**chat(), "usage": {"prompt_tokens": 10, "completion_tokens": 7, "total_tokens": 17, "num_cached_tokens": 4}}, Usage(10, 7, 4)),
    "responses": ("openai_responses", {"output": [], "usage": {"input_tokens": 10, "output_tokens": 7, "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2}, "output_tokens_details": {"reasoning_tokens": 3}}}, Usage(10, 7, 4, 3, 2)),
    "anthropic counts the cache apart": ("anthropic", {"content": [], "usage": {"input_tokens": 4, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 2, "output_tokens": 7, "output_tokens_details": {"thinking_tokens": 3}}}, Usage(10, 7, 4, 3, 2)),
    "bedrock counts the cache apart": ("bedrock", {"output": {"message": {"content": []}}, "usage": {"inputTokens": 4, "cacheReadInputTokens": 4, "cacheWriteInputTokens": 2, "outputTokens": 7}}, Usage(10, 7, 4, None, 2)),
    "gemini counts thoughts and tools apart": ("gemini", {"candidates": [{}], "usageMetadata": {"promptTokenCount": 8, "toolUsePromptTokenCount": 2, "cachedContentTokenCount": 4, "candidatesTokenCount": 4, "thoughtsTokenCount": 3, "totalTokenCount": 17}}, Usage(10, 7, 4, 3)),
    "ollama": ("ollama", {"message": {}, "prompt_eval_count": 10, "eval_count": 7}, Usage(10, 7)),
    "cohere": ("cohere", {"message": {"content": []}, "usage": {"tokens": {"input_tokens": 10.0, "output_tokens": 7}, "billed_units": {"input_tokens": 1}, "cached_tokens": 4}}, Usage(10, 7, 4)),
    "langchain": ("langchain", {"type": "ai", "data": {"type": "ai", "content": "", "usage_metadata": {"input_tokens": 10, "output_tokens": 7, "total_tokens": 17, "input_token_details": {"cache_read": 4, "cache_creation": 2}, "output_token_details": {"reasoning": 3}}}}, Usage(10, 7, 4, 3, 2)),
}  # fmt: skip


@pytest.mark.parametrize("name", USAGE)
def test_token_counts_have_one_meaning(name: str) -> None:
    adapter, answer, expected = USAGE[name]
    assert decode(adapter, answer).usage == expected


@pytest.mark.parametrize(("adapter", "key"), [("openai_chat", "usage"), ("openai_responses", "usage"), ("anthropic", "usage"), ("bedrock", "usage"), ("gemini", "usageMetadata"), ("cohere", "usage")])  # fmt: skip
def test_what_else_a_provider_counts_is_in_the_metadata(adapter: str, key: str) -> None:
    [answer] = [answer for one, answer, _ in USAGE.values() if one == adapter][:1]
    answer = {**answer, key: {**answer[key], "searches": 3}}
    assert metadata_of(decode(adapter, answer), adapter)["usage"]["searches"] == 3


# -- sources and state ---------------------------------------------------------------------------------------------------

GROUNDING = {"webSearchQueries": ["q"], "groundingChunks": [{"web": {"uri": "https://a"}}]}
CITATIONS = {"citations": [{"startIndex": 0, "endIndex": 2, "uri": "https://a"}]}


def test_sources_of_gemini_are_kept() -> None:
    candidate = {"content": {"parts": [{"text": "so"}]}, "finishReason": "STOP", "groundingMetadata": GROUNDING, "citationMetadata": CITATIONS, "urlContextMetadata": {"urlMetadata": []}, "safetyRatings": [{"category": "X"}], "finishMessage": "done"}  # fmt: skip
    kept = metadata_of(decode("gemini", {"candidates": [candidate]}), "gemini")
    assert {key: kept[key] for key in candidate if key not in ("content", "finishReason")} == {
        key: value for key, value in candidate.items() if key not in ("content", "finishReason")
    }


def test_sources_of_gemini_are_kept_in_streams() -> None:
    more = {"groundingChunks": [{"web": {"uri": "https://a"}}, {"web": {"uri": "https://b"}}], "searchEntryPoint": {}}
    result = read_stream(
        "gemini",
        [
            {"candidates": [{"content": {"parts": [{"text": "s"}]}, "groundingMetadata": GROUNDING}]},
            {"candidates": [{"content": {"parts": [{"text": "o"}]}, "citation_metadata": CITATIONS}]},
            {"candidates": [{"content": {}, "finishReason": "STOP", "groundingMetadata": more}]},
        ],
    )
    kept = metadata_of(result, "gemini")
    assert (result.content, kept["groundingMetadata"]) == ("so", {"webSearchQueries": ["q"], **more})
    assert kept["citationMetadata"] == CITATIONS


STATE = {"id": "resp_2", "model": "m", "conversation": {"id": "conv_1"}, "previous_response_id": "resp_1"}


def test_the_state_of_the_conversation_is_kept() -> None:
    result = decode("openai_responses", {**STATE, "status": "completed", "output": []})
    assert metadata_of(result, "openai_responses").items() >= STATE.items()


def test_the_state_of_the_conversation_is_kept_when_a_stream_is_cut() -> None:
    created = {"type": "response.created", "response": {**STATE, "status": "in_progress", "output": []}}
    text = {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "so"}
    result = read_stream("openai_responses", [created, text])
    assert (result.content, result.finish_reason) == ("so", "error")
    assert metadata_of(result, "openai_responses").items() >= STATE.items()


# -- drivers -------------------------------------------------------------------------------------------------------------

CHUNK = {"id": "x", "object": "chat.completion.chunk", "created": 0, "model": "m"}
PIECE = {"index": 0, "id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a":1,"b":null}'}}
COUNTED = {"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8}


def event(delta: Any, finish: str | None = None) -> tuple[None, Any]:
    return None, {**CHUNK, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


EVENTS: list[tuple[str | None, Any]] = [
    event({"content": "s"}),
    event({"content": "o"}),
    event({"tool_calls": [PIECE]}),
    event({}, "tool_calls"),
    (None, {**CHUNK, "choices": [], "usage": COUNTED}),
    (None, "[DONE]"),
]
OPTIONAL = JsonObject({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a"], "additionalProperties": False})  # fmt: skip
STRICT = QueryOptions(tools=[ToolDefinition("add", "Adds.", OPTIONAL)], strict=True)


def read_all(kind: str, url: str) -> list[AnswerEvent]:
    async def later() -> list[AnswerEvent]:
        async with openai.AsyncOpenAI(api_key="k", base_url=f"{url}/v1", max_retries=0) as client:
            answer = await AsyncOpenAIChatDriver(client, model="m").stream_query("hello", STRICT)
            return [one async for one in answer.events]

    if kind == "async":
        return asyncio.run(later())
    with openai.OpenAI(api_key="k", base_url=f"{url}/v1", max_retries=0) as client:
        return list(OpenAIChatDriver(client, model="m").stream_query("hello", STRICT).events)


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_driver_yields_events_and_ends_with_the_answer(kind: str) -> None:
    with serve(Answer(events=EVENTS)) as server:
        events = read_all(kind, server.url)
    ended = events[-1]
    assert isinstance(ended, AnswerEnded)
    [call] = ended.result.tool_calls
    assert call.arguments == {"a": 1}, "in the form of the tool's own schema, not of strict mode"
    assert [one for one in events if isinstance(one, TextDelta | UsageUpdate | CallCompleted)] == [
        TextDelta("s"), TextDelta("o"), CallCompleted(call), UsageUpdate(Usage(3, 5)),
    ]  # fmt: skip
    assert isinstance(ended.result.raw, list)
    assert [type(one).__name__ for one in ended.result.raw] == ["ChatCompletionChunk"] * 5


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_stream_that_breaks_ends_with_what_came(kind: str) -> None:
    with serve(Answer(events=EVENTS[:2], cut=True)) as server:
        *events, ended = read_all(kind, server.url)
    assert events == [TextDelta("s"), TextDelta("o")]
    assert isinstance(ended, AnswerEnded)
    assert (ended.result.content, ended.result.finish_reason) == ("so", "error")


def test_text_and_events_are_read_from_one_request() -> None:
    with serve(Answer(events=EVENTS)) as server, openai.OpenAI(api_key="k", base_url=f"{server.url}/v1") as client:
        answer = OpenAIChatDriver(client, model="m").stream_query("hello")
        assert next(answer.stream) == "s"
        assert next(answer.events) == TextDelta("o")
        assert list(answer.stream) == []
        assert answer.result.content == "so"
        assert list(answer.events) == []
    assert len(server.requests) == 1


def test_a_stream_that_is_closed_before_it_is_read_sends_nothing() -> None:
    with serve(Answer(events=EVENTS)) as server, openai.OpenAI(api_key="k", base_url=f"{server.url}/v1") as client:
        answer = OpenAIChatDriver(client, model="m").stream_query("hello")
        answer.stream.close()
        assert answer.result.finish_reason == "error"
    assert server.requests == []


def test_the_raw_response_is_there_and_not_stored() -> None:
    body = {"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "so"}}]}  # fmt: skip
    with serve(Answer(body)) as server, openai.OpenAI(api_key="k", base_url=f"{server.url}/v1") as client:
        result = OpenAIChatDriver(client, model="m").query("hello")
    assert isinstance(result.raw, openai.types.chat.ChatCompletion)
    assert from_json(to_json(result)) == result
    assert from_json(to_json(result)).raw is None


def test_a_prompt_that_a_filter_refused_is_filtered() -> None:
    refused = Answer({"error": {"message": "filtered", "code": "content_filter"}}, 400)
    with serve(refused) as server, openai.OpenAI(api_key="k", base_url=f"{server.url}/v1", max_retries=0) as client:
        result = OpenAIChatDriver(client, model="m").query("hello")
    assert result.finish_reason == "filtered"
    assert isinstance(result.metadata["error"], openai.BadRequestError)
