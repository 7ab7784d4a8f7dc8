"""All recorded traffic of Gemini, on its own and on Vertex."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.adapters.traffic import Exchange, exchanges, noted, turns
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
from toolkit.adapters.gemini.codec import to_camel_case
from toolkit.wire import QueryResult, ToolResultMessage, from_json, to_json

SERVERS = ("gemini", "vertex")
MADE = "made-"


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
        assert encode_messages(decode_messages(request["contents"])) == request["contents"], exchange.id
        assert encode_tools(decode_tools(request.get("tools"))) == (request.get("tools") or []), exchange.id
        if request.get("toolConfig") is not None:
            assert encode_choice(decode_choice(request["toolConfig"])) == request["toolConfig"], exchange.id
        kept = from_json(to_json(decode_messages(request["contents"])))
        assert encode_messages(kept) == request["contents"], "also when the conversation was kept as JSON"


def test_answers_give_the_calls_that_were_made(recorded: list[Exchange]) -> None:
    for exchange in recorded:
        result = answered(exchange)
        ours = [
            {**call, "id": None if call["id"].startswith(MADE) else call["id"]} for call in noted(result.tool_calls)
        ]
        if "partialArgs" in str(exchange.response):
            # The corpus's reader leaves arguments out that come value by value; what it noted of them is empty.
            assert all(call["arguments"] for call in ours if call["name"] != "read_theme"), exchange.id
            ours = [{**call, "arguments": {}} for call in ours]
        assert ours == exchange.tool_calls, exchange.id
        assert len({call.id for call in result.tool_calls}) == len(result.tool_calls)
        if exchange.tool_calls:
            assert result.finish_reason in ("tool_calls", "length", "error"), exchange.id


def test_an_answer_goes_into_the_next_request_as_it_really_did(recorded: list[Exchange]) -> None:
    seen = 0
    for exchange, after in turns(recorded):
        ours = [part for part in encode_messages([answered(exchange).message()])[0]["parts"] if "functionCall" in part]
        contents = (after.request or {}).get("contents", ())
        sent = [part for content in contents for part in map(to_camel_case, content["parts"]) if "functionCall" in part]
        for part in ours:
            same = [one for one in sent if _call(one) == _call(part)]
            if same:
                seen += 1
                signatures = {_signature(one) for one in same}
                assert not _signature(part) or _signature(part) in signatures or signatures == {SKIP}, exchange.id
    assert seen


SKIP = "context_engineering_is_the_way_to_go"
"""What one client sends if it has lost the signature."""


def _signature(part: dict[str, Any]) -> str:
    """Base64 has two alphabets, and clients differ."""
    return str(part.get("thoughtSignature", "")).replace("+", "-").replace("/", "_")


def _call(part: dict[str, Any]) -> tuple[Any, Any]:
    """Clients make up missing ids; the adapter never sends one."""
    return part["functionCall"]["name"], part["functionCall"].get("args") or {}


def test_results_are_encoded_as_they_really_were(corpus: Path) -> None:
    seen = 0
    for exchange in exchanges(corpus, *SERVERS):
        for message in decode_messages((exchange.request or {}).get("contents")):
            if isinstance(message, ToolResultMessage) and message.result.kind in ("text", "error", "data"):
                [content] = encode_messages([ToolResultMessage(message.result)])
                response = content["parts"][0]["functionResponse"]["response"]
                value = message.result.value
                expected = (
                    {"error": value}
                    if message.result.kind == "error"
                    else value
                    if isinstance(value, dict)
                    else {"output": value}
                )
                assert response == expected
                seen += 1
    assert seen > 50
