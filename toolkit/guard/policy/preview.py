"""What one call would touch, known before it runs: the input of policy rules, and what an approver sees."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Preview:
    """The paths of a call as it names them, the program or shell text it would run, where and with which variables, the
    URL it would request, and the diff it would make.

    >>> Preview(reads=("a.py",)).paths
    ('a.py',)
    """

    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    argv: tuple[str, ...] | None = None
    shell: str | None = None
    url: str | None = None
    diff: str | None = None
    cwd: str = "."
    """The directory in which the program or shell text would start, relative to the workspace."""
    variables: tuple[str, ...] = ()
    """The names of environment variables that the call adds."""

    @property
    def paths(self) -> tuple[str, ...]:
        return (*self.reads, *self.writes)
