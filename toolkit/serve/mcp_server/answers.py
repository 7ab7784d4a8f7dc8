"""Answers of people are used once: remembered by this process, or by the store that several processes share."""

from __future__ import annotations

import asyncio
import secrets
from collections import OrderedDict
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from toolkit.runtime.call.approval import ApprovalRequest
    from toolkit.stores import ApprovalStore

_MAX_USED: Final = 10_000
_SECONDS: Final = 60 * 60
"""How long a question stays open where several processes share it."""


class Answers(Protocol):
    """Which answers were asked for, and not used yet."""

    async def expect(self, request: ApprovalRequest) -> str:
        """A new name for the answer to this question."""

    async def use(self, request: ApprovalRequest, name: str) -> bool:
        """Whether this answer may be used now. It may not be a second time."""


class OwnAnswers:
    """The answers to the questions of one process, which alone can read the state of its questions."""

    def __init__(self) -> None:
        self._used: Final[OrderedDict[str, None]] = OrderedDict()

    async def expect(self, request: ApprovalRequest) -> str:
        return secrets.token_hex(16)

    async def use(self, request: ApprovalRequest, name: str) -> bool:
        if name in self._used:
            return False
        self._used[name] = None
        while len(self._used) > _MAX_USED:
            self._used.popitem(last=False)
        return True


class SharedAnswers:
    """The answers to the questions of several processes: whoever takes one from the store has it."""

    def __init__(self, store: ApprovalStore) -> None:
        self._store: Final = store

    async def expect(self, request: ApprovalRequest) -> str:
        name = secrets.token_hex(16)
        await asyncio.to_thread(
            self._store.put, request.session_id, name, request.tool_name, digest=request.digest, seconds=_SECONDS
        )
        return name

    async def use(self, request: ApprovalRequest, name: str) -> bool:
        found = await asyncio.to_thread(self._store.take, request.session_id, name, digest=request.digest)
        return found is not None
