"""Recorded streams and answers in which a value has the wrong JSON type: no exception, and nothing is lost without an error.

The laws are in ``toolkit.testing``; here they meet recorded traffic.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.adapters.streams import ADAPTERS, adapter_module, read_stream, recorded_streams
from tests.adapters.traffic import exchanges
from toolkit.testing.laws import (
    check_events_that_are_not_objects,
    check_malformed_answers,
    check_malformed_stream,
    malformed_copies,
)

SAMPLE: Final = 60
ALL: Final = 3000


@pytest.mark.sample
@pytest.mark.parametrize("adapter", ADAPTERS)
def test_a_wrong_type_in_a_stream_is_one_error_and_nothing_else_is_lost(
    adapter: str, corpus: Path, everything: bool
) -> None:
    module = adapter_module(adapter)
    streams = recorded_streams(corpus, adapter)
    count = (ALL if everything else SAMPLE * 4) // len(streams) + 1
    for id, events in streams.items():
        untouched = read_stream(adapter, events)
        for one in malformed_copies(events, f"{adapter} {id}", count):
            answer = module.Accumulator()
            text = "".join(answer.feed(event) for event in one.value)
            result = answer.result()
            check_malformed_stream(module, one, result, untouched)
            # The last event of Responses has the whole text, also where a piece of it was malformed.
            if adapter != "openai_responses":
                in_any_order = sorted if result.finish_reason == "error" else str
                assert in_any_order(text) == in_any_order(result.content), one
            if result.finish_reason == "error" != untouched.finish_reason:
                kept = result.metadata[adapter]
                assert isinstance(kept, dict) and {"error", "cut"} & kept.keys(), one


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_an_event_that_is_no_object_is_an_error_too(adapter: str, corpus: Path) -> None:
    [events, *_] = recorded_streams(corpus, adapter).values()
    check_events_that_are_not_objects(adapter_module(adapter), events)


ANSWERS: Final = {
    "openai_chat": ("openai_chat", "mistral_chat", "openrouter_chat"),
    "openai_responses": ("openai_responses",),
    "anthropic": ("anthropic",),
    "gemini": ("gemini", "vertex"),
    "bedrock": ("bedrock_converse",),
    "cohere": ("cohere",),
}


@pytest.mark.parametrize("adapter", ANSWERS)
def test_a_wrong_type_in_an_answer_never_raises(adapter: str, corpus: Path, everything: bool) -> None:
    answers = [one for one in exchanges(corpus, *ANSWERS[adapter]) if not one.streaming]
    count = (ALL if everything else SAMPLE * 4) // len(answers) + 1
    for one in answers:
        check_malformed_answers(adapter_module(adapter), one.response, count=count, name=f"{adapter} {one.id}")
