"""Every form in which servers were seen to stream calls, in any chunking."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolkit.adapters.streaming import CallPiece, CallsInPieces
from toolkit.adapters.values import arguments_text, call_from_text
from toolkit.wire import ToolCall


def piece(
    index: int | None = None, id: str | None = None, name: str | None = None, arguments: str | None = None
) -> CallPiece:
    return CallPiece(index, id, name, arguments)


def put_together(pieces: list[CallPiece]) -> list[tuple[str, str, Any, str | None]]:
    calls = CallsInPieces()
    for one in pieces:
        calls.feed(one)
    return [(call.id, call.name, call.arguments, call.raw_arguments) for call in calls.calls()]


A, B = ("a", "f1", {"x": 1}, '{"x":1}'), ("b", "f2", {"y": 2}, '{"y":2}')

SHAPES = {
    "interleaved parallel calls": (
        [piece(0, "a", "f1", ""), piece(1, "b", "f2", ""), piece(0, arguments='{"x"'), piece(1, arguments='{"y":'), piece(0, arguments=":1}"), piece(1, arguments="2}")],
        [A, B],
    ),
    "the same index with two ids": (
        [piece(0, "a", "f1", '{"x":1}'), piece(0, "b", "f2", '{"y":2}')],
        [A, B],
    ),
    "the same index with two ids, in pieces": (
        [piece(0, "a", "f1", ""), piece(0, arguments='{"x":1}'), piece(0, "b", "f2", ""), piece(0, arguments='{"y":2}')],
        [A, B],
    ),
    "no index at all": ([piece(None, "a", "f1", '{"x":'), piece(None, None, None, "1}"), piece(None, "b", "f2", '{"y":2}')], [A, B]),
    "no index and no id": ([piece(None, None, "f1", '{"x":1}'), piece(None, None, "f2", '{"y":2}')], [("call_0", *A[1:]), ("call_1", *B[1:])]),
    "two entries of one index in the first chunk": ([piece(0, "a", "f1"), piece(0, None, None, '{"x":1}')], [A]),
    "the id in every chunk": ([piece(0, "a", "f1", '{"x"'), piece(0, "a", None, ":1}")], [A]),
    "the id in every chunk, no index": ([piece(None, "a", "f1", '{"x"'), piece(None, "b", "f2", '{"y":2'), piece(None, "a", None, ":1}"), piece(None, "b", None, "}")], [A, B]),
    "the name in every chunk": ([piece(0, "a", "f1", '{"x"'), piece(0, None, "f1", ":1}")], [A]),
    "the name in pieces": ([piece(0, "a", "f", ""), piece(0, None, "1", '{"x":1}')], [A]),
    "a gap in the indexes": ([piece(0, "a", "f1", '{"x":1}'), piece(5, "b", "f2", '{"y":2}')], [A, B]),
    "the second first": ([piece(1, "b", "f2", '{"y":2}'), piece(0, "a", "f1", '{"x":1}')], [A, B]),
    "empty arguments": ([piece(0, "a", "f1", "")], [("a", "f1", {}, "")]),
    "missing arguments": ([piece(0, "a", "f1")], [("a", "f1", {}, None)]),
    "a late id": ([piece(0, None, "f1", '{"x"'), piece(0, "a", None, ":1}")], [A]),
    "an empty id in what follows": ([piece(0, "a", "f1", '{"x"'), piece(0, "", None, ":1}")], [A]),
    "an empty name in what follows": ([piece(0, "a", "f1", '{"x"'), piece(0, None, "", ":1}")], [A]),
    "cut in the middle": ([piece(0, "a", "f1", '{"x":1}'), piece(1, "b", "f2", '{"y"')], [A, ("b", "f2", {}, '{"y"')]),
    "whole in one delta": ([piece(0, "a", "f1", '{"x":1}')], [A]),
    "no calls": ([], []),
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_puts_together(shape: str) -> None:
    pieces, expected = SHAPES[shape]
    assert put_together(pieces) == expected


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # how fast a machine is tells nothing
@given(st.data())
@pytest.mark.slow
def test_any_chunking_and_interleaving_gives_the_same(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 4))
    texts = [data.draw(st.text(max_size=20)) for _ in range(count)]
    queues: list[list[CallPiece]] = []
    repeat_id, repeat_name = data.draw(st.booleans()), data.draw(st.booleans())
    for index, text in enumerate(texts):
        cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=5)))
        borders = [0, *cuts, len(text)]
        parts = [text[begin:end] for begin, end in itertools.pairwise(borders)]
        queues.append(
            [
                piece(index, f"id{index}" if at == 0 or repeat_id else None, f"tool{index}" if at == 0 or repeat_name else None, part)
                for at, part in enumerate(parts)
            ]
        )  # fmt: skip
    pieces = []
    while any(queues):
        queue = data.draw(st.sampled_from([queue for queue in queues if queue]))
        pieces.append(queue.pop(0))

    assert [(id, name, raw) for id, name, _, raw in put_together(pieces)] == [
        (f"id{index}", f"tool{index}", text) for index, text in enumerate(texts)
    ]


@pytest.mark.parametrize(
    "text", ['{"a": 1}', '{"a":1,"a":2}', "", " ", "{", "[1]", "null", '"x"', '{"é":"\\u00e9"}', None]
)
def test_argument_text_goes_back_as_it_came(text: str | None) -> None:
    call = call_from_text("1", "f", text)
    assert arguments_text(call) == (text if text is not None else "{}")


def test_changed_arguments_are_what_is_sent() -> None:
    call = call_from_text("1", "f", '{"a": 1}')
    assert arguments_text(ToolCall(call.id, call.name, {"b": "é"}, raw_arguments=call.raw_arguments)) == '{"b":"é"}'
