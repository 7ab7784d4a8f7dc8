"""A conversation keeps its newest tool outputs, and its beginning stays as it was from one step to the next."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import tries
from toolkit import (
    AssistantToolCallMessage,
    ChatMessage,
    ContentBlock,
    TextMessage,
    ToolCall,
    ToolResult,
    ToolResultMessage,
    fit_history,
    has_tool_calls,
    is_tool_result,
)
from toolkit.runtime.stores.budget import MEDIA_TOKENS, history_budget, tokens
from toolkit.wire.call import ResultKind

WINDOW = 128_000
BUDGET = history_budget(WINDOW)


def result(
    size: int, *, name: str = "bash", kind: ResultKind = "text", ref: str | None = "ref", letter: str = "x"
) -> ToolResultMessage:
    """An output of so many tokens."""
    return ToolResultMessage(ToolResult("call", name, kind, letter * 4 * size, ref), {"kept": True})


def call() -> AssistantToolCallMessage:
    return AssistantToolCallMessage("", (ToolCall("call", "bash", {}),))


def turns(*outputs: ToolResultMessage) -> list[ChatMessage]:
    """Every output asked for by a call of its own."""
    return [message for output in outputs for message in (call(), output)]


def placeholder(size: int, name: str = "bash", ref: str = "ref") -> str:
    return f'[output of {name}, about {size} tokens, omitted here; read it with tool_output_cache, ref_id "{ref}"]'


def trimmed(before: Sequence[ChatMessage], after: Sequence[ChatMessage]) -> list[int]:
    """Which tool results were replaced, counted among the results."""
    pairs = [pair for pair in zip(before, after, strict=True) if is_tool_result(pair[0])]
    return [number for number, (old, new) in enumerate(pairs) if old != new]


def kept_tokens(messages: Sequence[ChatMessage]) -> int:
    return sum(
        tokens(message.result.value)
        for message in messages
        if is_tool_result(message) and isinstance(message.result.value, str)
    )


@pytest.mark.parametrize(
    ("window", "budget"),
    [(0, 20_000), (8_000, 20_000), (80_000, 20_000), (128_000, 32_000), (400_000, 100_000), (2_000_000, 100_000)],
)
def test_the_budget_is_a_quarter_of_the_window_within_bounds(window: int, budget: int) -> None:
    assert history_budget(window) == budget
    just_fits = turns(result(budget // 2), result(budget // 2))
    assert fit_history(just_fits, window) == just_fits
    too_long = turns(result(budget // 2), result(budget))
    assert trimmed(too_long, fit_history(too_long, window)) == [0]


def test_the_oldest_outputs_become_a_line_with_their_ref() -> None:
    history: list[ChatMessage] = [
        TextMessage("system", "x" * 1_000_000),
        *turns(
            result(9_000, name="read_file", ref="first"),
            result(9_000, ref="second"),
            result(9_000, ref="third"),
            result(9_000, ref="fourth"),
        ),
        TextMessage("assistant", "done"),
    ]

    fitted = fit_history(history, WINDOW)

    assert trimmed(history, fitted) == [0, 1, 2]
    replaced = fitted[2]
    assert is_tool_result(replaced)
    assert replaced == ToolResultMessage(
        ToolResult("call", "read_file", "text", placeholder(9_000, "read_file", "first"), "first"), {"kept": True}
    )
    assert [message for message in fitted if not is_tool_result(message)] == [
        message for message in history if not is_tool_result(message)
    ]


KEPT = {
    "an error": result(20_000, kind="error"),
    "what has no ref, as what was read from the cache": result(20_000, name="tool_output_cache", ref=None),
    "what is short": result(40),
}


@pytest.mark.parametrize("what", KEPT)
def test_keeps_whatever_it_takes(what: str) -> None:
    history = turns(KEPT[what], result(BUDGET), result(BUDGET))

    assert trimmed(history, fit_history(history, WINDOW)) == [1]


def test_keeps_all_results_of_the_newest_calls() -> None:
    history = [*turns(result(BUDGET)), call(), result(BUDGET), result(BUDGET), result(BUDGET)]

    assert trimmed(history, fit_history(history, WINDOW)) == [0]
    with_answer = [*history, TextMessage("assistant", "seen"), TextMessage("user", "go on")]
    assert trimmed(with_answer, fit_history(with_answer, WINDOW)) == [0]


@pytest.mark.parametrize(
    ("value", "kind", "size"),
    [
        ({"rows": ["x" * 79_990]}, "data", 20_000),
        (["x" * 79_996], "data", 20_000),
        (["\ud83d" + "x" * 79_990], "data", 20_000),
        ((ContentBlock("text", text="x" * 80_000),), "multimodal", 20_000),
        ((ContentBlock("image", data="x" * 10_000_000),) * 10, "multimodal", 10 * MEDIA_TOKENS),
    ],
    ids=["an object", "a list", "half a character", "a text block", "pictures"],
)
def test_outputs_of_every_kind_are_counted_and_replaced(value: object, kind: ResultKind, size: int) -> None:
    odd = ToolResultMessage(ToolResult("call", "bash", kind, value, "ref"))
    history = turns(odd, result(BUDGET))

    fitted = fit_history(history, WINDOW)

    assert trimmed(history, fitted) == [0]
    assert fitted[1] == ToolResultMessage(ToolResult("call", "bash", "text", placeholder(size), "ref"))


def test_tokens_are_counted_as_the_caller_says() -> None:
    history = turns(result(3_000), result(3_000))

    assert fit_history(history, WINDOW) == history
    assert trimmed(history, fit_history(history, WINDOW, count=len)) == []
    history = turns(result(6_000), result(6_000))
    assert trimmed(history, fit_history(history, WINDOW, count=len)) == [0]


def test_guards_tell_messages_apart() -> None:
    messages: list[ChatMessage] = [TextMessage("user", "x"), call(), result(1)]

    assert [has_tool_calls(message) for message in messages] == [False, True, False]
    assert [is_tool_result(message) for message in messages] == [False, False, True]


# Any conversation

sizes = st.integers(0, 12_000) | st.sampled_from([0, 30, 100, 31_999, 32_000, 40_000])
results = st.builds(
    result,
    sizes,
    name=st.sampled_from(["bash", "bash", "bash", "read_file"]),
    kind=st.sampled_from(["text", "text", "text", "error"]),
    ref=st.sampled_from(["ref", "ref", "ref", None]),
)
messages = st.one_of(results, results, st.builds(call), st.just(TextMessage("user", "go on")))
histories = st.lists(messages, max_size=40)


@tries(150)
@given(history=histories)
@pytest.mark.slow
def test_nothing_is_changed_in_place_and_nothing_twice(history: list[ChatMessage]) -> None:
    before = deepcopy(history)

    fitted = fit_history(history, WINDOW)

    assert history == before
    assert fit_history(fitted, WINDOW) == fitted
    assert fit_history(tuple(history), WINDOW) == fitted


@tries(150)
@given(history=histories, added=histories)
@pytest.mark.slow
def test_going_on_with_what_came_back_makes_no_difference(history: list[ChatMessage], added: list[ChatMessage]) -> None:
    assert fit_history([*fit_history(history, WINDOW), *added], WINDOW) == fit_history([*history, *added], WINDOW)


@tries(100)
@given(history=histories)
def test_the_beginning_changes_only_at_few_steps(history: list[ChatMessage]) -> None:
    steps = 0
    before = fit_history([], WINDOW)
    for end in range(1, len(history) + 1):
        after = fit_history(history[:end], WINDOW)
        steps += after[:-1] != before
        before = after

    # Every step frees a quarter of the budget at least.
    assert steps <= kept_tokens(history) // (BUDGET // 4)


@tries(150)
@given(history=histories)
@pytest.mark.slow
def test_only_the_oldest_that_may_go_have_gone(history: list[ChatMessage]) -> None:
    fitted = fit_history(history, WINDOW)

    results = [message for message in history if is_tool_result(message)]
    gone = trimmed(history, fitted)
    sizes = {
        number: tokens(str(message.result.value))
        for number, message in enumerate(results)
        if message.result.kind != "error" and message.result.output_ref is not None
    }
    # The text that replaces an output has 20 to 30 tokens here, and an output must have twice as many.
    assert all(sizes.get(number, 0) >= 40 for number in gone)
    must_go_first = [number for number in sizes if sizes[number] > 60 and gone and number <= gone[-1]]
    assert [number for number in gone if sizes[number] > 60] == must_go_first
    assert len(results) - 1 not in gone


@tries(100)
@given(outputs=st.lists(st.integers(0, 12_000), max_size=40))
def test_outputs_that_may_go_stay_within_the_budget(outputs: list[int]) -> None:
    fitted = fit_history(turns(*map(result, outputs)), WINDOW)

    assert kept_tokens(fitted) <= BUDGET
