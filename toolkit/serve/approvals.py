"""``ask`` over MCP: the person at the client is asked, with what would run in front of them.

Two revisions of the protocol ask in two ways. Until 2025-11-25 the server sends a request of its own, and the call waits for
the answer. From 2026-07-28 on the call ends with the question, and the client sends it again with the answer and a sealed
state. The answer holds for what was shown, by its digest, and once: a client cannot ask for it to be remembered.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from mcp_types import ElicitRequest, ElicitRequestFormParams, ElicitResult, InputRequiredResult
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from toolkit.runtime.approvals import Answer, ApprovalRequest, Approve, Deny, approval_text
from toolkit.serve.sessions import session_key

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

    from toolkit.runtime.signals import CancelSignal
    from toolkit.serve.calls import Turn
    from toolkit.serve.server import Answers


_KEY: Final = "approval"
_FORM: Final = {
    "type": "object",
    "properties": {
        "approve": {"type": "boolean", "title": "Run this call", "description": "Yes runs it once, exactly as shown."},
        "reason": {"type": "string", "title": "Reason", "description": "The model reads it if the call does not run."},
    },
    "required": ["approve"],
}
_CANNOT_ASK: Final = (
    "it needs the approval of a person, and this MCP client cannot ask one (it has no form elicitation);"
    " a policy may allow it instead"
)
_INSIDE_PROGRAM: Final = (
    "calls inside a program cannot be approved over this revision of the protocol; call the tool by itself"
)
_MAX_OPEN: Final = 20
"""Questions to the person of one session at the same time."""
_PATIENCE_SECONDS: Final = 60 * 60
"""How long a question stays open: a client that has gone without a word must not keep it for ever."""


@dataclass(slots=True)
class AskedCall:
    """A call during which a person may be asked."""

    call_id: str
    ctx: ServerRequestContext[Any, Any]
    signal: CancelSignal
    turn: Turn
    state: str | None = None
    """The state of an earlier round, if this call repeats one."""
    responses: Mapping[str, Any] = field(default_factory=dict)
    pending: ApprovalRequest | None = None
    """What must be asked before the call can run; set by the approver."""
    logged: int = 0
    """How many messages of its handlers the client was sent."""
    sending: set[asyncio.Task[None]] = field(default_factory=set)
    """Messages of its handlers that are on their way to the client."""

    @property
    def asks_by_result(self) -> bool:
        return self.ctx.protocol_version in MODERN_PROTOCOL_VERSIONS

    @property
    def can_ask(self) -> bool:
        """Whether the client shows forms. ``elicitation: {}``, the only shape of old revisions, means forms."""
        capabilities = self.ctx.session.client_capabilities
        asked = None if capabilities is None else capabilities.elicitation
        return asked is not None and (asked.form is not None or asked.url is None)


CURRENT: ContextVar[AskedCall | None] = ContextVar("toolkit_served_call", default=None)
"""The call of a client that runs in this task, or in a thread or task that it started."""


class ElicitingApprover:
    """The approver of served toolkits."""

    def __init__(self, answers: Answers) -> None:
        self._answers: Final = answers
        self._open: Final[Counter[str]] = Counter()
        """How many questions a session has that nobody has answered yet."""

    async def __call__(self, request: ApprovalRequest) -> Answer:
        call = CURRENT.get()
        if call is None or not call.can_ask:
            return Deny(_CANNOT_ASK)
        if not call.asks_by_result:
            return await self._ask_now(call, request)
        if request.call_id != call.call_id:
            return Deny(_INSIDE_PROGRAM)
        given = await self._given_answer(call, request)
        if given is None:
            call.pending = request
            return Deny("it waits for the approval of a person")
        return given

    async def _ask_now(self, call: AskedCall, request: ApprovalRequest) -> Answer:
        """Asks while the call waits. Meanwhile another call has its turn."""
        key = session_key(call.ctx)
        if self._open[key] >= _MAX_OPEN:
            return Deny(f"{_MAX_OPEN} questions wait for the person already; call the tool again later")
        self._open[key] += 1
        call.turn.ask()
        try:
            return await _ask_person(call, request)
        finally:
            self._open[key] -= 1
            if not self._open[key]:
                del self._open[key]
            if not call.signal.cancelled:
                await call.turn.take_again()

    async def _given_answer(self, call: AskedCall, request: ApprovalRequest) -> Answer | None:
        """The answer that came with a repeated call, if it is about exactly this and was not used before."""
        response = call.responses.get(_KEY)
        if call.state is None or not isinstance(response, ElicitResult):
            return None
        try:
            state = json.loads(call.state)
            nonce, digest = state["nonce"], state["digest"]
        except (ValueError, KeyError, TypeError):
            return None
        if digest != request.digest or not await self._answers.use(request, nonce):
            return None
        return _read_answer(response)


async def ask_by_result(request: ApprovalRequest, answers: Answers) -> InputRequiredResult:
    """The end of a call that must be sent again with an answer. The SDK seals the state."""
    nonce = await answers.expect(request)
    state = json.dumps({"nonce": nonce, "digest": request.digest})
    return InputRequiredResult(input_requests={_KEY: ElicitRequest(params=_form(request))}, request_state=state)


def _form(request: ApprovalRequest) -> ElicitRequestFormParams:
    return ElicitRequestFormParams(message=approval_text(request), requested_schema=_FORM)


async def _ask_person(call: AskedCall, request: ApprovalRequest) -> Answer:
    """The answer of the person. A call that is cancelled meanwhile is not asked about any longer."""
    loop = asyncio.get_running_loop()
    form = _form(request)
    asking = asyncio.ensure_future(
        call.ctx.session.elicit_form(form.message, form.requested_schema, related_request_id=call.ctx.request_id)
    )

    def give_up() -> None:
        loop.call_soon_threadsafe(asking.cancel)

    forget = call.signal.listen(give_up)
    try:
        async with asyncio.timeout(_PATIENCE_SECONDS):
            return _read_answer(await asking)
    except TimeoutError:
        return Deny("nobody answered the question")
    except asyncio.CancelledError:
        if call.signal.cancelled:
            return Deny("the call was cancelled before anybody answered")
        raise
    except Exception:  # the client answered with an error, or nonsense, or is gone
        return Deny("the client could not ask anybody")
    finally:
        forget()
        asking.cancel()


def _read_answer(result: ElicitResult) -> Answer:
    content = result.content or {}
    if result.action == "accept" and content.get("approve") is True:
        return Approve()
    reason = content.get("reason")
    words = reason.strip() if isinstance(reason, str) else ""
    return Deny(words or ("the person dismissed the question" if result.action == "cancel" else "the person declined"))
