"""Where commands run: the roots of one workspace and its fork server, or, if requested by name, no sandbox. Runs in the
agent's process."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
import os
import re
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, Self, TypeAlias

from toolkit.errors import SandboxViolation, SetupError, ToolFailed, ToolNotAllowed
from toolkit.forks import close_pipe, count_restart, open_pipe, start_again_in_child
from toolkit.guard.files.consent import PathLimit
from toolkit.guard.files.handles import Check
from toolkit.guard.files.path import Accept
from toolkit.guard.files.protect import Root
from toolkit.guard.network.hosts import Network
from toolkit.guard.permission import CommandLimits, CommandNetwork, GitMode
from toolkit.guard.process.command import (
    Command,
    SandboxedCommand,
    StartProxy,
    UnsandboxedCommand,
    private_home,
    program_not_found,
    program_not_started,
)
from toolkit.guard.process.fork_client import CommandHandle, ForkServerClient
from toolkit.guard.process.kernel import Unsupported, reason
from toolkit.guard.process.messages import CommandRequest, HeldEntry, Roots, Setup, identities
from toolkit.guard.process.path_limits import Approvals, HiddenPaths, LimitedPaths
from toolkit.guard.process.program import SYSTEM, SYSTEM_PATH, find, interpreter_roots, is_below, search_path
from toolkit.guard.process.supervisor import HOME, TMP, write_gitconfig
from toolkit.guard.process.tier import TierChoice
from toolkit.guard.review.git_state import Setting, write_config
from toolkit.guard.review.review import Review
from toolkit.guard.trusted_code import places_to_hold, places_to_put_back
from toolkit.system_faults import SCARCE_AT_START, OsErrorTranslation, system_fault

if TYPE_CHECKING:
    from toolkit.guard.network.proxy import UrlJudge

EndReview: TypeAlias = Callable[[], list[str]]

# Mounting a root over these would break the sandbox, or hide what commands need.
_NOT_A_ROOT: Final = ("/", "/tmp", "/dev", "/etc", *SYSTEM)
_NOT_A_ROOT_BELOW: Final = ("/proc", "/sys", HOME)


class Sandbox:
    """One workspace and its roots; the first command starts the fork server. May be used by several threads."""

    def __init__(
        self,
        workspace: Root,
        *,
        writable: bool,
        read_roots: Sequence[Root],
        write_roots: Sequence[Root],
        state_dir: str | None,
        choice: TierChoice,
        limits: CommandLimits,
        git: GitMode,
        keep: Sequence[str],
    ) -> None:
        self.workspace = workspace.real
        read, write = identities_of(read_roots), identities_of(write_roots)
        self._state_dir = None if state_dir is None else os.path.realpath(state_dir)
        inside = (self.workspace, *write)
        if self._state_dir is not None and any(is_below(self._state_dir, root) for root in inside):
            raise SetupError("state_dir must not be where commands can write: they could change what is stored there")
        interpreter = [path for path in interpreter_roots() if not any(is_below(path, root) for root in inside)]
        # A replaced interpreter would run outside the sandbox next time.
        trusted = places_to_hold(inside) if writable else []
        roots = Roots(self.workspace, writable, {**read, **identities(interpreter)}, write if writable else {}, trusted)
        self._setup = Setup(choice.name, choice.bubblewrap, roots, limits)
        self._fd = os.dup(workspace.number)
        self._limited_roots: tuple[Root, ...] = (workspace, *read_roots, *write_roots)
        self._limited: dict[tuple[PathLimit, ...], LimitedPaths] = {}
        # A command of the full tier cannot write these, though they may be below a root that it can write.
        skip = [path for path in (*read, *interpreter, *trusted) if choice.name == "full"]
        self.path = search_path(inside, skip if writable else inside)
        self._review = Review(
            [workspace, *write_roots],
            git=git,
            keep=keep,
            code=places_to_put_back(inside) if writable else (),
            skip=skip,
            state_dir=self._state_dir,
            mounts=choice.name == "full",
        )
        self._only_required = choice.carrier == "bubblewrap"
        self._lock = threading.Lock()
        self._closed = False
        self._server: ForkServerClient | None = None
        self._owns_review = True
        start_again_in_child(self)

    @property
    def places_of_tools(self) -> list[str]:
        """The real paths of the workspace and of where else commands may write. Also if this sandbox may write nothing:
        another one may have written there before."""
        return [self.workspace, *self._setup.roots.write]

    def reading(self, roots: Sequence[str], environment: Sequence[str], path: Sequence[str], *, real: bool) -> Sandbox:
        """A sandbox of the same workspace whose commands also read ``roots`` and the ``environment`` of a program, and find
        programs in ``path`` first. Path rules bind the roots, not the environment.

        Directories are there by their real path and, unless ``real``, as they are written: links inside may lead through
        links. It has a fork server of its own, because roots are fixed when one starts and no other command may see these.
        It is closed on its own.
        """
        known = self._setup.roots
        opened = [open_root(root, "read root") for root in roots]
        around = [open_root(root, "read root") for root in environment]
        written = [*environment, *(() if real else roots)]
        extra = [*(root.real for root in (*opened, *around)), *map(os.path.abspath, written)]
        made = copy.copy(self)
        made._setup = dataclasses.replace(
            self._setup, roots=dataclasses.replace(known, read={**known.read, **identities(extra)})
        )
        made.path = ":".join([*path, self.path])
        made._fd = os.dup(self._fd)
        made._limited_roots = (*self._limited_roots, *opened)
        made._limited = {}
        made._lock = threading.Lock()
        made._server = None
        made._owns_review = False
        start_again_in_child(made)
        return made

    def start_again_in_child(self) -> None:
        """The commands of a fork of this process run in a fork server of its own."""
        self._lock = threading.Lock()
        server, self._server = self._server, None
        if server is not None:
            server.leave_to_parent()

    @contextlib.contextmanager
    def home_and_tmp(self, *, unsandboxed: bool) -> Iterator[tuple[str, str]]:
        """HOME and TMPDIR of one command: outside the workspace, not the user's own, and removed after it."""
        if self._setup.is_full and not unsandboxed:
            yield HOME, TMP
            return
        with private_home(self._state_dir) as home:
            write_gitconfig(home, self.gitconfig)
            yield home, home

    @functools.cached_property
    def gitconfig(self) -> str:
        """The settings of git in a command's HOME: the user's name and address."""
        return author_settings()

    def begin_review(self, request: CommandRequest, *, long: bool = False) -> tuple[CommandRequest, EndReview]:
        """Remember what the command must leave as it was. Returns the request with what the sandbox holds of it, and a
        function that puts back what was changed, to be called when nothing of the command is alive; it returns notes.
        """
        if request.read_only or not self._setup.roots.workspace_writable or not self._review.is_needed:
            return request, list
        running = self._review.begin(long=long)
        held = [
            HeldEntry(
                self._review.root_path(mount.place), mount.place.path, list(mount.identity), mount.read_only, required
            )
            for mount in running.mounts
            if (required := mount.part in running.held) or not self._only_required
        ]
        return dataclasses.replace(request, held=held), functools.partial(self._review.end, running)

    def accept_changes(self) -> contextlib.AbstractContextManager[Accept]:
        """What is written meanwhile, and named to the function that this yields, was there before the running commands."""
        return self._review.accept_changes()

    def limit_paths(
        self, request: CommandRequest, limits: tuple[PathLimit, ...], approved: Approvals, check: Check
    ) -> tuple[CommandRequest, tuple[HiddenPaths, ...]]:
        """The request with what path rules keep from the command, and how much of that they hide."""
        with self._lock, _LimitErrors():
            paths = self._limited.get(limits)
            if paths is None:
                paths = self._limited[limits] = LimitedPaths(self._limited_roots, limits)
        with _LimitErrors():  # other commands may start meanwhile
            entries, hidden = paths.find(approved, check)
        return dataclasses.replace(request, limited=entries), hidden

    @contextlib.contextmanager
    def start(
        self,
        request: CommandRequest,
        stdin: contextlib.AbstractContextManager[int],
        *,
        unsandboxed: bool,
        start_proxy: StartProxy | None = None,
    ) -> Iterator[tuple[Command, int, int]]:
        """Start a command; yields it and the descriptors to read its stdout and stderr from.

        ``stdin`` yields the descriptor the command reads from, and is exited once the command has it.
        """
        with contextlib.ExitStack() as ours:
            with StartErrors(), contextlib.ExitStack() as theirs:
                source = theirs.enter_context(stdin)
                stdout, stdout_end = _open_pipe(ours, theirs)
                stderr, stderr_end = _open_pipe(ours, theirs)
                stdio = (source, stdout_end, stderr_end)
                command = (
                    self._start_unsandboxed(request, stdio)
                    if unsandboxed
                    else SandboxedCommand(
                        self._start_sandboxed(request, stdio), request, self._setup.limits, start_proxy
                    )
                )
            ours.callback(command.close)
            yield command, stdout, stderr

    def refuse_writable_program(self, request: CommandRequest) -> None:
        """Refuse to run a program without a sandbox if a command could have changed it, or a file among its arguments
        such as a script.

        Limit: does not cover what the program finds by itself, such as ``python -m name`` or packages next to it.
        """
        try:
            program = os.path.realpath(
                find(request.argv[0], request.env["PATH"], os.path.join(self.workspace, request.cwd))
            )
        except OSError as error:
            raise program_not_found(request, error.errno) from None
        roots = self._setup.roots
        writable = [roots.workspace, *roots.write] if roots.workspace_writable else []
        if any(is_below(program, root) for root in writable):
            raise SandboxViolation(
                "a program in the workspace may not run without a sandbox: tools could have changed it; "
                "install it elsewhere, or run it in the sandbox"
            )
        for word in request.argv[1:]:
            place = os.path.realpath(os.path.join(self.workspace, request.cwd, word.partition("=")[2] or word))
            if os.path.isfile(place) and any(is_below(place, root) for root in writable):
                raise SandboxViolation(
                    f"{word!r} is a file in the workspace, which tools could have changed, and may not be given to a program "
                    "without a sandbox; keep it elsewhere, or run the program in the sandbox"
                )

    def close(self) -> None:
        """Kill every command; a second time does nothing."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            os.close(self._fd)
            for paths in self._limited.values():
                paths.close()
            self._limited_roots = ()
            if self._server is not None:
                self._server.close()
        if self._owns_review:
            self._review.close()

    def _start_sandboxed(self, request: CommandRequest, stdio: Sequence[int]) -> CommandHandle:
        with self._lock:
            if self._closed:
                raise ToolFailed("IO", "this ProcessGuard has been closed")
            if self._server is not None:
                with contextlib.suppress(ConnectionError):  # it was killed from outside: start a new one
                    return self._server.start(request, stdio)
                self._server.close()
                self._server = None
                count_restart("fork_server")
            try:
                self._server = ForkServerClient(self._setup, self._fd)
            except Unsupported as error:
                raise ToolNotAllowed(f"commands cannot run: the sandbox did not start ({reason(error)})") from None
            return self._server.start(request, stdio)

    def _start_unsandboxed(self, request: CommandRequest, stdio: Sequence[int]) -> Command:
        folder = os.path.join(self.workspace, request.cwd)
        try:
            program = find(request.argv[0], request.env["PATH"], folder)
        except OSError as error:
            raise program_not_found(request, error.errno) from None
        stdin, stdout, stderr = stdio
        try:
            return UnsandboxedCommand(
                subprocess.Popen(
                    request.argv,
                    executable=program,
                    cwd=folder,
                    env=request.env,
                    stdin=stdin,
                    stdout=stdout,
                    stderr=stderr,
                    start_new_session=True,
                )
            )
        except OSError as error:
            raise program_not_started(request.argv[0], error.errno) from None


def open_root(given: str | Root, what: str) -> Root:
    """A directory that commands may use; ``what`` it is goes into the error."""
    root = given if isinstance(given, Root) else Root.open(given, what, writable=True)
    if root.real in _NOT_A_ROOT or any(is_below(root.real, place) for place in _NOT_A_ROOT_BELOW):
        raise SetupError(f"the {what} {root.name!r} cannot be given to commands; give a directory below it")
    return root


def identities_of(roots: Iterable[Root]) -> dict[str, list[int]]:
    """The real path of each root, and which directory it was there when it was opened."""
    return {root.real: root.identity for root in roots}


@contextlib.contextmanager
def stdin_from_pipe(pipe: tuple[int, int]) -> Iterator[int]:
    """The end of a pipe that a command reads from; writing to the other end does not block."""
    source, sink = pipe
    os.set_blocking(sink, False)
    try:
        yield source
    finally:
        close_pipe(source)


class StartErrors(OsErrorTranslation):
    """What this process lacks to start a command (open files, processes, memory) is an error that says so."""

    __slots__ = ()

    def translate(self, error: OSError) -> ToolFailed:
        what = "the command could not be started"
        if error.errno in SCARCE_AT_START:
            return system_fault(what, reason(error))
        return ToolFailed("IO", f"{what}: {reason(error)}")


class _LimitErrors(OsErrorTranslation):
    """What keeps path rules from being applied to a command: then it does not run."""

    __slots__ = ()

    def translate(self, error: OSError) -> ToolFailed:
        what = "the command was not run: what the policy's path rules hide could not be found"
        if error.errno in SCARCE_AT_START:
            return system_fault(what, reason(error))
        return ToolFailed("IO", f"{what}: {reason(error)}")


def _open_pipe(reading: contextlib.ExitStack, writing: contextlib.ExitStack) -> tuple[int, int]:
    source, sink = open_pipe()
    reading.callback(close_pipe, source)
    writing.callback(close_pipe, sink)
    os.set_blocking(source, False)
    return source, sink


# -- the author of a command's commits ---------------------------------------------------------------------------------

_SECONDS: Final = 5.0
_MAX_VALUE: Final = 1000
_NAMES: Final = (b"name", b"email")
_COMMAND: Final = ("config", "--global", "--includes", "-z", "--get-regexp", r"^user\.(name|email)$")
# Where the user's own configuration is. Nothing else of the environment decides what this git loads or prints.
_VARIABLES: Final = ("HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL")
_CONTROL: Final = re.compile(rb"[\0-\x1f\x7f]+")


def author_settings() -> str:
    """The text of a ``.gitconfig`` with the user's name and address for commits; empty if there are none, or no git.

    Promise: of the user's own git configuration only ``user.name`` and ``user.email`` reach a command, as a file in its
    private HOME that has nothing else in it; a setting of the repository wins over them. Limits: values that apply only
    in some directories (``includeIf``) are not used, nor are those in the environment.
    """
    try:
        # Only lists settings, which runs nothing; from "/", so that no directory of a repository matters.
        done = subprocess.run(
            [find("git", ":".join(SYSTEM_PATH), "/"), *_COMMAND],
            cwd="/",
            env={name: os.environ[name] for name in _VARIABLES if name in os.environ},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    found = dict(item.partition(b"\n")[::2] for item in done.stdout.split(b"\0"))
    values = {name: _CONTROL.sub(b" ", found.get(b"user." + name, b""))[:_MAX_VALUE].strip() for name in _NAMES}
    settings = [Setting(b"user", None, name, value) for name, value in values.items() if value]
    return os.fsdecode(write_config(settings))


# -- the guarded network -----------------------------------------------------------------------------------------------


class GuardedNetwork:
    """What commands with the guarded network reach: what ``network`` permits, and the judge of a view does not refuse.

    Promise: a command that asks for it gets exactly it, or does not run.
    """

    def __init__(self, network: Network | None) -> None:
        self._network = network or Network()
        self._judge: UrlJudge | None = None

    def with_judge(self, judge: UrlJudge) -> Self:
        """The same network, where ``judge`` raises a ``ToolkitError`` to refuse a URL."""
        view = copy.copy(self)
        view._judge = judge
        return view

    def proxy_for(self, wanted: CommandNetwork, choice: TierChoice, *, unsandboxed: bool) -> StartProxy | None:
        """What starts the proxy of a command; None for other networks. Refused where a command has no network of its own."""
        if wanted != "guarded":
            return None
        if unsandboxed or choice.name != "full":
            why = "it runs without a sandbox" if unsandboxed else choice.reason
            raise ToolNotAllowed(
                "the command was not run: command_network='guarded' needs the full sandbox tier, which it does not have"
                f" ({why}); set it to 'none', or to 'host' to give commands the whole network of this machine"
            )
        # Now, and not when the command runs already: it may be able to write where modules are looked up.
        from toolkit.guard.network.proxy import CommandProxy

        return partial(CommandProxy, network=self._network, judge=self._judge)
