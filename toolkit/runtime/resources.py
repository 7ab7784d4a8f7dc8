"""What a toolkit holds open: dependencies, threads, the event loop, guards, the audit log."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.inject.scope import DependencyScope
    from toolkit.runtime.audit.log import AuditLog
    from toolkit.runtime.guards import Guards
    from toolkit.runtime.tracing.calls import TracedCalls
    from toolkit.runtime.workers import LoopThread, Workers


class Resources:
    """What a toolkit holds open, to be closed once. It does not hold the toolkit."""

    __slots__ = ("_audit", "_guards", "_loop", "_scope", "_workers", "is_closed")

    def __init__(
        self,
        scope: DependencyScope,
        loop: LoopThread,
        workers: Workers,
        guards: Guards,
        audit: AuditLog | TracedCalls | None,
    ) -> None:
        self._scope = scope
        self._loop = loop
        self._workers = workers
        self._guards = guards
        self._audit = audit
        self.is_closed = False

    def close(self) -> None:
        self.is_closed = True
        try:
            if self._scope.needs_loop:
                self._loop.submit(self._scope.close_async())[0].result()
            else:
                self._scope.close()
        except BaseException:
            # The scope has logged it; the rest must be closed as well.
            pass
        self._loop.close()
        self._workers.close()
        self._guards.close()
        if self._audit is not None:
            self._audit.close()
