"""Approvals: a call waits here until the page answers, or until the call is cancelled."""

from __future__ import annotations

import asyncio
import secrets
from typing import Any, Final

from toolkit.errors import ToolCancelled
from toolkit.guard.policy.hints import describe_hints
from toolkit.playground.calls.outbox import PageEvent
from toolkit.playground.calls.running_calls import CURRENT_CALL
from toolkit.runtime.call.approval import Answer, ApprovalRequest, Deny

MAX_PENDING: Final = 20
"""The most approvals that wait at once; programs can ask for many."""
MAX_SHOWN: Final = 200_000
"""The most characters of a diff that the page shows."""


class ApprovalDesk:
    """The approver of the playground's toolkit."""

    def __init__(self) -> None:
        self._pending: Final[dict[str, asyncio.Future[Answer]]] = {}

    async def ask(self, request: ApprovalRequest) -> Answer:
        """Shows the request on the page, and waits for the answer. Cancelling the call ends the wait."""
        call = CURRENT_CALL.get(None)
        if call is None or len(self._pending) >= MAX_PENDING:
            return Deny("nobody could be asked" if call is None else "too many approvals are waiting")
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Answer] = loop.create_future()
        id = secrets.token_hex(8)

        def give_up() -> None:
            if not answer.done():
                answer.set_exception(ToolCancelled(call.signal.reason))

        def on_cancel() -> None:
            loop.call_soon_threadsafe(give_up)

        self._pending[id] = answer
        forget = call.signal.listen(on_cancel)
        try:
            call.outbox.add({"event": "approval", "approval": id, "call": call.id, **describe_request(request)})
            return await answer
        finally:
            forget()
            del self._pending[id]

    def answer(self, id: str, answer: Answer) -> bool:
        """Passes an answer on; False if nothing with this id waits for one."""
        waiting = self._pending.get(id)
        if waiting is None or waiting.done():
            return False
        waiting.set_result(answer)
        return True


def describe_request(request: ApprovalRequest) -> PageEvent:
    """What a person must see to decide."""
    preview = request.preview
    diff = preview.diff
    arguments: dict[str, Any] = request.arguments.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return {
        "tool": request.tool_name,
        "because": request.because,
        "arguments": arguments,
        "diff": None if diff is None else diff[:MAX_SHOWN],
        "diffDropped": 0 if diff is None else max(0, len(diff) - MAX_SHOWN),
        "argv": preview.argv,
        "shell": preview.shell,
        "cwd": preview.cwd,
        "variables": preview.variables,
        "url": preview.url,
        "reads": preview.reads,
        "writes": preview.writes,
        "realPaths": dict(request.real_paths),
        "tools": preview.tools,
        "hints": describe_hints(request.annotations),
        "digest": request.digest,
    }
