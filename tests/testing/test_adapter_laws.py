"""The laws of adapters notice what they are for: an adapter with one fault each breaks them."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from toolkit.adapters import openai_chat
from toolkit.testing import AdapterLaws
from toolkit.testing.laws import CHOICES, CONVERSATIONS, TOOLS
from toolkit.wire import QueryResult

ANSWER: Any = {
    "choices": [
        {
            "finish_reason": "tool_calls",
            "message": {
                "role": "assistant",
                "content": "so",
                "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}],
            },
        }
    ]
}


def chunk(delta: Any, finish: str | None = None) -> Any:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


STREAM: list[Any] = [
    chunk({"content": "so"}),
    chunk({"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a"'}}]}),
    chunk({"tool_calls": [{"index": 0, "function": {"arguments": ":1}"}}]}),
    chunk({}, "tool_calls"),
]  # fmt: skip


def laws_of(**faults: Any) -> AdapterLaws:
    """The laws for an adapter that is right but for these functions."""
    names = ("Accumulator", "decode_choice", "decode_messages", "decode_response", "decode_tools", "encode_choice", "encode_messages", "encode_tools")  # fmt: skip
    made: Any = AdapterLaws()
    made.adapter = SimpleNamespace(**{**{name: getattr(openai_chat, name) for name in names}, **faults})
    made.answers, made.streams = {"call": ANSWER}, {"call": STREAM}
    checked: AdapterLaws = made
    return checked


def run_all(laws: AdapterLaws) -> None:
    for messages in CONVERSATIONS.values():
        laws.test_messages_survive(messages)
    for tool in TOOLS.values():
        laws.test_tools_survive(tool)
    for choice in CHOICES.values():
        laws.test_choices_survive(choice)
    laws.test_answers_are_results()
    laws.test_streams_say_what_whole_answers_say()
    laws.test_events_of_streams_add_up()
    laws.test_streams_can_be_cut_anywhere()
    laws.test_malformed_streams_are_results()
    laws.test_malformed_answers_are_results()
    laws.test_malformed_histories_are_read(None)


def change(text: str, instead: str) -> Callable[[Any], Any]:
    """``encode_messages`` that writes something else for a text."""

    def encode(messages: Any) -> Any:
        def changed(value: Any) -> Any:
            if isinstance(value, dict):
                return {key: changed(item) for key, item in value.items()}
            if isinstance(value, list):
                return [changed(item) for item in value]
            return value.replace(text, instead) if isinstance(value, str) else value

        return changed(openai_chat.encode_messages(messages))

    return encode


class Forgetful(openai_chat.Accumulator):
    """Loses the last piece of text, and does not say so."""

    def result(self) -> QueryResult:
        found = super().result()
        return QueryResult("", found.tool_calls, "stop", found.usage, found.metadata, found.reasoning)


FAULTS: dict[str, tuple[dict[str, Any], str]] = {
    "other ids": ({"encode_messages": change("call_1", "id")}, "the id 'call_1' came back as 'id'"),
    "another name": ({"encode_messages": change("a_b_c", "abc")}, "the tool 'a.b c' came back as"),
    "other arguments": ({"encode_messages": change('"a":', '"b":')}, "the arguments of 'f' changed"),
    "no description": ({"decode_tools": lambda tools: []}, "one tool was written"),
    "a choice that is ignored": ({"encode_choice": lambda choice: None}, "is left out of the request without an error"),
    "an answer that raises": ({"decode_response": lambda answer: answer["choices"][0]["nothing"]}, "nothing"),
    "a stream that loses its text": ({"Accumulator": Forgetful}, "the text of the stream is not that of the whole answer"),
}  # fmt: skip


def test_a_right_adapter_breaks_no_law() -> None:
    run_all(laws_of())


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_breaks_a_law(name: str) -> None:
    faults, text = FAULTS[name]
    with pytest.raises((AssertionError, KeyError), match=re.escape(text)):
        run_all(laws_of(**faults))


def test_laws_without_data_are_not_passed() -> None:
    laws = laws_of()
    laws.answers, laws.streams = {}, {}
    with pytest.raises(AssertionError, match="answers is empty; give it answers of the provider"):
        laws.test_answers_are_results()
    with pytest.raises(AssertionError, match="streams is empty; give it streams of the provider"):
        laws.test_events_of_streams_add_up()
