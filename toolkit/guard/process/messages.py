"""What the helper is told: once about the workspace and its roots, then about each command."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from toolkit.guard.process.kernel.syscall import Unsupported
from toolkit.guard.process.program import is_below


def identity(info: os.stat_result) -> list[int]:
    """What tells a directory from any other that may get its name later."""
    return [info.st_dev, info.st_ino]


def identities(paths: Iterable[str]) -> dict[str, list[int]]:
    """Each of those that exist, with its identity."""
    return {path: identity(os.stat(path)) for path in paths if os.path.exists(path)}


@dataclass(frozen=True, slots=True)
class Roots:
    """Places a command may use beside the system's, by absolute path; writable ones win over the directories above them.

    ``read`` and ``write`` keep the identity each had when the guard was made: one that lies in the workspace could be
    replaced by a command, and the next one would be handed whatever its name leads to.
    """

    workspace: str
    workspace_writable: bool
    read: dict[str, list[int]]
    write: dict[str, list[int]]

    def outermost_below(self, folder: str) -> list[str]:
        """Those that lie below ``folder`` and not below another one."""
        found: list[str] = []
        for path in sorted({self.workspace, *self.read, *self.write}):
            if is_below(path, folder) and not any(is_below(path, outer) for outer in found):
                found.append(path)
        return found

    def check(self, path: str, info: os.stat_result) -> None:
        """Refuse what has come to stand in for one of the roots."""
        known = self.write.get(path) or self.read.get(path)
        if known is not None and known != identity(info):
            raise Unsupported("a directory given as a root has been moved or replaced")


@dataclass(frozen=True, slots=True)
class Setup:
    """What holds for all commands of one helper; ``bubblewrap`` is its path, where it builds the full tier."""

    tier: str
    bubblewrap: str
    roots: Roots

    @property
    def full(self) -> bool:
        return self.tier == "full"


@dataclass(frozen=True, slots=True)
class Plan:
    """One command; ``cwd`` is relative to the workspace, ``home`` stands in for /tmp and HOME in the reduced tier."""

    argv: list[str]
    cwd: str
    env: dict[str, str]
    network: bool
    read_only: bool
    home: str = ""


def encode(message: Setup | Plan) -> bytes:
    """The text that carries a message to the helper."""
    return json.dumps(asdict(message)).encode()


def read_setup(text: bytes) -> Setup:
    """The other end of ``encode``."""
    found = json.loads(text)
    return Setup(found["tier"], found["bubblewrap"], Roots(**found["roots"]))


def read_plan(text: bytes) -> Plan:
    """The other end of ``encode``."""
    return Plan(**json.loads(text))
