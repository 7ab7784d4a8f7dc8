"""Our own adapters pass the laws that we publish for the adapters of others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.adapters.matrix import ADAPTERS
from toolkit.adapters import anthropic, bedrock, cohere, gemini, langchain, ollama, openai_chat, openai_responses
from toolkit.testing import AdapterLaws

THINKING: dict[str, Any] = {one.module: one.thinking for one in ADAPTERS}


def chat(delta: Any, finish: str | None = None) -> Any:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def langchain_chunk(**data: Any) -> Any:
    return {"type": "AIMessageChunk", "data": {"content": "", "type": "AIMessageChunk", **data}}


class TestOpenAIChat(AdapterLaws):
    adapter = openai_chat
    answers: Mapping[str, object] = {"thinking": THINKING["openai_chat"]}
    streams: Mapping[str, Sequence[object]] = {
        "thinking": [
            chat({"role": "assistant", "reasoning_content": "first I "}),
            chat({"reasoning_content": "think"}),
            chat({"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": "{"}}]}),
            chat({"tool_calls": [{"index": 0, "function": {"arguments": "}"}}]}),
            chat({}, "tool_calls"),
        ]
    }  # fmt: skip


class TestOpenAIResponses(AdapterLaws):
    adapter = openai_responses
    answers: Mapping[str, object] = {"thinking": THINKING["openai_responses"]}
    streams: Mapping[str, Sequence[object]] = {
        "thinking": [
            {"type": "response.reasoning_summary_text.delta", "item_id": "r1", "output_index": 0, "summary_index": 0, "delta": "first I think"},
            {"type": "response.output_item.added", "output_index": 1, "item": {"type": "function_call", "id": "fc1", "call_id": "c1", "name": "f", "arguments": ""}},
            {"type": "response.function_call_arguments.delta", "item_id": "fc1", "output_index": 1, "delta": "{}"},
            {"type": "response.output_item.done", "output_index": 1, "item": {"type": "function_call", "id": "fc1", "call_id": "c1", "name": "f", "arguments": "{}", "status": "completed"}},
            {"type": "response.completed", "response": THINKING["openai_responses"]},
        ]
    }  # fmt: skip


class TestAnthropic(AdapterLaws):
    adapter = anthropic
    answers: Mapping[str, object] = {"thinking": THINKING["anthropic"]}
    streams: Mapping[str, Sequence[object]] = {
        "thinking": [
            {"type": "message_start", "message": {"id": "m1", "role": "assistant", "content": []}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "first I think"}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "s"}},
            {"type": "content_block_stop", "index": 0},
            {"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "c1", "name": "f", "input": {}}},
            {"type": "content_block_stop", "index": 1},
            {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
            {"type": "message_stop"},
        ]
    }  # fmt: skip


class TestGemini(AdapterLaws):
    adapter = gemini
    keeps_schemas = False
    answers: Mapping[str, object] = {"thinking": THINKING["gemini"]}
    streams: Mapping[str, Sequence[object]] = {
        "two pieces": [
            {"candidates": [{"content": {"role": "model", "parts": [{"text": "so "}]}}]},
            {"candidates": [{"content": {"role": "model", "parts": [{"text": "far"}]}, "finishReason": "STOP"}]},
        ],
        "a call": [
            {"candidates": [{"content": {"role": "model", "parts": [{"functionCall": {"id": "c1", "name": "f", "args": {"a": 1}}}]}}]},
            {"candidates": [{"content": {"role": "model", "parts": [{"text": ""}]}, "finishReason": "STOP"}]},
        ],
    }  # fmt: skip


class TestOllama(AdapterLaws):
    adapter = ollama
    keeps_ids = False
    answers: Mapping[str, object] = {"thinking": THINKING["ollama"]}
    streams: Mapping[str, Sequence[object]] = {
        "thinking": [
            {"message": {"role": "assistant", "content": "", "thinking": "first I think"}},
            {"message": {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": {}}}]}},
            {"message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop"},
        ]
    }  # fmt: skip


class TestBedrock(AdapterLaws):
    adapter = bedrock
    answers: Mapping[str, object] = {"thinking": THINKING["bedrock"]}
    streams: Mapping[str, Sequence[object]] = {
        "thinking": [
            {"messageStart": {"role": "assistant"}},
            {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"reasoningContent": {"text": "first I think"}}}},
            {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"reasoningContent": {"signature": "s"}}}},
            {"contentBlockStop": {"contentBlockIndex": 0}},
            {"contentBlockStart": {"contentBlockIndex": 1, "start": {"toolUse": {"toolUseId": "c1", "name": "f"}}}},
            {"contentBlockDelta": {"contentBlockIndex": 1, "delta": {"toolUse": {"input": "{}"}}}},
            {"contentBlockStop": {"contentBlockIndex": 1}},
            {"messageStop": {"stopReason": "tool_use"}},
        ]
    }  # fmt: skip


class TestCohere(AdapterLaws):
    adapter = cohere
    answers: Mapping[str, object] = {"thinking": THINKING["cohere"]}
    streams: Mapping[str, Sequence[object]] = {
        "thinking": [
            {"type": "message-start", "delta": {"message": {"role": "assistant"}}},
            {"type": "tool-plan-delta", "delta": {"message": {"tool_plan": "first I think"}}},
            {"type": "tool-call-start", "index": 0, "delta": {"message": {"tool_calls": {"id": "c1", "type": "function", "function": {"name": "f", "arguments": ""}}}}},
            {"type": "tool-call-delta", "index": 0, "delta": {"message": {"tool_calls": {"function": {"arguments": "{}"}}}}},
            {"type": "tool-call-end", "index": 0},
            {"type": "message-end", "delta": {"finish_reason": "TOOL_CALL"}},
        ]
    }  # fmt: skip


class TestLangChain(AdapterLaws):
    adapter = langchain
    answers: Mapping[str, object] = {"thinking": THINKING["langchain"]}
    streams: Mapping[str, Sequence[object]] = {
        "a call": [
            langchain_chunk(content="so"),
            langchain_chunk(tool_call_chunks=[{"type": "tool_call_chunk", "index": 0, "id": "c1", "name": "f", "args": '{"a"'}]),
            langchain_chunk(tool_call_chunks=[{"type": "tool_call_chunk", "index": 0, "id": None, "name": None, "args": ":1}"}]),
            langchain_chunk(chunk_position="last"),
        ]
    }  # fmt: skip
