"""How much one command, with everything it starts, may use of the machine."""

from __future__ import annotations

from dataclasses import dataclass, fields

from toolkit.errors import SetupError

_GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class CommandLimits:
    """What one command and all it starts may use together. A command that uses more is ended, and its result says why.

    ``memory``, ``file_size`` (of one file) and ``disk`` (written in total) are in bytes. The defaults fit a laptop.

    >>> CommandLimits(memory=1 << 30).processes
    256
    """

    memory: int = 4 * _GIB
    processes: int = 256
    file_size: int = 4 * _GIB
    disk: int = 16 * _GIB

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise SetupError(f"limits: {field.name} must be a whole number greater than 0, not {value!r}")
