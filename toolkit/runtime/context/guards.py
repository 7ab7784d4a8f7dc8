"""The guards of one toolkit: made from its context, each when a tool first needs it."""

from __future__ import annotations

import logging
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from toolkit.guard.fs.sandbox_fs import SandboxFS
from toolkit.runtime.context.toolkit_context import ToolkitContext

if TYPE_CHECKING:
    from toolkit.guard.git import GitGuard
    from toolkit.guard.net.guard import NetGuard
    from toolkit.guard.process.guard import ProcessGuard

logger: Final = logging.getLogger("toolkit")


class Guards:
    """What tools may be handed: files, processes, git, the network. Nothing is started before somebody asks for it."""

    def __init__(self, context: ToolkitContext[Any]) -> None:
        self._context = context
        self.fs: Final = SandboxFS(
            context.workspace,
            mode=context.mode,
            read_roots=context.read_roots,
            write_roots=context.write_roots,
            journal=context.state.path("journal"),
        )
        if context.mode == "workspace-write" and context.state.existing("journal") is not None:
            self._recover()

    def _recover(self) -> None:
        """Finishes or undoes the patches of processes that were killed, before anybody works here."""
        for left in self.fs.recover():
            words = "; ".join(left.troubles)
            logger.warning("a patch that was interrupted is %s: %s %s", left.outcome, ", ".join(left.paths), words)

    @cached_property
    def process(self) -> ProcessGuard:
        """The only way to start a program; which tier of sandbox this machine gives is found out here."""
        from toolkit.guard.process.guard import ProcessGuard

        context = self._context
        return ProcessGuard(
            context.workspace,
            sandbox=context.sandbox,
            mode=context.mode,
            read_roots=context.read_roots,
            write_roots=context.write_roots,
            state_dir=context.state.path("homes"),
        )

    @cached_property
    def git(self) -> GitGuard:
        """``git status`` and nothing else, running nothing a repository configures."""
        from toolkit.guard.git import GitGuard

        return GitGuard(self.process)

    @cached_property
    def net(self) -> NetGuard:
        """The only way out."""
        from toolkit.guard.net.guard import NetGuard
        from toolkit.guard.net.network import Network

        return NetGuard(self._context.network or Network())

    def close(self) -> None:
        """Ends what was started."""
        if "process" in self.__dict__:
            self.process.close()
        self.fs.close()
