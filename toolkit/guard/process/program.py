"""Which file a command names, where the running interpreter lives, and what a program needs to be seen.

Nothing here is taken from the environment. Supervisors load this module, inside bubblewrap once for each command: it
imports little.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Sequence
from typing import Final

# Programs and the libraries they load.
SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store")
SYSTEM_PATH: Final = ("/usr/local/bin", "/usr/bin", "/bin")
MAX_LINKS: Final = 40  # as in the kernel
_MAX_LINE: Final = 4096
_MAX_PROGRAMS: Final = 8
_MAX_CONFIG: Final = 64 << 10


def is_below(path: str, folder: str) -> bool:
    """Whether ``path`` is ``folder`` or is below it, name by name; both absolute and real."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def interpreter_roots() -> list[str]:
    """The directories of the running interpreter, under every name it may be called by.

    A virtual environment often refers to its interpreter through links, which must resolve inside the sandbox, too.
    Directories below the system's own are left out.
    """
    programs = [*follow_links(sys.executable), *follow_links(helper_interpreter())]
    places = [sys.prefix, sys.base_prefix, *map(os.path.dirname, programs)]
    found = {form(place) for place in places for form in (os.path.abspath, os.path.realpath)}
    new = {path for path in found if path != "/" and not any(is_below(path, place) for place in SYSTEM)}
    return sorted(path for path in new if not any(path != other and is_below(path, other) for other in new))


def follow_links(path: str) -> list[str]:
    """``path`` and every path it leads to, link by link."""
    hops = [path]
    while os.path.islink(hops[-1]) and len(hops) < MAX_LINKS:
        hops.append(os.path.join(os.path.dirname(hops[-1]), os.readlink(hops[-1])))
    return hops


def helper_interpreter() -> str:
    """The program that our helper processes run: the interpreter that was installed, not a virtual environment's.

    The second reads ``pyvenv.cfg`` when it starts, which decides where its standard library is, and often is in the
    workspace. This path was found out when the running process was started.
    """
    base: str | None = getattr(sys, "_base_executable", None)
    return base if base and os.access(base, os.X_OK) else sys.executable


def search_path(roots: Sequence[str], held: Sequence[str]) -> str:
    """The PATH for bare names: the system's directories, then the interpreter's.

    If the interpreter is in one of ``roots``, where commands write, only if it is also in one of ``held``, which they cannot
    change: otherwise a command could choose what a name means for the next one.
    """
    own = os.path.abspath(os.path.dirname(sys.executable))
    real = os.path.realpath(own)
    if not any(is_below(real, root) for root in roots):
        return ":".join((*SYSTEM_PATH, own))
    # By its real path: a link to it could be replaced.
    return ":".join((*SYSTEM_PATH, real) if any(is_below(real, place) for place in held) else SYSTEM_PATH)


def find(name: str, path: str, folder: str) -> str:
    """The file to run for ``name``: a bare name is searched on ``path``, one with a slash is relative to ``folder``.

    Promise: a bare name never means a file in the current directory. Raises ``FileNotFoundError`` or
    ``PermissionError``, both without a path. Limit: the file may be another one by the time it is run.
    """
    if "/" in name:
        candidates = [os.path.join(folder, name)]
    else:
        candidates = [os.path.join(place, name) for place in path.split(":") if os.path.isabs(place)]
    refused = False
    for candidate in candidates:
        try:
            regular = stat.S_ISREG(os.stat(candidate).st_mode)
        except OSError:
            continue
        if regular and os.access(candidate, os.X_OK):
            return candidate
        refused = True
    number = errno.EACCES if refused else errno.ENOENT
    raise OSError(number, os.strerror(number))


# -- the environment of a program --------------------------------------------------------------------------------------


class ProgramEnvironment:
    """What a program needs to be seen: directories to read, and directories where it finds other programs. ``program`` is
    its path in one of the directories, for a program that is a link from elsewhere."""

    def __init__(self, program: str) -> None:
        self.program = program
        self.roots: list[str] = []
        self.path: list[str] = []

    def add(self, *roots: str) -> None:
        self.roots += [root for root in roots if root not in self.roots and os.path.isdir(root)]


def find_environment(program: str, writable: Sequence[str]) -> ProgramEnvironment:
    """The environment that a program outside the workspace brings along: a venv (pipx, ``uv tool``), a prefix of Node (nvm).

    ``program`` is an absolute path, ``writable`` are the real paths of what tools may have written.

    Promise: starts from a program that a person named by its absolute path, and follows only what no tool can write:
    links, the interpreter line, ``pyvenv.cfg``. It finds environments by what marks them, and returns no more than those:
    a whole directory only if it has a ``pyvenv.cfg``, else ``bin`` and the libraries of a prefix. It never returns a
    directory that contains the workspace, the user's home or the directory of trusted state.
    Limit: what else a program loads (a ``.pth`` file that leads elsewhere) is not found: name it in ``read_roots``.
    """
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
