"""What the agent's process sends to the fork server: the setup once, then one request for each command.

What comes back for a command, a report, is written by the supervisor (``supervisor.send_report``) and read by
``fork_client.CommandHandle``.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Final, NamedTuple

from toolkit.guard.permission import CommandLimits, CommandNetwork
from toolkit.guard.process.kernel import Unsupported
from toolkit.guard.process.program import is_below

MOVED: Final = "a path that a rule hides was moved while the command was being started; run it again"


def identity(info: os.stat_result) -> list[int]:
    """Device and inode number, which distinguish a directory from another one that gets its name later."""
    return [info.st_dev, info.st_ino]


def identities(paths: Iterable[str]) -> dict[str, list[int]]:
    """The identity of each path that exists."""
    return {path: identity(os.stat(path)) for path in paths if os.path.exists(path)}


@dataclass(frozen=True, slots=True)
class Roots:
    """Directories a command may use besides the system's, by absolute path; a writable one wins over those above it.

    ``read`` and ``write`` keep the identity each directory had when the guard was made: a command could replace one
    that is in the workspace, and the next command would get whatever its name leads to.
    """

    workspace: str
    workspace_writable: bool
    read: dict[str, list[int]]
    write: dict[str, list[int]]
    trusted: list[str] = field(default_factory=list)
    """What is inside a writable root and stays as it is: places the interpreter loads code from, links that lead there."""

    def outermost_below(self, folder: str) -> list[str]:
        """Those below ``folder`` and not below another one."""
        found: list[str] = []
        for path in sorted({self.workspace, *self.read, *self.write}):
            if is_below(path, folder) and not any(is_below(path, outer) for outer in found):
                found.append(path)
        return found

    def writable_around(self, path: str) -> str:
        """The innermost writable root that ``path`` is in."""
        return max((root for root in (self.workspace, *self.write) if is_below(path, root)), key=len)

    def refuse_replaced(self, path: str, info: os.stat_result) -> None:
        """Raises ``Unsupported`` if ``path`` is a root and ``info`` is not of the directory it was."""
        known = self.write.get(path) or self.read.get(path)
        if known is not None and known != identity(info):
            raise Unsupported("the directory of a root was moved or replaced")


@dataclass(frozen=True, slots=True)
class Setup:
    """What holds for all commands of one fork server; ``bubblewrap`` is its path where it builds the full tier."""

    tier: str
    bubblewrap: str
    roots: Roots
    limits: CommandLimits

    @property
    def is_full(self) -> bool:
        return self.tier == "full"


class HeldEntry(NamedTuple):
    """An entry below a root that is mounted onto itself, so that the command cannot move it, or change it if
    ``read_only``. ``required``: without it the command does not run."""

    root: str
    path: str
    identity: list[int]
    read_only: bool
    required: bool


class LimitedEntry(NamedTuple):
    """An entry below a root that the command cannot open (``hides``) or cannot change, because of a path rule; without a
    path, a whole root that it cannot change. ``holds_way``: the directories on the way cannot be moved."""

    root: str
    path: str
    identity: list[int]
    hides: bool
    holds_way: bool


@dataclass(frozen=True, slots=True)
class CommandRequest:
    """One command to run; ``cwd`` is relative to the workspace, ``home`` is HOME and /tmp in the reduced tier.

    ``until_closed``: a server, whose time is not limited. ``counts_writes``: whether the bytes that it writes to disk are.
    ``held`` and ``limited`` are entries that the full tier mounts over, ``gitconfig`` is the text of ``.gitconfig`` in its
    HOME.
    """

    argv: list[str]
    cwd: str
    env: dict[str, str]
    network: CommandNetwork
    read_only: bool
    home: str = ""
    until_closed: bool = False
    counts_writes: bool = True
    held: list[HeldEntry] = field(default_factory=list)
    gitconfig: str = ""
    limited: list[LimitedEntry] = field(default_factory=list)


def encode(message: Setup | CommandRequest) -> bytes:
    """The message as the fork server reads it."""
    return json.dumps(asdict(message)).encode()


def decode_setup(text: bytes) -> Setup:
    """The setup from what ``encode`` wrote."""
    found = json.loads(text)
    return Setup(found["tier"], found["bubblewrap"], Roots(**found["roots"]), CommandLimits(**found["limits"]))


def read_request(descriptor: int) -> CommandRequest:
    """The request from a file with what ``encode`` wrote; may be read again."""
    found = json.loads(os.pread(descriptor, os.fstat(descriptor).st_size, 0))
    held, limited = found.pop("held"), found.pop("limited")
    return CommandRequest(
        **found, held=[HeldEntry(*entry) for entry in held], limited=[LimitedEntry(*entry) for entry in limited]
    )
