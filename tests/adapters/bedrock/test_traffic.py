"""All recorded traffic of Bedrock's Converse."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.adapters.traffic import Exchange, exchanges, noted, turns
from toolkit.adapters.bedrock import (
    Accumulator,
    decode_choice,
    decode_messages,
    decode_response,
    decode_system,
    decode_tools,
    encode_choice,
    encode_messages,
    encode_tools,
    split_system,
)
from toolkit.wire import QueryResult, ToolResult, ToolResultMessage, from_json, to_json

# The corpus notes these as calls. Bedrock itself ran them (``type: server_tool_use``), and their results stand in the
# same answer: whoever ran them again would be refused.
RUN_BY_BEDROCK = {"tooluse_dV5ehBNfl1hUE-UTM9cIww", "tooluse_VYEuMWAFChlHdy6-56IQ4g"}


@pytest.fixture
def recorded(corpus: Path) -> list[Exchange]:
    return exchanges(corpus, "bedrock_converse")


def answered(exchange: Exchange) -> QueryResult:
    if not exchange.streaming:
        return decode_response(exchange.response)
    answer = Accumulator()
    texts = [answer.feed(event) for event in exchange.events]
    assert "".join(texts) == answer.result().content
    return answer.result()


def test_requests_come_back_as_they_were(recorded: list[Exchange]) -> None:
    seen = 0
    for exchange in recorded:
        request = exchange.request
        if request is None:
            continue  # only the answer was published
        seen += 1
        messages = decode_messages(request["messages"])
        assert encode_messages(messages) == request["messages"], exchange.id
        assert encode_messages(from_json(to_json(messages))) == request["messages"], "also when kept as JSON"
        tools = request["toolConfig"]
        assert encode_tools(decode_tools(tools["tools"])) == tools["tools"], exchange.id
        if "toolChoice" in tools:
            assert encode_choice(decode_choice(tools["toolChoice"])) == tools["toolChoice"], exchange.id
        system = request["system"]
        assert split_system([*decode_system(system), *messages]) == (system or None, messages), exchange.id
    assert seen == 105


def test_answers_give_the_calls_that_were_made(recorded: list[Exchange]) -> None:
    run_by_bedrock = set()
    for exchange in recorded:
        result = answered(exchange)
        ours = [call for call in exchange.tool_calls if call["id"] not in RUN_BY_BEDROCK]
        run_by_bedrock |= {call["id"] for call in exchange.tool_calls} & RUN_BY_BEDROCK
        assert noted(result.tool_calls) == ours, exchange.id
        assert (result.finish_reason == "tool_calls") == bool(ours), exchange.id
        assert (result.finish_reason == "error") == (exchange.status != 200), exchange.id
    assert len(recorded) == 118
    assert run_by_bedrock == RUN_BY_BEDROCK


def test_an_answer_goes_back_as_it_came(recorded: list[Exchange]) -> None:
    whole = [one for one in recorded if not one.streaming and one.status == 200]
    for exchange in whole:
        message = decode_response(exchange.response).message()
        came = exchange.response["output"]["message"]
        assert encode_messages([message]) == [{**came, "content": _as_request(came["content"])}], exchange.id
    assert len(whole) == 101


def test_an_answer_goes_into_the_next_request_as_it_really_did(recorded: list[Exchange]) -> None:
    compared = 0
    for exchange, after in turns(recorded):
        if exchange.request is None or after.request is None or exchange.status != 200:
            continue
        sent = [m for m in after.request["messages"][len(exchange.request["messages"]) :] if m["role"] == "assistant"]
        if not sent:
            continue  # the conversation was started again
        [ours] = encode_messages([answered(exchange).message()])
        assert _as_sent(ours["content"]) == _as_sent(sent[0]["content"]), exchange.id
        compared += 1
    assert compared > 40


def test_results_are_encoded_as_they_really_were(recorded: list[Exchange]) -> None:
    results = [
        block["toolResult"]
        for exchange in recorded
        for message in (exchange.request or {}).get("messages", ())
        for block in message["content"]
        if "toolResult" in block and message["role"] == "user"
    ]
    texts = [one for one in results if [*one["content"][0]] == ["text"] and len(one["content"]) == 1]
    assert len(texts) > 20
    for raw in texts:
        result = ToolResult(raw["toolUseId"], "any", "text", raw["content"][0]["text"])
        [message] = encode_messages([ToolResultMessage(result)])
        # A status that says nothing is left out: only some models take one.
        assert message == {"role": "user", "content": [{"toolResult": {**_without(raw, "status")}}]}


def _without(raw: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in raw.items() if name != key}


def _as_request(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Answers have a type for texts and calls, which requests may not have (according to the API's types)."""
    made = []
    for block in blocks:
        use = block.get("toolUse", {})
        own_call = use.get("type") == "tool_use"
        made.append({"toolUse": _without(use, "type")} if own_call else _without(block, "type"))
    return made


def _as_sent(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The recorded client left out reasoning without a signature, or sent it as text; this adapter sends it."""
    return [
        block
        for block in blocks
        if not block.get("text", "").startswith("<think>")
        and "signature" in block.get("reasoningContent", {}).get("reasoningText", {"signature": None})
    ]
