"""The full tier built by bubblewrap, for machines that allow namespaces to it and not to us. The fork server runs this.

Bubblewrap makes the namespaces and mounts; the supervisor it starts inside (``bubblewrap_main.py``) is ours, as are
limits, Landlock and seccomp. Bubblewrap is started for each command, because only it can make namespaces there.

Promise: the same as the full tier we build ourselves, kept by other means because bubblewrap takes paths and not
handles. What it mounted is compared with what was meant before the command starts; and a path below the workspace is
mounted only while every running command has it mounted, too, and so cannot put a link in its place. Only root can change
the bubblewrap program. Limits: a command of another guard on the same workspace could still replace such a path while a
command starts, and have bubblewrap make or empty a file of that name elsewhere; a link that leads to the interpreter can be
replaced; uid 0 can change the mode of the five devices.
"""

from __future__ import annotations

import contextlib
import errno
import marshal
import os
import re
import signal
import stat
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.abc import InspectLoader
from typing import Final, TypeAlias

from toolkit.guard.files.resolve import HANDLE, open_beneath, openat2
from toolkit.guard.process import bubblewrap_main
from toolkit.guard.process.kernel import PR_SET_CHILD_SUBREAPER, Unsupported, prctl
from toolkit.guard.process.messages import MOVED, CommandRequest, LimitedEntry, Setup, identity
from toolkit.guard.process.program import SYSTEM, SYSTEM_PATH, is_below
from toolkit.guard.process.supervisor import DEV_LINKS, DEVICES, ETC, TMP, TMP_BYTES, children, send_report

_NAME: Final = "bwrap"
_MAX_PRINTED: Final = 4096
_TOLD: Final = (errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOSPC)  # by bubblewrap, in words only
_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH

_ALWAYS: Final = (
    "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
    "--hostname", "sandbox", "--new-session", "--die-with-parent", "--as-pid-1", "--cap-drop", "ALL",
)  # fmt: skip

# Our own modules come from the memory of the fork server: inside, their files may be missing, or be the workspace's.
# Loading ``typing`` would take a third of the whole start, and nothing of it matters once the code runs.
_START: Final = f"""
import _frozen_importlib, marshal, os, sys
CODE = marshal.loads(os.pread(int(sys.argv[1]), 1 << 24, 0))
class FromMemory:
    def find_spec(name, path=None, target=None):
        return _frozen_importlib.ModuleSpec(name, FromMemory, is_package=CODE[name][0]) if name in CODE else None
    def create_module(spec):
        return None
    def exec_module(module):
        exec(CODE[module.__name__][1], module.__dict__)
class FakeTyping:
    TYPE_CHECKING = False
    def __getattr__(self, name):
        return self
    def __getitem__(self, key):
        return self
sys.meta_path.insert(0, FromMemory)
sys.modules["typing"] = FakeTyping()
from {bubblewrap_main.__name__} import main
main(int(sys.argv[2]))
"""


def find(avoid: Sequence[str]) -> str:
    """The path of bubblewrap: on the system's own path, outside every directory in ``avoid``, writable only by root."""
    why = "it is not installed in the system's own directories"
    for place in SYSTEM_PATH:
        candidate = os.path.join(place, _NAME)
        real = os.path.realpath(candidate)
        if not os.access(real, os.X_OK):
            continue
        if any(is_below(path, folder) for path in (candidate, real) for folder in avoid):
            why = "it is inside the workspace or another root"
        elif not all(map(_only_root_writes, {*_with_parents(candidate), *_with_parents(real)})):
            why = "users other than root could have changed it"
        else:
            return real
    raise Unsupported(why)


def _with_parents(path: str) -> list[str]:
    found = [path]
    while found[-1] != "/":
        found.append(os.path.dirname(found[-1]))
    return found


def _only_root_writes(path: str) -> bool:
    info = os.stat(path)
    return info.st_uid == 0 and not info.st_mode & _OTHERS_WRITE


@dataclass(frozen=True, slots=True)
class _Mount:
    """A root, or a directory or file below the workspace: where it is now, its identity, and how it is mounted."""

    source: str
    identity: list[int]
    read_only: bool


@dataclass(frozen=True, slots=True)
class _EmptyMount:
    """What is mounted over a hidden path; ``file`` is the descriptor of an empty file, None over a directory."""

    file: int | None


_Mounts: TypeAlias = dict[str, _Mount | _EmptyMount]


@dataclass(frozen=True, slots=True)
class _RunningCommand:
    stderr_file: int  # a memory file with what bubblewrap prints
    trusted: frozenset[str]  # places with code of the interpreter that are mounts of their own for this command


class BubblewrapStarter:
    """Starts supervisors inside bubblewrap, one for each command."""

    def __init__(self, setup: Setup, workspace_fd: int, server: int) -> None:
        self._setup = setup
        self._workspace_fd = workspace_fd
        self._server = server
        self._code = _make_memory_file(_loaded_code())
        self._system = _system_steps(with_size=not os.stat(setup.bubblewrap).st_mode & stat.S_ISUID)
        self._files = [path for path in ETC if os.path.isfile(path)]
        self._running: dict[int, _RunningCommand] = {}
        prctl("subreaper", PR_SET_CHILD_SUBREAPER, 1)  # a supervisor whose bubblewrap was killed becomes our child

    def start(self, request: CommandRequest, descriptors: list[int], foreign: list[int]) -> int:
        """Start bubblewrap and return its pid; it inherits only the descriptors named here."""
        _, *stdio, client = descriptors
        writable = self._setup.roots.workspace_writable and not request.read_only
        trusted = self._trusted_mounts() if writable else {}
        stderr_file = _make_memory_file(b"")
        try:
            with contextlib.ExitStack() as stack:
                limited = self._limited_mounts(request, stack)
                mounts = _limit({**self._root_mounts(request), **self._held_mounts(request), **trusted}, limited)
                files = {path: _close_with(stack, os.open(path, os.O_RDONLY | os.O_CLOEXEC)) for path in self._files}
                message = _close_with(stack, _make_memory_file(self._message(request, stdio, client, mounts)))
                pid = self._spawn(
                    [
                        *([] if request.network == "host" else ["--unshare-net"]),
                        *_mount_options({**self._system, **_copy_steps(files)}, mounts),
                        *("--", sys.executable, "-I", "-S", "-c", _START, str(self._code), str(message)),
                    ],
                    [*stdio, client, self._server, self._code, message, *files.values(), *_files_of(mounts)],
                    stderr_file,
                )
        except OSError:
            os.close(stderr_file)
            raise
        self._running[pid] = _RunningCommand(stderr_file, frozenset(trusted))
        return pid

    def _spawn(self, arguments: list[str], descriptors: list[int], stderr_file: int) -> int:
        keep = [(os.POSIX_SPAWN_DUP2, fd, fd) for fd in descriptors]  # onto itself, so that exec does not close it
        return os.posix_spawn(
            self._setup.bubblewrap,
            [_NAME, *_ALWAYS, *arguments],
            {},
            file_actions=[*keep, (os.POSIX_SPAWN_DUP2, stderr_file, 2)],
            setsigdef=(signal.SIGPIPE, signal.SIGXFSZ),
        )

    def prepare_next(self, foreign: list[int]) -> None:
        """Bubblewrap starts with what it is to do."""

    def clean_up(self, pid: int, client: int, killed: bool) -> None:
        """Bubblewrap ends after its supervisor, unless it was killed: then the supervisor is dying and is our child."""
        command = self._running.pop(pid)
        if killed:
            for orphan in children(os.getpid(), self._running):
                os.waitpid(orphan, 0)
        printed = os.pread(command.stderr_file, _MAX_PRINTED, 0)
        os.close(command.stderr_file)
        if printed:  # ignored if the supervisor has reported: the first report counts
            line = _last_line_without_paths(printed)
            number = next((number for number in _TOLD if line.endswith(os.strerror(number))), 0)
            send_report(client, "setup", number, f"bubblewrap: {line}")

    def _message(self, request: CommandRequest, stdio: list[int], client: int, mounts: _Mounts) -> bytes:
        """What ``bubblewrap_main`` reads."""
        message = {
            "roots": asdict(self._setup.roots),
            "limits": asdict(self._setup.limits),
            "request": {**asdict(request), "held": [], "limited": []},
            "stdio": stdio,
            "client": client,
            "server": self._server,
            "mounts": {place: mount.identity for place, mount in mounts.items() if isinstance(mount, _Mount)},
            "hidden": [place for place, mount in mounts.items() if isinstance(mount, _EmptyMount)],
        }
        return marshal.dumps(message)

    def _root_mounts(self, request: CommandRequest) -> dict[str, _Mount]:
        roots = self._setup.roots
        for path in (*roots.read, *roots.write):
            roots.refuse_replaced(path, os.stat(path))
        read_only = request.read_only or not roots.workspace_writable
        mounts = {
            path: _Mount(path, known, True) for path, known in roots.read.items() if not self._is_link_in_root(path)
        }
        mounts |= {path: _Mount(path, known, read_only) for path, known in roots.write.items()}
        handle = f"/proc/self/fd/{self._workspace_fd}"  # the same directory, whatever its name is by now
        return {**mounts, roots.workspace: _Mount(os.readlink(handle), identity(os.stat(handle)), read_only)}

    def _is_link_in_root(self, path: str) -> bool:
        """Whether it is a link in another root, which is mounted with that root; its target is a root of its own."""
        roots = self._setup.roots
        others = (roots.workspace, *roots.read, *roots.write)
        return os.path.islink(path) and any(is_below(path, other) for other in others if other != path)

    def _held_mounts(self, request: CommandRequest) -> dict[str, _Mount]:
        """Parts of repositories, by path. Only required ones: every running command has those mounted, too."""
        workspace = os.readlink(f"/proc/self/fd/{self._workspace_fd}")
        mounts = {}
        for entry in request.held:
            source = workspace if entry.root == self._setup.roots.workspace else entry.root
            if entry.required:
                place, source = (os.path.join(top, entry.path) if entry.path else top for top in (entry.root, source))
                mounts[place] = _Mount(source, entry.identity, entry.read_only)
        return mounts

    def _limited_mounts(self, request: CommandRequest, stack: contextlib.ExitStack) -> _Mounts:
        """What path rules keep from the command. Bubblewrap mounts through a link, so what it leads to is hidden instead."""
        roots = self._setup.roots
        places: dict[str, LimitedEntry] = {}
        for entry in request.limited:
            given = os.path.join(entry.root, entry.path)
            if not os.path.lexists(given) or identity(os.lstat(given)) != entry.identity:
                raise Unsupported(MOVED)
            place = os.path.realpath(given)
            if os.path.exists(place) and any(
                is_below(place, root) for root in (roots.workspace, *roots.read, *roots.write)
            ):
                places[place] = entry
        mounts: _Mounts = {}
        for place, entry in places.items():
            if any(is_below(place, other) and above.hides for other, above in places.items() if other != place):
                continue
            if not entry.hides:
                mounts[place] = _Mount(place, identity(os.stat(place)), True)
            else:
                file = None if os.path.isdir(place) else _close_with(stack, _make_memory_file(b""))
                mounts[place] = _EmptyMount(file)
        return mounts

    def _trusted_mounts(self) -> dict[str, _Mount]:
        """The places from which the interpreter loads code, if every running command has them mounted, too.

        Limit: bubblewrap cannot mount on a link.
        """
        roots = self._setup.roots
        mounts: dict[str, _Mount] = {}
        for place in roots.trusted:
            around = roots.writable_around(place)
            root = self._workspace_fd if around == roots.workspace else os.open(around, HANDLE | os.O_DIRECTORY)
            with contextlib.ExitStack() as stack:
                if root != self._workspace_fd:
                    stack.callback(os.close, root)
                try:
                    handle = open_beneath(root, os.path.relpath(place, around), HANDLE | os.O_NOFOLLOW, openat2)
                except OSError:
                    continue  # it was removed
                stack.callback(os.close, handle)
                info = os.fstat(handle)
                if not stat.S_ISLNK(info.st_mode):
                    mounts[place] = _Mount(os.readlink(f"/proc/self/fd/{handle}"), identity(info), True)
        kept = [place for place in mounts if all(place in other.trusted for other in self._running.values())]
        return {place: mounts[place] for place in kept}


def _system_steps(*, with_size: bool) -> dict[str, list[str]]:
    """The options for what is the same for all commands, by path."""
    steps: dict[str, list[str]] = {"/proc": ["--proc", "/proc", "--remount-ro", "/proc"]}
    for path in (*SYSTEM, *ETC):
        if path in SYSTEM and os.path.islink(path):
            steps[path] = ["--symlink", os.readlink(path), path]
        elif os.path.isdir(path):
            steps[path] = ["--ro-bind", path, path]
    steps |= {path: ["--dev-bind", path, path] for path in DEVICES}
    links = {"/var/tmp": TMP, **{f"/dev/{name}": target for name, target in DEV_LINKS.items()}}
    steps |= {path: ["--symlink", target, path] for path, target in links.items()}
    size = ["--size", str(TMP_BYTES)] if with_size else []  # a set-user-id bubblewrap refuses it
    return {**steps, TMP: ["--perms", "1777", *size, "--tmpfs", TMP]}


def _copy_steps(files: dict[str, int]) -> dict[str, list[str]]:
    """The options that copy small files, by path: a mount for each would take as long as all the rest."""
    return {path: ["--perms", "0444", "--file", str(fd), path] for path, fd in files.items()}


def _limit(mounts: dict[str, _Mount], limited: _Mounts) -> _Mounts:
    """All mounts: nothing is inside a hidden one, and nothing writable inside one that is kept."""
    found: _Mounts = {}
    for place, mount in mounts.items():
        around = [limit for other, limit in limited.items() if is_below(place, other)]
        if not any(isinstance(limit, _EmptyMount) for limit in around):
            found[place] = replace(mount, read_only=True) if around else mount
    return {**found, **limited}


def _files_of(mounts: _Mounts) -> list[int]:
    return [mount.file for mount in mounts.values() if isinstance(mount, _EmptyMount) and mount.file is not None]


def _mount_options(system: dict[str, list[str]], mounts: _Mounts) -> list[str]:
    """The options for all mounts, outermost first."""
    # A path that is usually a link becomes a directory where a root is below it.
    steps = {
        place: step for place, step in system.items() if step[0] != "--symlink" or not _contains_any(place, mounts)
    }
    for place, mount in mounts.items():
        steps[place] = _mount_step(place, mount)
        for parent in _with_parents(place)[1:]:
            around = max((root for root in mounts if is_below(parent, root)), key=len, default=parent)
            outer = mounts.get(around)
            if around != parent and isinstance(outer, _Mount) and not outer.read_only:
                # Also a mount of its own, or a command could replace it by a link that bubblewrap follows.
                steps[parent] = ["--bind", parent, parent]
    return [*(word for place in sorted(steps) for word in steps[place]), "--remount-ro", "/"]


def _mount_step(place: str, mount: _Mount | _EmptyMount) -> list[str]:
    if isinstance(mount, _Mount):
        return ["--ro-bind" if mount.read_only else "--bind", mount.source, place]
    if mount.file is None:
        return ["--perms", "0000", "--tmpfs", place, "--remount-ro", place]
    return ["--perms", "0000", "--ro-bind-data", str(mount.file), place]


def _contains_any(folder: str, places: Iterable[str]) -> bool:
    return any(is_below(place, folder) for place in places)


def _loaded_code() -> bytes:
    """Every module of ours that this process has loaded: whether it is a package, and its code."""
    found = {}
    for name in [name for name in sys.modules if name.partition(".")[0] == "toolkit"]:
        spec = sys.modules[name].__spec__
        if spec is not None and isinstance(spec.loader, InspectLoader):
            found[name] = (spec.submodule_search_locations is not None, spec.loader.get_code(name))
    return marshal.dumps(found)


def _make_memory_file(data: bytes) -> int:
    fd = os.memfd_create("toolkit")
    with open(fd, "wb", closefd=False) as file:
        file.write(data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _close_with(stack: contextlib.ExitStack, fd: int) -> int:
    stack.callback(os.close, fd)
    return fd


def _last_line_without_paths(printed: bytes) -> str:
    """The last line that bubblewrap, or Python, printed; paths of the host are not shown."""
    line = printed.decode(errors="replace").rstrip().rpartition("\n")[2].removeprefix(f"{_NAME}: ")
    return re.sub(r"/\S+", "(a path)", line)[:200]
