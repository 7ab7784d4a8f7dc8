"""What a server asks for while a call runs (elicitation, sampling), answered by the functions of the context.

Promise: without a function, or while no call runs, the server gets a refusal in a sentence, and is not told that we could
answer. What a person filled in reaches the server only if it fits the schema that the person was shown. The functions run
outside the loop of the connection: sync ones in a thread of their own, async ones in the loop of the call.

The context answers, not the call in progress, because servers of older revisions do not say which call they ask for.
"""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

import anyio
from mcp.client.session import ClientRequestContext
from mcp_types import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequestParams,
    ElicitRequestURLParams,
    ElicitResult,
    ErrorData,
    InputRequiredResult,
    InputResponses,
    TextContent,
)

from toolkit.errors import ToolFailed
from toolkit.packs.mcp.content import read_blocks
from toolkit.runtime.context import ElicitRequest, McpCallbacks, SampleAnswer, SampleRequest
from toolkit.runtime.progress import logger
from toolkit.runtime.workers import Workers
from toolkit.schema.accepts import Judge
from toolkit.wire.message import TextMessage

if TYPE_CHECKING:
    from mcp import ClientSession
    from mcp.client.session import ElicitationFnT, SamplingFnT

RequestT = TypeVar("RequestT")
AnswerT = TypeVar("AnswerT")

_NOBODY: Final = {
    "elicitation/create": "nobody is there to answer questions: this toolkit has no 'elicit' function (McpCallbacks);"
    " put everything that is needed into the arguments of the call",
    "sampling/createMessage": "this toolkit does not lend its model to servers: it has no 'sample' function (McpCallbacks)",
    "roots/list": "this toolkit has no roots for servers; the paths that matter are in the arguments of calls",
}


class TimeLimits:
    """Time limits that stand still while somebody is asked. Used in one loop."""

    def __init__(self) -> None:
        self._left: dict[anyio.CancelScope, float] = {}
        self._asking = 0

    @contextmanager
    def limit(self, seconds: float) -> Iterator[anyio.CancelScope]:
        """End what runs in this block after so many seconds; ``cancelled_caught`` of the scope then says so."""
        scope = anyio.CancelScope(deadline=anyio.current_time() + seconds)
        with scope, self.watch(scope):
            yield scope

    @contextmanager
    def watch(self, scope: anyio.CancelScope) -> Iterator[None]:
        """The deadline of ``scope`` is one of these limits."""
        self._left[scope] = scope.deadline - anyio.current_time()
        if self._asking:
            scope.deadline = math.inf
        try:
            yield
        finally:
            del self._left[scope]

    @contextmanager
    def stand_still(self) -> Iterator[None]:
        """No limit runs as long as this lasts."""
        if not self._asking:
            now = anyio.current_time()
            for scope in self._left:
                self._left[scope], scope.deadline = scope.deadline - now, math.inf
        self._asking += 1
        try:
            yield
        finally:
            self._asking -= 1
            now = anyio.current_time()
            for scope, left in self._left.items() if not self._asking else ():
                if scope.deadline == math.inf:  # else its owner wants it to end
                    scope.deadline = now + left


class ServerQuestions:
    """Answers the questions of one server. Used in the loop of its connection."""

    def __init__(self, server: str, callbacks: McpCallbacks | None, workers: Workers) -> None:
        self._server = server
        self._callbacks = callbacks or McpCallbacks()
        self._workers = workers
        self._callers: list[asyncio.AbstractEventLoop] = []
        self.limits: Final = TimeLimits()

    @contextmanager
    def during_call(self, caller: asyncio.AbstractEventLoop) -> Iterator[None]:
        """The server may ask as long as this lasts; ``caller`` is the loop of the call."""
        self._callers.append(caller)
        try:
            yield
        finally:
            self._callers.remove(caller)

    def refusal(self, method: str) -> str | None:
        """Why a request of the server is refused without asking anybody; None if somebody is asked."""
        answered = {"elicitation/create": self._callbacks.elicit, "sampling/createMessage": self._callbacks.sample}
        return None if answered.get(method) is not None else _NOBODY.get(method)

    async def answer_all(self, client: ClientSession, asked: InputRequiredResult) -> InputResponses | None:
        """The answers to what a server asks for instead of a result; raises ``ToolFailed`` if one is refused."""
        answers: InputResponses = {}
        for key, request in (asked.input_requests or {}).items():
            words = self.refusal(request.method)
            if words is None:
                meta = request.params.meta if request.params else None
                context = ClientRequestContext(session=client, request_id=key, meta=meta)
                answer = await client.dispatch_input_request(context, request)
                if not isinstance(answer, ErrorData):
                    answers[key] = answer
                    continue
                words = answer.message
            raise ToolFailed(
                "REMOTE", f"the MCP server {self._server!r} needs input to go on with the call, but {words}"
            )
        return answers or None

    @property
    def on_elicit(self) -> ElicitationFnT | None:
        """For the official client, which declares that we can answer exactly if this is not None."""
        return None if self._callbacks.elicit is None else self._elicit

    @property
    def on_sample(self) -> SamplingFnT | None:
        return None if self._callbacks.sample is None else self._sample

    async def _elicit(self, context: object, params: ElicitRequestParams) -> ElicitResult | ErrorData:
        by_url = isinstance(params, ElicitRequestURLParams)
        schema: Mapping[str, Any] = {} if isinstance(params, ElicitRequestURLParams) else params.requested_schema
        url = params.url if isinstance(params, ElicitRequestURLParams) else ""
        request = ElicitRequest(self._server, params.message, schema, url)
        assert self._callbacks.elicit is not None
        found = await self._ask("elicit", self._callbacks.elicit, request)
        if isinstance(found, ErrorData):
            return found
        if found is None:
            return ElicitResult(action="decline")
        if by_url:
            return ElicitResult(action="accept")
        return _fill_in(schema, found)

    async def _sample(self, context: object, params: CreateMessageRequestParams) -> CreateMessageResult | ErrorData:
        if params.tools or any(part.type.startswith("tool_") for m in params.messages for part in m.content_as_list):
            return ErrorData(code=INVALID_PARAMS, message="sampling with tools is not supported; send texts and media")
        preferences = params.model_preferences
        request = SampleRequest(
            self._server,
            [TextMessage(m.role, read_blocks(m.content_as_list)) for m in params.messages],
            params.max_tokens,
            params.system_prompt,
            params.temperature,
            tuple(params.stop_sequences or ()),
            tuple(hint.name for hint in (preferences and preferences.hints) or () if hint.name),
        )
        assert self._callbacks.sample is not None
        found = await self._ask("sample", self._callbacks.sample, request)
        if isinstance(found, ErrorData):
            return found
        if not isinstance(found, SampleAnswer):
            return ErrorData(
                code=INVALID_REQUEST, message="the person or program behind this toolkit refused to sample"
            )
        return CreateMessageResult(
            role="assistant",
            content=TextContent(type="text", text=found.text),
            model=found.model,
            stop_reason="maxTokens" if found.cut else "endTurn",
        )

    async def _ask(self, name: str, function: Callable[[RequestT], Any], request: RequestT) -> Any:
        """What the function answers, or the error for the server: it must not read what a function of ours raised."""
        if not self._callers:
            return ErrorData(code=INVALID_REQUEST, message="questions are answered only while a call of a tool runs")
        caller = self._callers[0]
        try:
            with self.limits.stand_still():
                found = await asyncio.wrap_future(self._workers.submit(lambda: function(request)))
                if inspect.isawaitable(found):
                    found = await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(_as_coroutine(found), caller))
                return found
        except Exception:
            logger.exception("the function %r of McpCallbacks failed for the MCP server %r", name, self._server)
            return ErrorData(code=INVALID_REQUEST, message="the question could not be answered")


async def _as_coroutine(found: Any) -> Any:
    return await found


def _fill_in(schema: Mapping[str, Any], found: object) -> ElicitResult | ErrorData:
    """What was filled in, with the defaults of what was left out."""
    properties = schema.get("properties")
    fields = properties if isinstance(properties, dict) else {}
    defaults = {
        name: field["default"] for name, field in fields.items() if isinstance(field, dict) and "default" in field
    }
    content = {**defaults, **found} if isinstance(found, Mapping) else {}
    fits = isinstance(found, Mapping) and content.keys() <= fields.keys()
    if not fits or not Judge(schema).fits(content, dict(schema)):
        logger.error("the function 'elicit' of McpCallbacks returned what does not fit the schema of the question")
        return ErrorData(code=INVALID_REQUEST, message="the answer does not fit the schema of the question")
    return ElicitResult(action="accept", content=content)
