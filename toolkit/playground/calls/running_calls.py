"""The calls that run now. A call ends when its tool does, when it is cancelled, and when nobody reads its events."""

from __future__ import annotations

import asyncio
import secrets
from contextlib import aclosing
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, cast

from toolkit.playground.answers.results import describe_result
from toolkit.playground.calls.outbox import Outbox
from toolkit.runtime.signals import CancelSignal
from toolkit.wire.call import ToolCall
from toolkit.wire.result import ToolResult

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from toolkit.runtime.async_ import AsyncRunner
    from toolkit.runtime.progress import Progress

MAX_CALLS: Final = 4
"""How many calls run at once. A browser opens six connections to a server: answers and cancelling need the others."""

CURRENT_CALL: Final[ContextVar[RunningCall]] = ContextVar("CURRENT_CALL")
"""The call for which a task works: the calls of a program ask for approval under ids of their own."""


@dataclass(slots=True, eq=False)
class RunningCall:
    """One call, its events, and what cancels it."""

    tool: str
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    outbox: Outbox = field(default_factory=Outbox)
    signal: CancelSignal = field(default_factory=CancelSignal)
    task: asyncio.Task[None] | None = None

    async def end(self, reason: str) -> None:
        """Cancels the call if it still runs, and waits for its end."""
        self.signal.cancel(reason)
        if self.task is not None:
            await asyncio.wait({self.task})


class RunningCalls:
    """Starts calls, and finds them by id until they have ended."""

    def __init__(self, toolkit: AsyncRunner) -> None:
        self._toolkit: Final = toolkit
        self._calls: Final[dict[str, RunningCall]] = {}
        self._is_stopped = False

    def __len__(self) -> int:
        return len(self._calls)

    def start(self, tool: str, arguments: str) -> RunningCall | None:
        """Starts a call with arguments as a model writes them; None if too many calls run."""
        if len(self._calls) >= MAX_CALLS or self._is_stopped:
            return None
        call = RunningCall(tool)
        self._calls[call.id] = call
        call.task = asyncio.create_task(self._run(call, arguments))
        return call

    def find(self, id: str) -> RunningCall | None:
        return self._calls.get(id)

    def cancel_all(self, reason: str) -> None:
        """Cancels every call, and starts no other."""
        self._is_stopped = True
        for call in list(self._calls.values()):
            call.signal.cancel(reason)

    async def wait(self) -> None:
        """Waits until no call runs."""
        tasks = [call.task for call in self._calls.values() if call.task is not None]
        if tasks:
            await asyncio.wait(tasks)

    async def _run(self, call: RunningCall, arguments: str) -> None:
        CURRENT_CALL.set(call)  # in the context of this task only
        request = ToolCall(call.id, call.tool, {}, raw_arguments=arguments)
        began = asyncio.get_running_loop().time()
        call.outbox.add({"event": "started", "call": call.id, "tool": call.tool})
        try:
            stream = self._toolkit.with_options(signal=call.signal).stream(request)
            async with aclosing(cast("AsyncGenerator[Progress | ToolResult]", stream)) as events:
                async for event in events:
                    if isinstance(event, ToolResult):
                        took = asyncio.get_running_loop().time() - began
                        call.outbox.add(await asyncio.to_thread(describe_result, event, round(took * 1000, 1)))
                    else:
                        call.outbox.add_progress(event)
        finally:
            call.outbox.close()
            self._calls.pop(call.id, None)
