"""The guards of one toolkit, made from its context; each is made when a tool first needs it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from toolkit.guard.fs.sandbox_fs import SandboxFS
from toolkit.guard.fs.transaction.accept import Accept, ignore_changes
from toolkit.guard.trusted_code import trusted_code

if TYPE_CHECKING:
    from toolkit.guard.git import GitGuard
    from toolkit.guard.net.guard import NetGuard
    from toolkit.guard.process.guard import ProcessGuard
    from toolkit.runtime.context.toolkit_context import ToolkitContext


class Guards:
    """Files, processes, git and the network, as tools may use them. Nothing is started before its first use."""

    def __init__(self, context: ToolkitContext[Any]) -> None:
        self._context = context
        writable = context.mode == "workspace-write"
        self.fs: Final = SandboxFS(
            context.workspace,
            mode=context.mode,
            read_roots=context.read_roots,
            write_roots=context.write_roots,
            journal=context.state.path("journal"),
            read_only=trusted_code([context.workspace, *context.write_roots]) if writable else (),
            git=context.git,
            accept_changes=self._accept_changes,
        )
        if writable and context.state.existing("journal") is not None:
            self._recover()

    def _accept_changes(self) -> AbstractContextManager[Accept]:
        """What a tool writes, with approval where that is needed, is not put back after the commands that run."""
        return self.process.accept_changes() if "process" in self.__dict__ else ignore_changes()

    def _recover(self) -> None:
        """Finishes or undoes the patches of processes that were killed, before any tool runs."""
        for left in self.fs.recover():
            import logging

            logger, words = logging.getLogger("toolkit"), "; ".join(left.troubles)
            logger.warning("an interrupted patch was %s: %s %s", left.outcome, ", ".join(left.paths), words)

    @cached_property
    def process(self) -> ProcessGuard:
        """The only way to start a program; detects which sandbox tier this machine supports."""
        from toolkit.guard.process.guard import ProcessGuard

        context = self._context
        return ProcessGuard(
            context.workspace,
            sandbox=context.sandbox,
            mode=context.mode,
            read_roots=context.read_roots,
            write_roots=context.write_roots,
            state_dir=context.state.path("homes"),
            git=context.git,
            limits=context.limits,
            internet=context.network,
            keep=context.ask_before_writing,
        )

    @cached_property
    def git(self) -> GitGuard:
        """``git status`` only, and nothing that a repository configures is run."""
        from toolkit.guard.git import GitGuard

        return GitGuard(self.process)

    @cached_property
    def net(self) -> NetGuard:
        """The only way to the network."""
        from toolkit.guard.net.guard import NetGuard
        from toolkit.guard.net.network import Network

        return NetGuard(self._context.network or Network())

    def close(self) -> None:
        """Closes what was opened."""
        if "process" in self.__dict__:
            self.process.close()
        self.fs.close()
