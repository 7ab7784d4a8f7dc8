"""The plain data of programs: their settings and limits, what is wrong with one, and what it gave."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Self, TypeAlias, get_args

from toolkit.errors import SetupError

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


# ----------------------------------------------------------------------------------------------------------------------
# What programs may use: imports, files, time, memory, calls.

Checker: TypeAlias = Literal["auto", "mypy", "off"]
"""The type checker of programs; ``auto`` is mypy, and ``off`` checks no types."""


def check_choice(checker: object, where: str = "") -> None:
    """Raises ``SetupError`` for a checker that does not exist."""
    if checker not in get_args(Checker):
        raise SetupError(f"{where}checker must be one of {', '.join(get_args(Checker))}, not {checker!r}")


ProgramWorkspace: TypeAlias = Literal["hidden", "read-only"]

_MIB: Final = 1 << 20
_WORKSPACES: Final = ("hidden", "read-only")
_NUMBERS: Final = (
    "memory", "output_bytes", "value_bytes", "source_bytes", "calls", "parallel_calls", "attachments",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ProgramSettings:
    """Limits of the programs that ``run_program`` runs, for ``ToolkitContext(programs=...)``.

    :param imports: modules that programs may import in addition to the pure ones of the standard library. They must be
        installed in the environment of the toolkit.
    :param workspace: whether programs see the files of the workspace themselves. ``hidden``: only through tools, so that
        every rule on paths holds. ``read-only``: it is their working directory; refused if a rule limits which files may be
        read.
    :param checker: the type checker that reads programs of the tool ``run_program``.
    :param seconds: how long one program may run, including its calls. Its check and its start do not count.
    :param memory: bytes that the process of a program may use.
    :param output_bytes: how much of what a program prints is kept; longer output keeps its head and tail.
    :param value_bytes: the largest value of a program, as JSON.
    :param source_bytes: the longest program.
    :param calls: how many calls one program may make.
    :param parallel_calls: how many of them may run at the same time.
    :param attachments: how many media of its calls are part of the result.

    >>> ProgramSettings(seconds=5, calls=20).parallel_calls
    8
    """

    imports: Collection[str] = ()
    workspace: ProgramWorkspace = "hidden"
    checker: Checker = "auto"
    seconds: float = 120.0
    memory: int = 512 * _MIB
    output_bytes: int = _MIB
    value_bytes: int = 16 * _MIB
    source_bytes: int = 256 << 10
    calls: int = 1000
    parallel_calls: int = 8
    attachments: int = 20

    def __post_init__(self) -> None:
        if self.workspace not in _WORKSPACES:
            raise SetupError(f"programs: workspace must be one of {', '.join(_WORKSPACES)}, not {self.workspace!r}")
        check_choice(self.checker, "programs: ")
        if isinstance(self.imports, str) or not all(_is_module(name) for name in self.imports):
            raise SetupError("programs: imports must be a list of names of modules, such as ['numpy']")
        for name in _NUMBERS:
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise SetupError(f"programs: {name} must be a whole number from 1, not {value!r}")
        if not isinstance(self.seconds, int | float) or isinstance(self.seconds, bool) or not 0 < self.seconds < 1e6:
            raise SetupError(f"programs: seconds must be a number greater than 0, not {self.seconds!r}")


def _is_module(name: object) -> bool:
    return isinstance(name, str) and all(part.isidentifier() for part in name.split("."))


# ----------------------------------------------------------------------------------------------------------------------
# A list of errors that a model can read: in the order of the lines, each once, and not too many.

MAX_ERRORS: Final = 20
MAX_MESSAGE: Final = 500


def shorten_errors(errors: Iterable[ProgramError]) -> tuple[ProgramError, ...]:
    """The first ``MAX_ERRORS`` by line, and one that counts the others; messages with long names are cut."""
    ordered = sorted(dict.fromkeys(map(_shorten, errors)), key=lambda error: (error.line, error.column))
    rest = ordered[MAX_ERRORS:]
    if not rest:
        return tuple(ordered)
    count = ProgramError(rest[0].line, 0, f"and {len(rest)} more errors, here and below", rest[0].kind)
    return (*ordered[:MAX_ERRORS], count)


def _shorten(error: ProgramError) -> ProgramError:
    if len(error.message) <= MAX_MESSAGE:
        return error
    return dataclasses.replace(error, message=f"{error.message[:MAX_MESSAGE]}...")


# ----------------------------------------------------------------------------------------------------------------------
# How long a program may take, from its start to its end.


class TimeLimit(NamedTuple):
    """A number of seconds, and when they are over.

    >>> TimeLimit.beginning_now(2).message
    'the program took longer than 2 s'
    """

    seconds: float
    until: float
    """By the monotonic clock."""

    @classmethod
    def beginning_now(cls, seconds: float) -> Self:
        return cls(seconds, time.monotonic() + seconds)

    @property
    def message(self) -> str:
        """What to tell when they are over."""
        return f"the program took longer than {self.seconds:g} s"
