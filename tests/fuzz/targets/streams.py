"""Streams of providers, event by event."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any, Final

from toolkit.wire import QueryResult
from toolkit.wire.codec import from_json, to_json

STREAMING_ADAPTERS: Final = (
    "openai_chat", "openai_responses", "anthropic", "gemini", "bedrock", "cohere", "ollama", "langchain",
)  # fmt: skip


def check_stream(data: bytes) -> None:
    """Any events, each a line of JSON or no JSON at all, give an answer that can be kept, and the same one each time.

    The first byte chooses the adapter.
    """
    adapter = STREAMING_ADAPTERS[data[0] % len(STREAMING_ADAPTERS)] if data else STREAMING_ADAPTERS[0]
    events = [_event(line) for line in data[1:].split(b"\n") if line]
    answer = import_module(f"toolkit.adapters.{adapter}").Accumulator()
    texts = [answer.feed(event) for event in events]
    result = answer.result()
    assert isinstance(result, QueryResult)
    assert all(isinstance(text, str) for text in texts)
    again = import_module(f"toolkit.adapters.{adapter}").Accumulator()
    for event in events:
        again.feed_events(event)
    assert _stored(again.result()) == _stored(result), "the same events, two answers"
    assert _stored(from_json(json.loads(_stored(result)))) == _stored(result), "what was kept is read as something else"


def _stored(result: Any) -> str:
    return json.dumps(to_json(result))


def _event(line: bytes) -> object:
    text = line.decode(errors="replace")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
