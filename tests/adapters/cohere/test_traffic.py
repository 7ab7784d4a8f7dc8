"""All recorded traffic of Cohere's v2 chat."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.adapters.traffic import Exchange, exchanges, noted, turns
from toolkit.adapters.cohere import (
    Accumulator,
    decode_choice,
    decode_messages,
    decode_response,
    decode_tools,
    encode_choice,
    encode_messages,
    encode_tools,
)
from toolkit.wire import QueryResult, from_json, to_json


@pytest.fixture
def recorded(corpus: Path) -> list[Exchange]:
    return exchanges(corpus, "cohere")


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
        assert encode_choice(decode_choice(request.get("tool_choice"))) == request.get("tool_choice"), exchange.id
        kept = from_json(to_json(decode_messages(request["messages"])))
        assert encode_messages(kept) == request["messages"], "also when the conversation was kept as JSON"


def test_answers_give_the_calls_that_were_made(recorded: list[Exchange]) -> None:
    for exchange in recorded:
        result = answered(exchange)
        # one answer has the text "null" for arguments: the neutral format has an object, and keeps the text
        expected = [{**call, "arguments": call["arguments"] or {}} for call in exchange.tool_calls]
        assert noted(result.tool_calls) == expected, exchange.id
        assert result.finish_reason == ("tool_calls" if expected else "stop"), exchange.id
        assert result.usage.input_tokens and result.usage.output_tokens, exchange.id


def test_an_answer_goes_into_the_next_request_as_it_really_did(recorded: list[Exchange]) -> None:
    seen = 0
    for exchange, after in turns(recorded):
        assert after.request is not None
        sent: list[dict[str, Any]] = [message for message in after.request["messages"] if message.get("tool_calls")]
        ours = encode_messages([answered(exchange).message()])
        # the recorded client does not send the plan back, though Cohere wants it to be
        assert [{k: v for k, v in message.items() if k != "tool_plan"} for message in ours] == sent
        assert ours[0]["tool_plan"] == exchange.response["message"]["tool_plan"]
        seen += 1
    assert seen == 1
