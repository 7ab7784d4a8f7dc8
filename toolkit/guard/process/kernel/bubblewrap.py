"""The full tier built by bubblewrap, for machines that grant namespaces to it and not to us.

Bubblewrap makes the namespaces and mounts; the keeper it starts inside (``carried.py``) is ours, as are limits,
Landlock and seccomp. It is started anew for each command, because only bubblewrap itself can make namespaces there.

Promise: the same as our own, kept by other means where bubblewrap takes names and not handles. What it mounted is
compared with what was meant before the command starts; and a name below the workspace is mounted on only while every
command under way has it mounted, too, and so cannot put a link in its place. Its program is one that only root can
change. Limits: a command of another guard on the same workspace could still swap such a name while a command starts,
and have bubblewrap make or empty a file of that name elsewhere; uid 0 can change the mode of the five devices.
"""

from __future__ import annotations

import contextlib
import marshal
import os
import re
import signal
import stat
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from importlib.abc import InspectLoader
from typing import Final

from toolkit.guard.fs.resolve import HANDLE, open_beneath, openat2
from toolkit.guard.process.host_view import DEV_LINKS, DEVICES, ETC, GIT_RUNS, TMP, TMP_BYTES
from toolkit.guard.process.kernel import bubblewrap_main as carried
from toolkit.guard.process.kernel.syscall import PR_SET_CHILD_SUBREAPER, Unsupported, prctl
from toolkit.guard.process.messages import Plan, Setup, identity
from toolkit.guard.process.process_tree import children
from toolkit.guard.process.program import SYSTEM, SYSTEM_PATH, is_below
from toolkit.guard.process.supervisor import tell

_NAME: Final = "bwrap"
_MAX_NOTES: Final = 4096
_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH

_ALWAYS: Final = (
    "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
    "--hostname", "sandbox", "--new-session", "--die-with-parent", "--as-pid-1", "--cap-drop", "ALL",
)  # fmt: skip

# Our own modules as the helper has them: inside, their files may be missing, or be the workspace's. Loading ``typing``
# would take a third of the whole start; nothing of it means anything once the code runs.
_START: Final = f"""
import _frozen_importlib, marshal, os, sys
CODE = marshal.loads(os.pread(int(sys.argv[1]), 1 << 24, 0))
class Carried:
    def find_spec(name, path=None, target=None):
        return _frozen_importlib.ModuleSpec(name, Carried, is_package=CODE[name][0]) if name in CODE else None
    def create_module(spec):
        return None
    def exec_module(module):
        exec(CODE[module.__name__][1], module.__dict__)
class Meaningless:
    TYPE_CHECKING = False
    def __getattr__(self, name):
        return self
    def __getitem__(self, key):
        return self
sys.meta_path.insert(0, Carried)
sys.modules["typing"] = Meaningless()
from {carried.__name__} import main
main(int(sys.argv[2]))
"""


def find(avoid: Sequence[str]) -> str:
    """Where bubblewrap is: on the system's own path, outside of every directory in ``avoid``, and root's alone."""
    why = "it is not installed in the system's own places"
    for place in SYSTEM_PATH:
        candidate = os.path.join(place, _NAME)
        real = os.path.realpath(candidate)
        if not os.access(real, os.X_OK):
            continue
        if any(is_below(path, folder) for path in (candidate, real) for folder in avoid):
            why = "it lies in the workspace or one of its roots"
        elif not all(map(_is_roots_alone, {*_with_parents(candidate), *_with_parents(real)})):
            why = "others than root could have changed it"
        else:
            return real
    raise Unsupported(why)


def _with_parents(path: str) -> list[str]:
    found = [path]
    while found[-1] != "/":
        found.append(os.path.dirname(found[-1]))
    return found


def _is_roots_alone(path: str) -> bool:
    info = os.stat(path)
    return info.st_uid == 0 and not info.st_mode & _OTHERS_WRITE


@dataclass(frozen=True, slots=True)
class _Mount:
    """A directory or file below the workspace or of it: where it is now, what it is, where the command finds it."""

    source: str
    known: list[int]
    read_only: bool


@dataclass(frozen=True, slots=True)
class _UnderWay:
    notes: int  # what bubblewrap has to say
    repository: frozenset[str]  # names of the repository that are mounts of their own for this command


class Bubblewrap:
    """Starts keepers inside bubblewrap, one for each command."""

    def __init__(self, setup: Setup, workspace_fd: int, server: int) -> None:
        self._setup = setup
        self._workspace_fd = workspace_fd
        self._server = server
        self._code = _in_memory(_our_code())
        self._system = _system(with_size=not os.stat(setup.bubblewrap).st_mode & stat.S_ISUID)
        self._files = [path for path in ETC if os.path.isfile(path)]
        self._under_way: dict[int, _UnderWay] = {}
        prctl("subreaper", PR_SET_CHILD_SUBREAPER, 1)  # a keeper whose bubblewrap was killed comes to us

    def start(self, plan: Plan, stdio: list[int], job: int, foreign: list[int]) -> int:
        """Start bubblewrap; nothing is inherited but what is named here."""
        repository = self._repository() if self._setup.roots.workspace_writable and not plan.read_only else {}
        mounts = {**self._roots(plan), **repository}
        notes = _in_memory(b"")
        try:
            with contextlib.ExitStack() as stack:
                files = {path: _until(stack, os.open(path, os.O_RDONLY | os.O_CLOEXEC)) for path in self._files}
                message = _until(stack, _in_memory(self._message(plan, stdio, job, mounts)))
                pid = self._spawn(
                    [
                        *([] if plan.network else ["--unshare-net"]),
                        *_mounting({**self._system, **_copying(files)}, mounts),
                        *("--", sys.executable, "-I", "-S", "-c", _START, str(self._code), str(message)),
                    ],
                    [*stdio, job, self._server, self._code, message, *files.values()],
                    notes,
                )
        except OSError:
            os.close(notes)
            raise
        self._under_way[pid] = _UnderWay(notes, frozenset(repository))
        return pid

    def _spawn(self, arguments: list[str], descriptors: list[int], notes: int) -> int:
        keep = [(os.POSIX_SPAWN_DUP2, fd, fd) for fd in descriptors]  # onto itself: no longer closed by exec
        return os.posix_spawn(
            self._setup.bubblewrap,
            [_NAME, *_ALWAYS, *arguments],
            {},
            file_actions=[*keep, (os.POSIX_SPAWN_DUP2, notes, 2)],
            setsigdef=(signal.SIGPIPE, signal.SIGXFSZ),
        )

    def ended(self, pid: int, job: int, killed: bool) -> None:
        """Bubblewrap goes after its keeper, unless somebody killed it: then the keeper is dying, and is ours now."""
        under_way = self._under_way.pop(pid)
        if killed:
            for orphan in children(os.getpid(), self._under_way):
                os.waitpid(orphan, 0)
        notes = os.pread(under_way.notes, _MAX_NOTES, 0)
        os.close(under_way.notes)
        if notes:  # too late to matter where the keeper has spoken
            tell(job, "setup", text=f"bubblewrap: {_without_paths(notes)}")

    def _message(self, plan: Plan, stdio: list[int], job: int, mounts: dict[str, _Mount]) -> bytes:
        message = {
            "roots": asdict(self._setup.roots),
            "plan": asdict(plan),
            "stdio": stdio,
            "job": job,
            "server": self._server,
            "mounts": {place: mount.known for place, mount in mounts.items()},
        }
        return marshal.dumps(message)

    def _roots(self, plan: Plan) -> dict[str, _Mount]:
        roots = self._setup.roots
        for path in (*roots.read, *roots.write):
            roots.check(path, os.stat(path))
        read_only = plan.read_only or not roots.workspace_writable
        mounts = {path: _Mount(path, known, True) for path, known in roots.read.items() if not self._comes_along(path)}
        mounts |= {path: _Mount(path, known, read_only) for path, known in roots.write.items()}
        handle = f"/proc/self/fd/{self._workspace_fd}"  # the same directory, whatever its name is by now
        return {**mounts, roots.workspace: _Mount(os.readlink(handle), identity(os.stat(handle)), read_only)}

    def _comes_along(self, path: str) -> bool:
        """Whether it is a link in another root, and so there with that, to a root that has a name of its own."""
        roots = self._setup.roots
        others = (roots.workspace, *roots.read, *roots.write)
        return os.path.islink(path) and any(is_below(path, other) for other in others if other != path)

    def _repository(self) -> dict[str, _Mount]:
        """What is kept of a repository, by its place: as ``namespaces`` does it, but see the promise above."""
        workspace = os.readlink(f"/proc/self/fd/{self._workspace_fd}")
        mounts: dict[str, _Mount] = {}
        for name in (".git", *(f".git/{name}" for name in GIT_RUNS)):
            try:
                handle = open_beneath(self._workspace_fd, name, HANDLE, openat2)
            except OSError:
                continue  # missing, or leading outside, which is read-only anyway
            source = os.readlink(f"/proc/self/fd/{handle}")
            if is_below(source, workspace):
                place = self._setup.roots.workspace + source.removeprefix(workspace)
                mounts[place] = _Mount(source, identity(os.fstat(handle)), name != ".git")
            os.close(handle)
        kept = [place for place in mounts if all(place in other.repository for other in self._under_way.values())]
        return {place: mounts[place] for place in kept}


def _system(*, with_size: bool) -> dict[str, list[str]]:
    """What is the same for all commands, by its place."""
    steps: dict[str, list[str]] = {"/proc": ["--proc", "/proc", "--remount-ro", "/proc"]}
    for path in (*SYSTEM, *ETC):
        if path in SYSTEM and os.path.islink(path):
            steps[path] = ["--symlink", os.readlink(path), path]
        elif os.path.isdir(path):
            steps[path] = ["--ro-bind", path, path]
    steps |= {path: ["--dev-bind", path, path] for path in DEVICES}
    links = {"/var/tmp": TMP, **{f"/dev/{name}": target for name, target in DEV_LINKS.items()}}
    steps |= {path: ["--symlink", target, path] for path, target in links.items()}
    size = ["--size", str(TMP_BYTES)] if with_size else []  # refused to a bubblewrap that is set-user-id
    return {**steps, TMP: ["--perms", "1777", *size, "--tmpfs", TMP]}


def _copying(files: dict[str, int]) -> dict[str, list[str]]:
    """Small files are copied, by descriptor: a mount for each would take as long as all the rest."""
    return {path: ["--perms", "0444", "--file", str(fd), path] for path, fd in files.items()}


def _mounting(system: dict[str, list[str]], mounts: dict[str, _Mount]) -> list[str]:
    """All mounts, outermost first."""
    # Where a root lies below a place that is a link otherwise, it is a directory.
    steps = {place: step for place, step in system.items() if step[0] != "--symlink" or not _holds(place, mounts)}
    for place, mount in mounts.items():
        steps[place] = ["--ro-bind" if mount.read_only else "--bind", mount.source, place]
        for parent in _with_parents(place)[1:]:
            around = max((root for root in mounts if is_below(parent, root)), key=len, default=parent)
            if around != parent and not mounts[around].read_only:
                # A mount of its own, too, or a command could move it and put a link there that bubblewrap follows.
                steps[parent] = ["--bind", parent, parent]
    return [*(word for place in sorted(steps) for word in steps[place]), "--remount-ro", "/"]


def _holds(folder: str, places: Iterable[str]) -> bool:
    return any(is_below(place, folder) for place in places)


def _our_code() -> bytes:
    """Every module of ours this process has loaded: whether it is a package, and its code."""
    found = {}
    for name in [name for name in sys.modules if name.partition(".")[0] == "toolkit"]:
        spec = sys.modules[name].__spec__
        if spec is not None and isinstance(spec.loader, InspectLoader):
            found[name] = (spec.submodule_search_locations is not None, spec.loader.get_code(name))
    return marshal.dumps(found)


def _in_memory(data: bytes) -> int:
    fd = os.memfd_create("toolkit")
    with open(fd, "wb", closefd=False) as file:
        file.write(data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _until(stack: contextlib.ExitStack, fd: int) -> int:
    stack.callback(os.close, fd)
    return fd


def _without_paths(notes: bytes) -> str:
    """The last line of what bubblewrap, or Python, complained of; names of the host are nobody's business."""
    line = notes.decode(errors="replace").rstrip().rpartition("\n")[2].removeprefix(f"{_NAME}: ")
    return re.sub(r"/\S+", "(a path)", line)[:200]
