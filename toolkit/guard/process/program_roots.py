"""The environment that a program outside the workspace brings along: a venv (pipx, ``uv tool``), a prefix of Node (nvm).

Promise: starts from a program that a person named by its absolute path, and follows only what no tool can write: links, the
interpreter line, ``pyvenv.cfg``. It finds environments by what marks them, and returns no more than those: a whole directory
only if it has a ``pyvenv.cfg``, else ``bin`` and the libraries of a prefix. It never returns a directory that contains the
workspace, the user's home or the directory of trusted state.
Limit: what else a program loads (a ``.pth`` file that leads elsewhere) is not found: name it in ``read_roots``.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from toolkit.guard.process.program import SYSTEM, follow_links, is_below

_MAX_LINE: Final = 4096
_MAX_PROGRAMS: Final = 8
_MAX_CONFIG: Final = 64 << 10


@dataclass(slots=True)
class ProgramEnvironment:
    """What a program needs to be seen: directories to read, and directories where it finds other programs. ``program`` is
    its path in one of the directories, for a program that is a link from elsewhere."""

    program: str
    roots: list[str] = field(default_factory=list)
    path: list[str] = field(default_factory=list)

    def add(self, *roots: str) -> None:
        self.roots += [root for root in roots if root not in self.roots and os.path.isdir(root)]


def find_environment(program: str, writable: Sequence[str]) -> ProgramEnvironment:
    """The environment of ``program``, an absolute path; ``writable`` are the real paths of what tools may have written."""
    found = ProgramEnvironment(program)
    pending, seen = [program], set[str]()
    while pending and len(seen) < _MAX_PROGRAMS:
        name = pending.pop()
        if name in seen or not os.path.isabs(name):
            continue
        seen.add(name)
        hops = [os.path.abspath(hop) for hop in follow_links(name)]
        if any(is_below(os.path.realpath(os.path.dirname(hop)), root) for hop in hops for root in writable):
            return ProgramEnvironment(program)  # a tool could have made the link
        for hop in hops:
            if not _is_system(hop):
                pending += _read_prefix(hop, found)
        pending += _interpreter(hops[-1], found.path)
    found.roots = [root for root in found.roots if not _is_system(root) and not _is_too_wide(root, writable)]
    links = map(os.path.abspath, follow_links(program))
    found.program = next((hop for hop in links if any(is_below(hop, root) for root in found.roots)), program)
    return found


def expand_home(path: str) -> str:
    """``path`` with ``~/`` at its start replaced by the home of this user."""
    return os.path.expanduser(path) if path.startswith("~/") else path


def _read_prefix(program: str, found: ProgramEnvironment) -> list[str]:
    """Add the environment that has ``program``; returns the interpreters behind it."""
    folder = os.path.dirname(program)
    prefix = os.path.dirname(folder)
    if os.path.basename(folder) == "bin" and os.path.isfile(os.path.join(prefix, "pyvenv.cfg")):
        found.add(prefix)
        home = _read_home(os.path.join(prefix, "pyvenv.cfg"))
        return [os.path.join(home, "python3")] if home else []
    if os.path.basename(folder) == "bin" and os.path.isfile(os.path.join(folder, "node")):
        found.add(folder, os.path.join(prefix, "lib", "node_modules"))
        found.path += [] if folder in found.path else [folder]
    elif os.path.basename(folder) == "bin" and os.path.basename(program).startswith("python"):
        found.add(folder, os.path.join(prefix, "lib"))
    elif (packages := program.find("/node_modules/")) >= 0:
        found.add(program[: packages + len("/node_modules")])
    return []


def _read_home(config: str) -> str:
    """The directory of the interpreter that a venv was made with."""
    with open(config, "rb") as file:
        lines = file.read(_MAX_CONFIG).decode("utf-8", "replace").splitlines()
    for line in lines:
        key, _, value = line.partition("=")
        if key.strip() == "home":
            return value.strip()
    return ""


def _interpreter(program: str, path: Sequence[str]) -> list[str]:
    """The interpreter that the first line of a script names."""
    try:
        with open(program, "rb") as file:
            line = file.readline(_MAX_LINE)
    except OSError:
        return []
    words = line[2:].decode("utf-8", "replace").split() if line.startswith(b"#!") else []
    if words and os.path.basename(words[0]) == "env":
        names = [word for word in words[1:] if not word.startswith("-") and "=" not in word][:1]
        return [os.path.join(folder, name) for name in names for folder in path]
    return words[:1]


def _is_system(path: str) -> bool:
    return any(is_below(path, place) for place in SYSTEM)


def _is_too_wide(root: str, writable: Sequence[str]) -> bool:
    root = os.path.realpath(root)
    private = [os.path.realpath(os.path.expanduser(place)) for place in ("~", "~/.ssh", "~/.local/state", "~/.config")]
    return any(is_below(place, root) for place in (*private, *writable))
