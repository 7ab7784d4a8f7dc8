"""Events on their way to a slow reader: nothing important is lost, and what waits is bounded."""

from __future__ import annotations

import asyncio
from typing import Any

from toolkit.playground.calls import MAX_PIECES, MAX_WAITING, Outbox
from toolkit.runtime.progress import Progress


def output(text: str, stream: str = "stdout") -> Progress:
    return Progress("t", data={"stream": stream, "text": text})


def take(outbox: Outbox) -> Any:
    return asyncio.run(outbox.take())


def test_progress_that_waits_is_joined_and_keeps_its_place() -> None:
    outbox = Outbox()
    outbox.add_progress(output("a"))
    outbox.add_progress(output("b"))
    outbox.add_progress(output("c", "stderr"))
    outbox.add({"event": "approval"})
    outbox.add_progress(Progress("t", title="half way", data={"done": 1, "kind": {"x": object}}))
    first, second, third = take(outbox)
    assert first["pieces"] == [{"stream": "stdout", "text": "ab"}, {"stream": "stderr", "text": "c"}]
    assert second == {"event": "approval"}
    assert (third["title"], third["data"]["done"], third["pieces"]) == ("half way", 1, [])
    outbox.close()
    assert take(outbox) is None


def test_of_too_much_text_the_end_is_kept_and_the_rest_is_counted() -> None:
    outbox = Outbox()
    for number in range(1000):
        outbox.add_progress(output(f"{number:03d}" * 100, ("stdout", "stderr")[number % 2]))
    (event,) = take(outbox)
    kept = "".join(piece["text"] for piece in event["pieces"])
    assert len(kept) == MAX_WAITING and event["dropped"] == 300_000 - MAX_WAITING
    assert kept.endswith("999" * 100)


def test_many_small_pieces_are_bounded_too() -> None:
    outbox = Outbox()
    for number in range(10_000):
        outbox.add_progress(output("x", str(number)))
    (event,) = take(outbox)
    assert len(event["pieces"]) == MAX_PIECES and event["dropped"] == 10_000 - MAX_PIECES
