"""A toolkit for each session of a client: what one session keeps (long outputs, todos), no other can read."""

from __future__ import annotations

import hashlib
import secrets
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import astuple
from typing import TYPE_CHECKING, Any, Final

import anyio

from toolkit.runtime.call.view import core_of
from toolkit.runtime.context.concurrency import Load
from toolkit.serve.sessions import KeptOutputs

if TYPE_CHECKING:
    from toolkit.runtime.async_ import AsyncRunner
    from toolkit.runtime.call.approval import Approver
    from toolkit.runtime.stores.outputs import OutputCache
    from toolkit.serve.setup.served_tools import ServedTools

MAX_SESSIONS: Final = 100
"""Sessions of clients at the same time; further ones are refused until one ends."""
_MAX_OPEN: Final = 16
"""Toolkits that stay open. One that is closed is opened again by the next call of its session, and finds what it kept."""


class SessionToolkit:
    """The toolkit of one session, open."""

    def __init__(self, toolkit: AsyncRunner, kept: KeptOutputs) -> None:
        self.toolkit: Final = toolkit
        self.kept: Final = kept
        self.users = 0
        self.is_retired = False

    @property
    def session_id(self) -> str:
        return core_of(self.toolkit).context.session_id

    def open_cache(self) -> OutputCache:
        return core_of(self.toolkit).output_cache()


class SessionToolkits:
    """Opens toolkits by session, and closes those that nobody uses any more."""

    def __init__(self, served: ServedTools, approver: Approver) -> None:
        self._served: Final = served
        self._approver: Final = approver
        self._secret: Final = secrets.token_bytes(32) if served.shared is None else served.shared.derive("sessions")
        self._open: Final[OrderedDict[str, SessionToolkit]] = OrderedDict()
        self._kept: Final[OrderedDict[str, KeptOutputs]] = OrderedDict()
        self._policy: Any = served.load_policy()
        # A policy that does not fit the tools is an error before the first client comes.
        self._open[""] = self._make("", self._policy)

    @property
    def default(self) -> SessionToolkit:
        """The toolkit of clients without a session. It is always open."""
        return self._open[""]

    @property
    def count(self) -> int:
        """How many toolkits are open."""
        return len(self._open)

    def load(self) -> Load:
        """What the toolkits of all sessions do at this moment."""
        loads = [entry.toolkit.load for entry in self._open.values()]
        return Load(*(sum(numbers) for numbers in zip(*map(astuple, loads), strict=True))) if loads else Load(0, 0, 0)

    @asynccontextmanager
    async def use(self, key: str) -> AsyncIterator[SessionToolkit]:
        """The toolkit of a session; it stays open at least until the end of the block, whatever happens meanwhile."""
        entry = self._open.get(key)
        if entry is None:
            entry = self._open[key] = self._make(key, self._policy)
        self._open.move_to_end(key)
        entry.users += 1  # before anything is awaited: another session must not close it
        try:
            await self._close_unused()
            yield entry
        finally:
            entry.users -= 1
            if entry.is_retired and not entry.users:
                await _close(entry)

    async def replace_policy(self) -> None:
        """Loads the policy again, and uses it for calls from now on. Raises ``PolicyError``, and nothing changes."""
        policy = self._served.load_policy()
        fresh = self._make("", policy)
        self._policy = policy
        old = list(self._open.values())
        self._open.clear()
        self._open[""] = fresh
        for entry in old:
            await self._retire(entry)

    async def close(self) -> None:
        """Closes every toolkit. Calls that still run fail."""
        entries = list(self._open.values())
        self._open.clear()
        for entry in entries:
            entry.is_retired = True
            await _close(entry)

    def _make(self, key: str, policy: Any) -> SessionToolkit:
        # A name for the state directory that says nothing about the id that the client sends.
        name = hashlib.sha256(self._secret + key.encode()).hexdigest()[:32]
        context = self._served.make_context(policy, approver=self._approver, session_id=name)
        return SessionToolkit(self._served.module.create_async_agent_toolkit(context), self._kept_by(key))

    def _kept_by(self, key: str) -> KeptOutputs:
        kept = self._kept.setdefault(key, KeptOutputs())
        self._kept.move_to_end(key)
        while len(self._kept) > MAX_SESSIONS + 1:
            self._kept.popitem(last=False)
        return kept

    async def _close_unused(self) -> None:
        unused = [key for key, entry in self._open.items() if key and not entry.users]
        surplus = [self._open.pop(key) for key in unused[: max(0, len(self._open) - _MAX_OPEN)]]
        for entry in surplus:
            await self._retire(entry)

    @staticmethod
    async def _retire(entry: SessionToolkit) -> None:
        entry.is_retired = True
        if not entry.users:
            await _close(entry)


async def _close(entry: SessionToolkit) -> None:
    # The task may have been cancelled; what is open must be closed all the same.
    with anyio.CancelScope(shield=True):
        await entry.toolkit.close()
