"""What one call would touch, known before it runs: the input of policy rules, and what an approver sees."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Preview:
    """The paths of a call as it names them, the program or shell text it would run, the URL it would request, and the diff
    it would make.

    >>> Preview(reads=("a.py",)).paths
    ('a.py',)
    """

    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    argv: tuple[str, ...] | None = None
    shell: str | None = None
    url: str | None = None
    diff: str | None = None

    @property
    def paths(self) -> tuple[str, ...]:
        return (*self.reads, *self.writes)
