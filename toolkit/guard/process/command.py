"""One command as the agent's process sees it: whether it has ended, how, and why not; its environment and its HOME.

``Sandbox.start`` makes them. How a command ended is the same data either way.
"""

from __future__ import annotations

import contextlib
import difflib
import errno
import os
import re
import secrets
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from toolkit.errors import InvalidArguments, SandboxViolation, ToolFailed, ToolkitError, ToolNotAllowed
from toolkit.guard.files.place import closing_descriptor
from toolkit.guard.permission import CommandLimits, EndedBy
from toolkit.guard.process.fork_client import CommandHandle
from toolkit.guard.process.kernel import PROXY_PORT
from toolkit.guard.process.messages import CommandRequest
from toolkit.system_faults import SCARCE_AT_START, describe_errno, system_fault
from toolkit.visible import display

if TYPE_CHECKING:
    from toolkit.guard.network.proxy import CommandProxy

# No room for another user namespace is ENOSPC. Commands have run in this sandbox, so that may pass as well.
_MAY_PASS: Final = SCARCE_AT_START | {errno.ENOSPC}
_MAX_COMPARED_NAME: Final = 100
# A process that writes past the limit gets this signal; a shell makes 128 and its number of it.
_TOO_LARGE_A_FILE: Final = (-signal.SIGXFSZ, 128 + signal.SIGXFSZ)
_MAX_ARGUMENT_BYTES: Final = 128 * 1024 - 1  # the kernel's limit for one
_MAX_ARGV_BYTES: Final = 1 << 20  # the kernel allows about twice that for all of them and the environment


@dataclass(frozen=True, slots=True)
class CommandExit:
    """How a command ended: either ``exit_code`` or ``signal`` is set; ``ended_by`` is the limit that ended it, and ``note``
    says so for the reader. ``refusals`` say what the guarded network did not permit."""

    exit_code: int | None
    signal: int | None
    ended_by: EndedBy | None = None
    note: str = ""
    refusals: tuple[str, ...] = ()

    @classmethod
    def from_wait_status(cls, status: int, ended_by: EndedBy | None, limits: CommandLimits) -> CommandExit:
        """From the status that ``wait`` returns, and the limit that the supervisor saw exceeded."""
        code = os.waitstatus_to_exitcode(status)
        if code in _TOO_LARGE_A_FILE:
            ended_by = "file_size"
        note = limits.explain(ended_by) if ended_by else ""
        return cls(None, -code, ended_by, note) if code < 0 else cls(code, None, ended_by, note)


StartProxy: TypeAlias = "Callable[[int], CommandProxy]"
"""Starts the proxy of a command on the socket it listens on."""


class SandboxedCommand:
    """A command in the sandbox: all of it is gone when the fork server closes its socket.

    ``start_proxy`` is for the guarded network; the proxy ends with the command.
    """

    def __init__(
        self,
        handle: CommandHandle,
        request: CommandRequest,
        limits: CommandLimits,
        start_proxy: StartProxy | None = None,
    ) -> None:
        self._handle = handle
        self._request = request
        self._limits = limits
        self._start_proxy = start_proxy
        self._proxy: CommandProxy | None = None
        self._killed = False
        self.poll_fd: int | None = handle.poll_fd
        """A descriptor that becomes readable when ``has_ended`` may have changed."""

    def has_ended(self) -> bool:
        """Whether it and everything it started are gone; never waits."""
        ended = self._handle.has_ended()
        if self._start_proxy is not None and self._handle.listener is not None:
            start, self._start_proxy = self._start_proxy, None
            self._proxy = start(self._handle.listener)
        if ended:
            self._close_proxy()
        return ended

    def kill(self) -> None:
        """Kill it and everything it started; returns before it ``has_ended``."""
        self._killed = True
        self._handle.kill()

    def outcome(self) -> CommandExit:
        """How it ended, once it has; raises the reason if it never started."""
        match self._handle.reports[:1]:
            case [("status", status, ended_by)]:
                end = CommandExit.from_wait_status(status, cast("EndedBy", ended_by) or None, self._limits)
                return replace(end, refusals=tuple(self._proxy.refusals())) if self._proxy is not None else end
            case [("find", number, _)]:
                raise program_not_found(self._request, number)
            case [("exec", number, _)]:
                raise program_not_started(self._request.argv[0], number)
            case [("cwd", _, _)]:
                raise ToolFailed("NOT_DIRECTORY", "the working directory changed while the command was being started")
            case [("watch", _, why)]:
                raise ToolFailed("IO", f"the command was killed: what it uses could not be read any more ({why})")
            case [("setup", number, why)] if number in _MAY_PASS:
                raise system_fault("the command was not run: its sandbox could not be built", why)
            case [("setup", _, why)]:
                raise ToolNotAllowed(f"the command was not run: its sandbox could not be built ({why})")
        if self._killed:
            return CommandExit(None, signal.SIGKILL)
        raise ToolFailed("IO", "the sandbox ended before the command did: it was killed from outside")

    def close(self) -> None:
        """Release its descriptors."""
        self._handle.close()
        self._close_proxy()

    def _close_proxy(self) -> None:
        if self._proxy is not None:
            self._proxy.close()


class UnsandboxedCommand:
    """A command without a sandbox. Limit: processes that left its process group are not killed."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._owner = os.getpid()
        self.poll_fd: int | None = os.pidfd_open(process.pid) if hasattr(os, "pidfd_open") else None

    def has_ended(self) -> bool:
        if self._owner != os.getpid():  # in a fork: it goes on, for the parent
            return True
        if self._process.poll() is None:
            return False
        self.kill()  # what it left in the background
        return True

    def kill(self) -> None:
        if self._owner == os.getpid():
            with contextlib.suppress(OSError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def outcome(self) -> CommandExit:
        if self._owner != os.getpid():
            raise ToolFailed("IO", "the command belongs to the process that this one was forked from")
        code = self._process.returncode
        return CommandExit(None, -code) if code < 0 else CommandExit(code, None)

    def close(self) -> None:
        if self.poll_fd is not None:
            os.close(self.poll_fd)


Command: TypeAlias = SandboxedCommand | UnsandboxedCommand
"""A command that was started and may have ended."""


def program_not_found(request: CommandRequest, number: int | None) -> ToolkitError:
    """The error for a program that ``program.find`` did not find; ``number`` is its errno."""
    name = request.argv[0]
    if number != errno.ENOENT:
        return program_not_started(name, number if number in _MAY_PASS else errno.EACCES)
    message = f"{_shown_name(name)} does not exist, or cannot be seen from inside the sandbox"
    return ToolFailed("COMMAND_NOT_FOUND", message, near=_near_names(name, request.env["PATH"]))


def program_not_started(name: str, number: int | None) -> ToolkitError:
    """The error for a program that exists and could not be started; ``number`` is the errno."""
    if number == errno.E2BIG:
        return InvalidArguments("the arguments and the environment are too long for one command")
    shown = _shown_name(name)
    if number in _MAY_PASS:
        return system_fault(f"{shown} could not be started", describe_errno(number))
    if number == errno.ENOENT:
        return ToolFailed("NOT_EXECUTABLE", f"{shown} needs an interpreter that does not exist here")
    return ToolFailed("NOT_EXECUTABLE", f"{shown} cannot be run: {os.strerror(number or errno.EACCES).lower()}")


def _shown_name(name: str) -> str:
    """An absolute path is not shown: it would reveal paths of the host."""
    return "the program" if name.startswith("/") else f"'{display(name)}'"


def _near_names(name: str, path: str) -> list[str]:
    """Names on ``path`` that resemble a missing one; none for a name with a slash."""
    if "/" in name or len(name) > _MAX_COMPARED_NAME:
        return []
    names: set[str] = set()
    for place in path.split(":"):
        with contextlib.suppress(OSError):
            names.update(os.listdir(place))
    return difflib.get_close_matches(name, sorted(names), cutoff=0.75)


def check_argv(argv: Sequence[str]) -> tuple[str, ...]:
    """The words of a command, checked for what the kernel would refuse."""
    if isinstance(argv, str) or not all(isinstance(word, str) for word in argv):
        raise InvalidArguments("a command must be a list of strings, with the program first")
    if not argv or not argv[0]:
        raise InvalidArguments("a command must start with the name of a program")
    total = 0
    for word in argv:
        try:
            size = len(word.encode())
        except UnicodeEncodeError:
            raise InvalidArguments("a command must not contain lone surrogates") from None
        if "\0" in word:
            raise InvalidArguments("a command must not contain a NUL character")
        total += size + 1
        if size > _MAX_ARGUMENT_BYTES or total > _MAX_ARGV_BYTES:
            raise InvalidArguments(
                f"a command must not be longer than {_MAX_ARGV_BYTES} bytes, and one argument not longer than "
                f"{_MAX_ARGUMENT_BYTES}; write long data to a file or give it as input"
            )
    return tuple(argv)


# -- the environment ---------------------------------------------------------------------------------------------------

# Promise: built from nothing, so a command inherits no secret of the host. Variables that make a loader, shell, interpreter
# or common tool run other code are refused by name, in upper or lower case. Limit: the list covers common programs; a
# program in the workspace may use variables of its own. What builds need (``CC``, ``CARGO_*``, ``PIP_*``) may be set, but no
# allow rule on commands covers a call that sets it.

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_MAX_VALUE_BYTES: Final = 100_000  # the kernel allows 128 KiB for one variable, name included
_MAX_VARIABLES: Final = 256

_REFUSED: Final = frozenset(
    {
        # where programs, shells and their start-up files are found
        "PATH", "HOME", "TMPDIR", "CDPATH", "ENV", "ZDOTDIR", "FPATH", "SHELL", "BASH_ENV",
        # how a shell reads its text
        "IFS", "PS4", "GLOBIGNORE", "SHELLOPTS", "BASHOPTS", "BASH_XTRACEFD", "PROMPT_COMMAND",
        # code and options for interpreters
        "NODE_OPTIONS", "NODE_PATH", "RUBYOPT", "RUBYLIB", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS",
        "CLASSPATH", "LUA_INIT", "LUA_PATH", "LUA_CPATH", "TCLLIBPATH", "R_PROFILE", "R_ENVIRON", "PHPRC",
        "PHP_INI_SCAN_DIR", "MAKEFLAGS", "MAKEFILES", "GNUMAKEFLAGS",
        # programs that other programs start
        "EDITOR", "VISUAL", "PAGER", "MANPAGER", "LESSOPEN", "LESSCLOSE", "BROWSER", "RUSTC_WRAPPER",
        "RUSTC_WORKSPACE_WRAPPER",
        # options and settings of common tools, some of which name programs
        "TAR_OPTIONS", "GREP_OPTIONS", "RIPGREP_CONFIG_PATH", "LESS", "LESSKEY", "LESSKEYIN", "LESSKEY_CONTENT", "MORE",
        "MANOPT", "GZIP", "ZIPOPT", "UNZIP", "ZIPINFO", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS",
        # what the C library and OpenSSL load or write
        "GCONV_PATH", "LOCPATH", "NLSPATH", "GETCONF_DIR", "HOSTALIASES", "RES_OPTIONS",
        "OPENSSL_CONF", "OPENSSL_MODULES", "OPENSSL_ENGINES", "SSLKEYLOGFILE",
    }
)  # fmt: skip
_REFUSED_PREFIXES: Final = (
    "LD_", "DYLD_", "GIT_", "PYTHON", "PERL", "BASH_FUNC_", "MALLOC_", "GLIBC_", "SSH_", "SUDO_",
)  # fmt: skip
_HARMLESS_PYTHON: Final = frozenset(
    ["PYTHONUNBUFFERED", "PYTHONHASHSEED", "PYTHONDONTWRITEBYTECODE", "PYTHONIOENCODING", "PYTHONUTF8"]
)
_HARMLESS: Final = _HARMLESS_PYTHON | {
    "CI", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "FORCE_COLOR", "LANG", "LINES", "NO_COLOR", "RUST_BACKTRACE",
    "SOURCE_DATE_EPOCH", "TZ",
    "LC_ADDRESS", "LC_ALL", "LC_COLLATE", "LC_CTYPE", "LC_IDENTIFICATION", "LC_MEASUREMENT", "LC_MESSAGES",
    "LC_MONETARY", "LC_NAME", "LC_NUMERIC", "LC_PAPER", "LC_TELEPHONE", "LC_TIME",
}  # fmt: skip


def runs_other_code(name: str) -> bool:
    """Whether a variable of this name can make common programs run other code: no command may get it from a tool.

    >>> runs_other_code("LD_PRELOAD"), runs_other_code("CC")
    (True, False)
    """
    folded = name.upper()
    return name not in _HARMLESS_PYTHON and (folded in _REFUSED or folded.startswith(_REFUSED_PREFIXES))


def is_harmless(name: str) -> bool:
    """Whether a variable of this name is known not to change what common programs run: allow rules cover only these.

    >>> is_harmless("LC_ALL"), is_harmless("CC")
    (True, False)
    """
    return name in _HARMLESS


# How programs find the proxy of the guarded network; some read only one of the two spellings.
_PROXY: Final = {
    name: value
    for upper, value in (
        ("HTTP_PROXY", f"http://127.0.0.1:{PROXY_PORT}"),
        ("HTTPS_PROXY", f"http://127.0.0.1:{PROXY_PORT}"),
        ("NO_PROXY", "localhost,127.0.0.1,::1"),
    )
    for name in (upper, upper.lower())
}


def build_environment(
    additions: Mapping[str, str], *, path: str, home: str, tmp: str, trusted: bool = False, proxied: bool = False
) -> dict[str, str]:
    """The whole environment of one command; ``additions`` that make programs run other code are ``SandboxViolation``.

    Unless they are ``trusted``: given by the person who chose the command and chose to run it without a sandbox.
    ``proxied`` adds the proxy of the guarded network, which ``additions`` may not change.
    """
    if len(additions) > _MAX_VARIABLES:
        raise InvalidArguments(f"at most {_MAX_VARIABLES} environment variables may be given")
    for name, value in additions.items():
        _check(name, value, trusted=trusted)
    fixed = {"PATH": path, "HOME": home, "TMPDIR": tmp, "LANG": "C.UTF-8", "TERM": "dumb"}
    if not proxied:
        return {**fixed, **additions}
    for name in additions:
        if name.upper() in _PROXY:
            raise InvalidArguments(f"{name} may not be set: commands reach the network through the toolkit's own proxy")
    # Node looks at the names above only if it is told to.
    return {**fixed, "NODE_USE_ENV_PROXY": "1", **additions, **_PROXY}


def _check(name: object, value: object, *, trusted: bool) -> None:
    if not isinstance(name, str) or not isinstance(value, str):
        raise InvalidArguments("the names and values of environment variables must be strings")
    if not _NAME.fullmatch(name):
        raise InvalidArguments(f"'{display(name[:80])}' is not a valid name for an environment variable")
    if not trusted and runs_other_code(name):
        raise SandboxViolation(f"the environment variable {name} may not be set: it can make programs run other code")
    try:
        data = value.encode()
    except UnicodeEncodeError:
        raise InvalidArguments(f"the value of {name} must not contain lone surrogates") from None
    if b"\0" in data or len(data) > _MAX_VALUE_BYTES:
        raise InvalidArguments(f"the value of {name} must be at most {_MAX_VALUE_BYTES} bytes, without NUL")


# -- a private HOME ----------------------------------------------------------------------------------------------------

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MAX_ROUNDS: Final = 100_000  # one for each level; a limit in case new ones keep being made


@contextlib.contextmanager
def private_home(state_dir: str | None) -> Iterator[str]:
    """A private HOME for one command, for tiers without mounts: a new directory below ``state_dir``, by its real path.

    Promise: no other user can read it, and what a command leaves there (trees of any depth, directories without any
    permission, links to other places) is removed without following a link. Limit: what cannot be removed stays, and all
    of it stays when this process is killed.
    """
    if state_dir is not None:
        os.makedirs(state_dir, 0o700, exist_ok=True)
    path = os.path.realpath(tempfile.mkdtemp(prefix="home-", dir=state_dir))
    owner = os.getpid()
    try:
        yield path
    finally:
        if os.getpid() == owner:  # in a fork, the command of the parent may still use it
            with contextlib.suppress(OSError):
                remove_tree(path)


def remove_tree(path: str) -> None:
    """Remove a directory with all below it, level by level: children are moved to its top, so that depth needs neither
    long names nor stack."""
    with closing_descriptor(os.open(path, _FOLDER)) as top:
        for _ in range(_MAX_ROUNDS):
            names = os.listdir(top)
            if not names:
                break
            for name in names:
                if not _remove_file(name, top):
                    _lift_contents(name, top)
    os.rmdir(path)


def _lift_contents(name: str, top: int) -> None:
    with closing_descriptor(os.open(name, _FOLDER, dir_fd=top)) as folder:
        for child in os.listdir(folder):
            if not _remove_file(child, folder):
                os.rename(child, secrets.token_hex(16), src_dir_fd=folder, dst_dir_fd=top)
    os.rmdir(name, dir_fd=top)


def _remove_file(name: str, folder: int) -> bool:
    """Remove what is not a directory; make a directory accessible instead, and return False."""
    try:
        os.unlink(name, dir_fd=folder)
    except OSError:
        # Not a link that has taken its place.
        with closing_descriptor(os.open(name, _FOLDER | os.O_PATH, dir_fd=folder)) as handle:
            os.chmod(f"/proc/self/fd/{handle}", 0o700)
        return False
    return True
