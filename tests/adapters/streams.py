"""Streams for every adapter: the recorded ones, and for adapters without recordings what their clients would send."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, Final

from tests.adapters.traffic import exchanges
from toolkit.testing import laws
from toolkit.testing.laws import Adapter
from toolkit.wire import QueryResult

Stream = list[Any]

_FILES: Final = {
    "openai_chat": (
        "openai_chat", "cloudflare_chat", "deepseek_chat", "groq_chat", "mistral_chat", "openrouter_chat", "together_chat", "xai_chat",
    ),
    "openai_responses": ("openai_responses", "azure_openai_responses", "deepseek_responses", "lmstudio_responses"),
    "anthropic": ("anthropic",),
    "gemini": ("gemini", "vertex"),
    "bedrock": ("bedrock_converse",),
    "cohere": ("cohere",),
}  # fmt: skip
ADAPTERS: Final = (*_FILES, "ollama", "langchain")

# No recording of Ollama's own API is published: this is written from the types of its client.
_OLLAMA: Final[Stream] = [
    {"model": "m", "created_at": "2026-01-01T00:00:00Z", "message": {"role": "assistant", "content": "", "thinking": "First "}, "done": False},
    {"model": "m", "created_at": "2026-01-01T00:00:01Z", "message": {"role": "assistant", "content": "", "thinking": "this."}, "done": False},
    {"model": "m", "created_at": "2026-01-01T00:00:02Z", "message": {"role": "assistant", "content": "Let me "}, "done": False},
    {"model": "m", "created_at": "2026-01-01T00:00:03Z", "message": {"role": "assistant", "content": "look."}, "done": False},
    {"model": "m", "created_at": "2026-01-01T00:00:04Z", "message": {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "read_file", "arguments": {"path": "a.py"}}}, {"function": {"name": "grep", "arguments": {"pattern": "x", "paths": ["src"]}}}]}, "done": False},
    {"model": "m", "created_at": "2026-01-01T00:00:05Z", "message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop", "total_duration": 9, "prompt_eval_count": 12, "eval_count": 34},
]  # fmt: skip


def recorded_streams(corpus: Path, adapter: str) -> dict[str, Stream]:
    """All streams of an adapter by their id."""
    if adapter == "ollama":
        return {"ollama": _OLLAMA}
    if adapter == "langchain":
        found = recorded_streams(corpus, "openai_chat")
        return {id: [_as_langchain_chunk(event) for event in events] for id, events in found.items()}
    return {one.id: one.events for one in exchanges(corpus, *_FILES[adapter]) if one.streaming}


def adapter_module(adapter: str) -> Adapter:
    module: Any = import_module(f"toolkit.adapters.{adapter}")
    found: Adapter = module
    return found


def accumulator(adapter: str) -> Any:
    return adapter_module(adapter).Accumulator()


def read_stream(adapter: str, events: Stream) -> QueryResult:
    return laws.read_stream(adapter_module(adapter), events)


def _as_langchain_chunk(event: Any) -> Any:
    """What LangChain's integration makes of a chunk of chat completions."""
    if not isinstance(event, dict):
        return {"type": "AIMessageChunk", "data": {"content": "", "chunk_position": "last"}}
    [choice] = event.get("choices") or [{}]
    delta = choice.get("delta") or {}
    calls = [
        {"type": "tool_call_chunk", "index": call.get("index"), "id": call.get("id"),
         "name": call["function"].get("name"), "args": call["function"].get("arguments")}
        for call in delta.get("tool_calls") or ()
    ]  # fmt: skip
    more = {"reasoning_content": delta["reasoning"]} if isinstance(delta.get("reasoning"), str) else {}
    reason = {"finish_reason": choice["finish_reason"]} if choice.get("finish_reason") else {}
    content = delta.get("content") if isinstance(delta.get("content"), str) else ""
    data = {"content": content, "additional_kwargs": more, "response_metadata": reason, "tool_call_chunks": calls}
    return {"type": "AIMessageChunk", "data": {**data, "id": "run-1", "type": "AIMessageChunk"}}
