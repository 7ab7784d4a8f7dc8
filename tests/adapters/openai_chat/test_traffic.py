"""All recorded traffic of chat completions, from OpenAI and from servers with the same API."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.adapters.traffic import Exchange, exchanges, noted, turns
from toolkit.adapters.openai_chat import (
    Accumulator,
    decode_choice,
    decode_messages,
    decode_response,
    decode_tools,
    encode_choice,
    encode_messages,
    encode_tools,
)
from toolkit.wire import QueryResult, ToolResult, ToolResultMessage, from_json, to_json

SERVERS = (
    "openai_chat", "cloudflare_chat", "crusoe_chat", "deepseek_chat", "gemini_openai_compat_chat", "groq_chat", "huggingface_chat",
    "mistral_chat", "ollama_chat", "openrouter_chat", "snowflake_chat", "together_chat", "xai_chat",
)  # fmt: skip


@pytest.fixture(params=SERVERS)
def recorded(request: pytest.FixtureRequest, corpus: Path) -> list[Exchange]:
    return exchanges(corpus, request.param)


def answered(exchange: Exchange) -> QueryResult:
    if not exchange.streaming:
        return decode_response(exchange.response)
    answer = Accumulator()
    texts = [answer.feed(event) for event in exchange.events]
    assert "".join(texts) == answer.result().content
    return answer.result()


def test_requests_come_back_as_they_were(recorded: list[Exchange]) -> None:
    for exchange in recorded:
        request = exchange.request
        if request is None:
            continue  # only the answer was published
        assert encode_messages(decode_messages(request["messages"])) == request["messages"], exchange.id
        assert encode_tools(decode_tools(request.get("tools"))) == (request.get("tools") or []), exchange.id
        if request.get("tool_choice") is not None:
            assert encode_choice(decode_choice(request["tool_choice"])) == request["tool_choice"], exchange.id
        kept = from_json(to_json(decode_messages(request["messages"])))
        assert encode_messages(kept) == request["messages"], "also when the conversation was kept as JSON"


def test_answers_give_the_calls_that_were_made(recorded: list[Exchange]) -> None:
    for exchange in recorded:
        result = answered(exchange)
        assert noted(result.tool_calls) == _with_ids(exchange.tool_calls), exchange.id
        if exchange.tool_calls:
            assert result.finish_reason in ("tool_calls", "length", "error"), exchange.id


def test_an_answer_goes_into_the_next_request_as_it_really_did(recorded: list[Exchange]) -> None:
    for exchange, after in turns(recorded):
        if after.request is None or not exchange.tool_calls:
            continue
        sent = _turn_with_calls(after.request["messages"], {call["id"] for call in exchange.tool_calls})
        if sent is not None:
            ours = encode_messages([answered(exchange).message()])[0]
            assert _comparable(ours) == _comparable(sent), exchange.id


def test_results_are_encoded_as_they_really_were(corpus: Path) -> None:
    texts = [
        raw
        for exchange in exchanges(corpus, *SERVERS)
        for raw in (exchange.request or {}).get("messages", ())
        if raw["role"] == "tool" and isinstance(raw["content"], str)
    ]
    assert len(texts) > 50
    for raw in texts:
        [message] = encode_messages([ToolResultMessage(ToolResult(raw["tool_call_id"], "any", "text", raw["content"]))])
        assert message == raw


def _with_ids(calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """For a server without ids: the neutral format always has one, made from the call's position."""
    return [{**call, "id": call["id"] or f"call_{place}"} for place, call in enumerate(calls)]


def _turn_with_calls(messages: list[dict[str, Any]], ids: set[str]) -> dict[str, Any] | None:
    for message in messages:
        if {call["id"] for call in message.get("tool_calls") or ()} == ids:
            return message
    return None


def _comparable(message: dict[str, Any]) -> dict[str, Any]:
    """Clients differ in what else they send back; the calls must be exactly the same.

    - content: null, "", [] or absent all mean that there is none; one client puts the model's reasoning there;
    - everything but role, content and tool_calls (reasoning, prefix, ...): some clients send it back, some do not;
    - a call's index and a null function.strict come from the answer and are not part of a request.
    """
    calls = [{key: call[key] for key in ("id", "function")} for call in message["tool_calls"]]
    content = message.get("content") or None
    if isinstance(content, str) and content.startswith("<think>"):
        content = None
    return {"role": message["role"], "content": content, "tool_calls": calls}
