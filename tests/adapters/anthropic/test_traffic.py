"""All recorded traffic of Anthropic's messages."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from anthropic._models import construct_type
from anthropic.types import Message, RawMessageStreamEvent

from tests.adapters.traffic import Exchange, exchanges, noted, turns
from toolkit.adapters import openai_chat
from toolkit.adapters.anthropic import (
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
from toolkit.wire import (
    AssistantToolCallMessage,
    ChatMessage,
    QueryResult,
    ToolResult,
    ToolResultMessage,
    from_json,
    to_json,
)


@pytest.fixture
def recorded(corpus: Path) -> list[Exchange]:
    return exchanges(corpus, "anthropic")


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
        assert encode_tools(decode_tools(request.get("tools"))) == (request.get("tools") or []), exchange.id
        if request.get("tool_choice") is not None:
            assert encode_choice(decode_choice(request["tool_choice"])) == request["tool_choice"], exchange.id
        system = request.get("system")
        assert split_system([*decode_system(system), *messages]) == (system, messages), exchange.id
    assert seen == 135


def test_answers_give_the_calls_that_were_made(recorded: list[Exchange]) -> None:
    for exchange in recorded:
        result = answered(exchange)
        assert noted(result.tool_calls) == exchange.tool_calls, exchange.id
        assert (result.finish_reason == "tool_calls") == bool(exchange.tool_calls), exchange.id
        assert (result.finish_reason == "error") == (exchange.status != 200), exchange.id
    assert len(recorded) == 151


def test_an_answer_goes_back_as_it_came(recorded: list[Exchange]) -> None:
    whole = [one for one in recorded if not one.streaming and one.status == 200]
    for exchange in whole:
        message = decode_response(exchange.response).message()
        assert encode_messages([message]) == [{"role": "assistant", "content": exchange.response["content"]}]
    assert len(whole) == 134


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
    assert compared > 50


def test_results_are_encoded_as_they_really_were(recorded: list[Exchange]) -> None:
    """A text is sent as a text; the recorded client sent a list of one text, which means the same."""
    blocks = [
        block
        for exchange in recorded
        for message in (exchange.request or {}).get("messages", ())
        for block in message["content"]
        if block["type"] == "tool_result"
    ]
    texts = [block for block in blocks if isinstance(block["content"], str) or _is_one_text(block["content"])]
    for block in texts:
        text = block["content"] if isinstance(block["content"], str) else block["content"][0]["text"]
        assert _one_result(ToolResult(block["tool_use_id"], "any", "text", text)) == {
            "type": "tool_result",
            "tool_use_id": block["tool_use_id"],
            "content": text,
        }
    assert len(texts) > 60


def test_the_results_of_one_turn_are_first_in_one_message(recorded: list[Exchange]) -> None:
    """Also if other content is in front of the results, and if the results are in another order."""
    parallel = 0
    for exchange in recorded:
        if exchange.request is None or exchange.status != 200:
            continue
        messages = decode_messages(exchange.request["messages"])
        shuffled = encode_messages(_results_last(messages))
        for turn, after in itertools.pairwise(shuffled):
            asked = _ids(turn, "tool_use", "id")
            if asked and after["role"] == "user":
                begin = after["content"][: len(asked)]
                assert {block.get("tool_use_id") for block in begin} == set(asked), exchange.id
                parallel += len(asked) > 1
    assert parallel


def test_conversations_with_another_provider_can_go_on_here(corpus: Path) -> None:
    answered_turns = 0
    for exchange in exchanges(corpus, "openai_chat", "mistral_chat", "groq_chat"):
        if exchange.request is None:
            continue
        sent = encode_messages(openai_chat.decode_messages(exchange.request["messages"]))
        given = {id for turn in sent for id in _ids(turn, "tool_result", "tool_use_id")}
        for turn, after in itertools.pairwise(sent):
            asked = [id for id in _ids(turn, "tool_use", "id") if id in given]
            if asked:
                assert {block.get("tool_use_id") for block in after["content"][: len(asked)]} == set(asked), exchange.id
                answered_turns += 1
    assert answered_turns > 50


def test_reads_the_objects_of_the_sdk(recorded: list[Exchange]) -> None:
    for exchange in recorded:
        if exchange.streaming:
            answer = Accumulator()
            for event in exchange.events:
                answer.feed(construct_type(type_=RawMessageStreamEvent, value=event))
            assert answer.result() == answered(exchange), exchange.id
        elif exchange.status == 200:
            assert decode_response(construct_type(type_=Message, value=exchange.response)) == answered(exchange)


def _results_last(messages: list[ChatMessage]) -> list[ChatMessage]:
    """Each turn's results, after the messages before the next answer."""
    made: list[ChatMessage] = []
    waiting: list[ChatMessage] = []
    for message in messages:
        if isinstance(message, ToolResultMessage):
            waiting.insert(0, message)
            continue
        if isinstance(message, AssistantToolCallMessage) or getattr(message, "role", "") == "assistant":
            made += waiting
            waiting = []
        made.append(message)
    return [*made, *waiting]


def _ids(message: dict[str, Any], kind: str, key: str) -> list[str]:
    content = message["content"] if isinstance(message["content"], list) else []
    return [block[key] for block in content if block["type"] == kind]


def _is_one_text(content: list[dict[str, Any]]) -> bool:
    return len(content) == 1 and content[0]["type"] == "text"


def _one_result(result: ToolResult) -> dict[str, Any]:
    [message] = encode_messages([ToolResultMessage(result)])
    [block] = message["content"]
    assert isinstance(block, dict)
    return block


def _as_sent(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the recorded client did not send back; this adapter does.

    - ``caller`` of a call: that the model itself made it;
    - ``citations``, and where a text was in several blocks because of them, the borders;
    - a field that is null.
    """
    made: list[dict[str, Any]] = []
    for block in blocks:
        kept = {key: value for key, value in block.items() if key not in ("caller", "citations") and value is not None}
        if kept["type"] == "text" and made and made[-1]["type"] == "text":
            made[-1] = {**made[-1], "text": made[-1]["text"] + kept["text"]}
        else:
            made.append(kept)
    return made
