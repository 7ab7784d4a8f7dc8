"""The guards of one toolkit, made from its context; each is made when a tool first needs it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

from toolkit.errors import SetupError
from toolkit.files.sandbox_fs import HoldLock, SandboxFS
from toolkit.forks import start_again_in_child
from toolkit.guard.files.path import Accept, ignore_changes
from toolkit.guard.files.protect import Root
from toolkit.guard.trusted_code import trusted_code
from toolkit.runtime.boundary import CommandBoundary, why_read_only
from toolkit.runtime.late_imports import open_package
from toolkit.user_state import identify_folder

if TYPE_CHECKING:
    from toolkit.git import GitGuard
    from toolkit.guard.permission import Mode
    from toolkit.guard.process.guard import ProcessGuard
    from toolkit.runtime.context import ToolkitContext
    from toolkit.runtime.programs.programs import Programs
    from toolkit.web import NetGuard


T = TypeVar("T")


class OpenRoots(NamedTuple):
    """The directories that tools may use."""

    workspace: Root
    read: list[Root]
    write: list[Root]


class _MadeOnce(Generic[T]):
    """A guard that is made at its first use, only once however many threads use it first.

    ``functools.cached_property`` has no lock since Python 3.12, and what the second thread made would stay open.
    """

    def __init__(self, make: Callable[[Guards], T]) -> None:
        self._make = make
        self._name = make.__name__
        self.__doc__ = make.__doc__

    def __get__(self, guards: Guards, owner: type[Guards]) -> T:
        with guards.lock:
            made = guards.__dict__  # found here first from now on, without this method
            if self._name not in made:
                made[self._name] = self._make(guards)
            guard: T = made[self._name]
            return guard


class Guards:
    """Files, processes, git and the network, as tools may use them. Nothing is started before its first use."""

    def __init__(
        self,
        context: ToolkitContext[Any],
        packages: Sequence[str],
        programs: CommandBoundary,
        hold_elsewhere: HoldLock | None = None,
    ) -> None:
        self._context = context
        self._boundary_of_programs = programs
        self.start_again_in_child()
        start_again_in_child(self)
        writable = why_read_only(context) is None
        self._mode: Final[Mode] = "workspace-write" if writable else "read-only"
        # All are opened here, before any tool can change what a name leads to, and no name is looked up again.
        self._packages = {name: open_package(name) for name in ("toolkit", *packages)}
        self._roots = roots = OpenRoots(
            Root.open(context.workspace, "workspace", writable=writable),
            [Root.open(root, "read root", writable=False) for root in context.read_roots],
            [Root.open(root, "write root", writable=writable) for root in context.write_roots],
        )
        self.root_paths: Final = [root.real for root in (roots.workspace, *roots.read, *roots.write)]
        """Where the workspace and the other roots were then."""
        self.fs: Final = SandboxFS(
            roots.workspace,
            mode=self._mode,
            read_roots=roots.read,
            write_roots=roots.write,
            journal=context.state.path("journal"),
            read_only=trusted_code([context.workspace, *context.write_roots]) if writable else (),
            git=context.git,
            accept_changes=self._accept_changes,
            hold_elsewhere=hold_elsewhere,
        )
        if writable and context.state.existing("journal") is not None:
            self._recover()

    def identify_workspace(self) -> tuple[str, str]:
        """The real path of the workspace, and what distinguishes it from another folder in its place."""
        root = self._roots.workspace
        return root.real, identify_folder(root.number)

    def start_again_in_child(self) -> None:
        """Another thread may be making a guard while this process is forked."""
        self.lock = threading.RLock()  # making one guard may need another

    def _accept_changes(self) -> AbstractContextManager[Accept]:
        """What a tool writes, with approval where that is needed, is not put back after the commands that run."""
        return self.process.accept_changes() if "process" in self.__dict__ else ignore_changes()

    def _recover(self) -> None:
        """Finishes or undoes the patches of processes that were killed, before any tool runs."""
        for left in self.fs.recover():
            import logging

            logger, words = logging.getLogger("toolkit"), "; ".join(left.troubles)
            logger.warning("an interrupted patch was %s: %s %s", left.outcome, ", ".join(left.paths), words)

    @_MadeOnce
    def process(self) -> ProcessGuard:
        """The only way to start a program; detects which sandbox tier this machine supports."""
        from toolkit.guard.process.guard import ProcessGuard

        context = self._context
        # It was there when the toolkit was built; that it has been removed since is not a mistake in the setup.
        self.fs.open_dir(".").close()
        return ProcessGuard(
            self._roots.workspace,
            sandbox=context.sandbox,
            mode=self._mode,
            read_roots=self._roots.read,
            write_roots=self._roots.write,
            state_dir=context.state.path("homes"),
            git=context.git,
            limits=context.command_limits,
            internet=context.network,
            keep=context.ask_before_writing,
            unenforced_rules=context.unenforced_rules,
        )

    @_MadeOnce
    def git(self) -> GitGuard:
        """``git status`` only, and nothing that a repository configures is run."""
        from toolkit.git import GitGuard

        return GitGuard(self.process)

    @_MadeOnce
    def net(self) -> NetGuard:
        """The only way to the network."""
        from toolkit.guard.network.hosts import Network
        from toolkit.web import NetGuard

        return NetGuard(self._context.network or Network())

    @_MadeOnce
    def programs(self) -> Programs:
        """What runs programs that a model wrote, in a sandbox of their own."""
        from toolkit.runtime.programs.programs import Programs

        packages = {name: root for name, root in self._packages.items() if root is not None}
        if missing := self._packages.keys() - packages:
            raise SetupError(
                f"programs cannot import {', '.join(sorted(missing))}: its directory was replaced since this process imported"
                " it (then restart it), or it is in an archive (then install it as a directory)"
            )
        return Programs(self._context, self._roots.workspace, packages, self._boundary_of_programs)

    def close(self) -> None:
        """Closes what was opened."""
        with self.lock:
            if "programs" in self.__dict__:
                self.programs.close()
            if "process" in self.__dict__:
                self.process.close()
            self.fs.close()
            for held in ("_roots", "_packages"):  # messages may outlive the toolkit, and hold this
                self.__dict__.pop(held, None)
