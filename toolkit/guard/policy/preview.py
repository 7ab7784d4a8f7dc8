"""What one call would touch, known before it runs: what rules are judged on and what an approver is shown."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Preview:
    """Paths as the call names them, the program or shell text it would run, the address it would ask, the change it
    would make.

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
