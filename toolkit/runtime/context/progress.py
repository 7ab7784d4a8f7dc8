"""What a caller hears of a tool while it runs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias, TypeVar

T = TypeVar("T")
logger: Final = logging.getLogger("toolkit")


@dataclass(frozen=True, slots=True)
class Progress:
    """One thing a running tool told: a title for people, data by name, or both.

    >>> Progress("exec_command", "call_1", data={"stream": "stdout", "text": "1 passed"}).data["text"]
    '1 passed'
    """

    tool_name: str
    call_id: str | None = None
    title: str | None = None
    data: Mapping[str, object] = field(default_factory=dict)


OnProgress: TypeAlias = Callable[[Progress], None]
"""Called in the thread of the handler, between two of its steps: it should be quick. What it raises goes to the log."""


def unfailing(listener: Callable[[T], object], name: str) -> Callable[[T], None]:
    """A caller's listener, made harmless to the calls it listens to."""

    def told(event: T) -> None:
        try:
            listener(event)
        except Exception:
            logger.exception("%s failed", name)

    return told


def both(first: OnProgress | None, second: OnProgress) -> OnProgress:
    """Tells two listeners, or the second alone."""
    if first is None:
        return second

    def told(event: Progress) -> None:
        first(event)
        second(event)

    return told
