"""Which file a command names, and where the running interpreter lives. Nothing here is taken from the environment."""

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
