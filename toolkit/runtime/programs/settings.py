"""What programs may use: imports, files, time, memory, calls."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

from toolkit.errors import SetupError

Checker: TypeAlias = Literal["auto", "mypy", "ty", "pyrefly", "off"]
"""A type checker; ``auto`` is the first of them that is installed, and ``off`` checks no types."""

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
        if self.checker not in get_args(Checker):
            raise SetupError(f"programs: checker must be one of {', '.join(get_args(Checker))}, not {self.checker!r}")
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
