"""How many calls of a toolkit may run at the same time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from toolkit.errors import SetupError


@dataclass(frozen=True, slots=True)
class Concurrency:
    """Limits of one toolkit. What is over a limit waits for its turn; if too much waits already, a call fails at once with
    ``Overloaded`` (``OVERLOADED``), and nothing of it has run.

    >>> limits = Concurrency(calls=8, by_tool={"bash": 2})
    >>> limits.threads, limits.waiting
    (64, 10000)

    :param threads: how many handlers run in threads of the toolkit. Handlers that a deadline has left behind do not count,
        until there are as many of them.
    :param waiting: how many calls may wait, for a thread or for a turn.
    :param calls: how many calls run, whatever their tool; None for no limit.
    :param by_tool: how many calls of single tools run.
    """

    threads: int = 64
    waiting: int = 10_000
    calls: int | None = None
    by_tool: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        numbers = {"threads": self.threads, "calls": self.calls}
        numbers |= {f"by_tool[{name!r}]": limit for name, limit in self.by_tool.items()}
        for name, number in numbers.items():
            if number is not None and (type(number) is not int or number < 1):
                raise SetupError(f"Concurrency: {name} must be a whole number from 1 on, not {number!r}")
        if type(self.waiting) is not int or self.waiting < 0:
            raise SetupError(f"Concurrency: waiting must be a whole number from 0 on, not {self.waiting!r}")


@dataclass(frozen=True, slots=True)
class Load:
    """What a toolkit does at this moment.

    :param running: calls that run in threads of the toolkit.
    :param waiting: calls that wait for a thread or for their turn.
    :param abandoned: handlers that still run though their deadline has passed, or their caller has gone.
    :param unwritten: records of calls that the audit log has taken, but not written yet.
    """

    running: int
    waiting: int
    abandoned: int
    unwritten: int = 0
