"""Recorded traffic from the shared corpus, read once, and comparisons with it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from toolkit.wire import ToolCall


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and its answer, as recorded."""

    id: str
    cassette: str
    step: int
    streaming: bool
    status: int
    tool_calls: list[dict[str, Any]]
    truncated: list[str]
    request: dict[str, Any] | None
    response: Any

    @property
    def events(self) -> list[Any]:
        """The parsed events of a stream."""
        return [event["data"] for event in self.response]


@cache
def _read(file: Path) -> tuple[Exchange, ...]:
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    return tuple(
        Exchange(
            row["id"],
            row["cassette"],
            row["step"],
            row["streaming"],
            row["status"],
            row["tool_calls"],
            row["truncated"],
            row["request_json"],
            row["response"],
        )
        for row in rows
    )


def exchanges(corpus: Path, *names: str) -> list[Exchange]:
    """All exchanges of these files."""
    return [one for name in names for one in _read(corpus / "provider_traffic" / f"{name}.jsonl")]


def turns(found: Sequence[Exchange]) -> Iterator[tuple[Exchange, Exchange]]:
    """Each exchange with the next of its conversation."""
    by_place = {(one.cassette, one.step): one for one in found}
    for one in found:
        after = by_place.get((one.cassette, one.step + 1))
        if after is not None:
            yield one, after


def noted(calls: Sequence[ToolCall]) -> list[dict[str, Any]]:
    """Calls in the form of the corpus."""
    made = []
    for call in calls:
        broken = call.unread_text is not None and not call.arguments and call.unread_text.strip() not in ("{}", "null")
        arguments: Any = {"__unparsed__": call.raw_arguments} if broken else call.arguments
        made.append({"id": call.id, "name": call.name, "arguments": arguments})
    return made
