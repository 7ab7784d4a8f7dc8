"""What one call would touch, known before it runs: the input of policy rules, and what an approver sees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class Preview:
    """The paths of a call as it names them, the program or shell text it would run, where and with which variables, the
    URL it would request, and the diff it would make. Where making the diff takes time, give ``make_diff``: it is called
    only if somebody will see it.

    >>> Preview(reads=("a.py",)).paths
    ('a.py',)
    """

    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    argv: tuple[str, ...] | None = None
    shell: str | None = None
    url: str | None = None
    diff: str | None = None
    make_diff: Callable[[], str] | None = field(default=None, repr=False, compare=False)
    cwd: str = "."
    """The directory in which the program or shell text would start, relative to the workspace."""
    variables: tuple[str, ...] = ()
    """The names of environment variables that the call adds."""
    tools: tuple[str, ...] = ()
    """The tools that a program of the call can use, each with its lines: ``write_file (lines 3, 7)``."""

    @property
    def paths(self) -> tuple[str, ...]:
        return (*self.reads, *self.writes)

    def with_diff(self) -> Preview:
        """The same with the diff made.

        >>> Preview(writes=("a.py",), make_diff=lambda: "-1\\n+2\\n").with_diff().diff
        '-1\\n+2\\n'
        """
        return self if self.make_diff is None else replace(self, diff=self.make_diff(), make_diff=None)
