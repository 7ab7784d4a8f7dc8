"""Progress events of running tools, and their listeners."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias, TypeVar

T = TypeVar("T")
logger: Final = logging.getLogger("toolkit")


@dataclass(frozen=True, slots=True)
class Progress:
    """One event of a running tool: a title for people, data by name, or both.

    >>> Progress("exec_command", "call_1", data={"stream": "stdout", "text": "1 passed"}).data["text"]
    '1 passed'
    """

    tool_name: str
    call_id: str | None = None
    title: str | None = None
    data: Mapping[str, object] = field(default_factory=dict)


OnProgress: TypeAlias = Callable[[Progress], None]
"""Called in the handler's thread, so it should be quick. What it raises is logged."""


def make_harmless(listener: Callable[[T], object], name: str) -> Callable[[T], None]:
    """A listener whose errors are logged and do not affect the calls it listens to."""

    def listen(event: T) -> None:
        try:
            listener(event)
        except Exception:
            logger.exception("%s failed", name)

    return listen


def combine_listeners(first: OnProgress | None, second: OnProgress) -> OnProgress:
    """A listener that passes events to both; the second alone if there is no first."""
    if first is None:
        return second

    def listen(event: Progress) -> None:
        first(event)
        second(event)

    return listen
