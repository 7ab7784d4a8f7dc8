"""All recorded traffic of Responses, from OpenAI and from servers with the same API."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.traffic import Exchange, exchanges, noted, turns
from toolkit.adapters.openai_responses import (
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
    "openai_responses",
    "azure_openai_responses",
    "bedrock_mantle_openai_responses",
    "deepseek_responses",
    "lmstudio_responses",
)


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
        assert encode_messages(decode_messages(request["input"])) == request["input"], exchange.id
        assert encode_tools(decode_tools(request.get("tools"))) == (request.get("tools") or []), exchange.id
        if request.get("tool_choice") is not None:
            assert encode_choice(decode_choice(request["tool_choice"])) == request["tool_choice"], exchange.id
        kept = from_json(to_json(decode_messages(request["input"])))
        assert encode_messages(kept) == request["input"], "also when the conversation was kept as JSON"


def test_answers_give_the_calls_that_were_made(recorded: list[Exchange]) -> None:
    for exchange in recorded:
        result = answered(exchange)
        assert _noted(result) == exchange.tool_calls, exchange.id
        if exchange.tool_calls:
            assert result.finish_reason in ("tool_calls", "length", "error"), exchange.id


def test_an_answer_goes_into_the_next_request_as_it_really_did(recorded: list[Exchange]) -> None:
    for exchange, after in turns(recorded):
        sent = {
            item["call_id"]: item
            for item in (after.request or {}).get("input", ())
            if item.get("type") == "function_call"
        }
        ours = {item["call_id"]: item for item in encode_messages([answered(exchange).message()]) if "call_id" in item}
        for id in sent.keys() & ours.keys():
            assert _call(sent[id]) == _call(ours[id]), exchange.id


def _call(item: dict[str, Any]) -> tuple[Any, ...]:
    """Clients differ in what else they send back (an item's id, its status), and some rewrite the arguments."""
    return item["type"], item["call_id"], item["name"], json.loads(item["arguments"])


def test_results_are_encoded_as_they_really_were(corpus: Path) -> None:
    texts = [
        raw
        for exchange in exchanges(corpus, *SERVERS)
        for raw in (exchange.request or {}).get("input", ())
        if raw.get("type") == "function_call_output" and isinstance(raw["output"], str)
    ]
    assert len(texts) > 50
    for raw in texts:
        [item] = encode_messages([ToolResultMessage(ToolResult(raw["call_id"], "any", "text", raw["output"]))])
        assert item == raw


def _noted(result: QueryResult) -> list[dict[str, Any]]:
    """A custom tool's call has a text for arguments; the neutral format has it under ``input``."""
    made = noted(result.tool_calls)
    for row, call in zip(made, result.tool_calls, strict=True):
        if call.metadata.get("openai_responses", {}).get("type") == "custom":  # type: ignore[attr-defined]
            row |= {"arguments": call.arguments["input"], "custom": True}
    return made
