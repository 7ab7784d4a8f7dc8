"""What a program gave: its value, what it printed, what is wrong with it, and its calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from toolkit.wire.content import ContentBlock

ProgramErrorKind: TypeAlias = Literal["syntax", "gate", "type", "policy", "run"]
"""What found the mistake: the parser, the gate on the syntax tree, the type checker, the policy, or the run."""


@dataclass(frozen=True, slots=True)
class ProgramError:
    """One mistake in a program, for the person or model that writes the next version.

    >>> str(ProgramError(4, 9, 'ReadFileOutput has no attribute "lines"', "type"))
    'line 4: ReadFileOutput has no attribute "lines"'
    """

    line: int
    column: int
    """Both count from 1; 0 where the place is not known."""
    message: str
    kind: ProgramErrorKind

    def __str__(self) -> str:
        return f"line {self.line}: {self.message}" if self.line else self.message


@dataclass(frozen=True, slots=True)
class ProgramCall:
    """One call that a program made."""

    tool: str
    line: int
    """The line of the program; 0 where it is not known."""
    error: str | None = None
    """The code of the error, if the call failed."""


@dataclass(frozen=True, slots=True)
class ProgramResult:
    """How a program ended.

    ``value`` is its last expression, or what it assigned to ``result``, as plain JSON data. ``output`` is what it printed.
    ``errors`` is empty if it ran to its end. If it did not pass the checks, nothing has run and ``ran`` is False; if it
    failed while it ran, the last error has the kind ``run``.
    """

    value: Any = None
    output: str = ""
    errors: tuple[ProgramError, ...] = ()
    calls: tuple[ProgramCall, ...] = ()
    ran: bool = False
    attachments: tuple[ContentBlock, ...] = ()
    """Media that its calls attached to their answers, such as images that were read."""
    program_id: str = ""
    """What the audit log calls it."""

    @property
    def ok(self) -> bool:
        """Whether it ran to its end."""
        return self.ran and not self.errors
