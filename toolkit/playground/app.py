"""The addresses of the playground. Everything below ``/api`` needs the token; the files of the page hold no data."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from toolkit.errors import InvalidArguments
from toolkit.playground.answers import describe_audit, describe_tool, explain_call, list_tools, measure_tools
from toolkit.playground.calls import MAX_CALLS, ApprovalDesk, EventStream, RunningCalls
from toolkit.playground.requests import (
    RequestRefused,
    SafeHeaders,
    page_files,
    read_json,
    read_text,
    send_page_file,
    to_json,
)
from toolkit.runtime.approvals import Answer, Approve, Deny, Edit
from toolkit.runtime.arguments import parse_arguments
from toolkit.runtime.toolkit import core_of
from toolkit.serve.http import RequestGate

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from toolkit.guard.policy.policy import SecurityPolicy
    from toolkit.runtime.async_ import AsyncRunner
    from toolkit.runtime.toolkit import Core
    from toolkit.serve.setup import ServedTools


# ----------------------------------------------------------------------------------------------------------------------
# One playground: a toolkit over what is served, its calls, and where they are recorded.


@dataclass
class PlaygroundSession:
    """What the addresses of the page work on."""

    served: ServedTools
    policy: SecurityPolicy[Any]
    toolkit: AsyncRunner
    approvals: ApprovalDesk
    calls: RunningCalls
    audit_is_temporary: bool

    @classmethod
    def open(cls, served: ServedTools, *, audit_is_temporary: bool) -> PlaygroundSession:
        """Builds the toolkit. Raises ``SetupError`` for what is wrong with the policy, the workspace or the audit log."""
        policy = served.load_policy()
        approvals = ApprovalDesk()
        context = served.make_context(policy, approver=approvals.ask)
        toolkit = served.module.create_async_agent_toolkit(context)
        return cls(served, policy, toolkit, approvals, RunningCalls(toolkit), audit_is_temporary)

    @cached_property
    def core(self) -> Core:
        return core_of(self.toolkit)

    @cached_property
    def _turns_to_explain(self) -> asyncio.Semaphore:
        """Verdicts are found in threads, and may read files; a page that types fast gets no more of them than two."""
        return asyncio.Semaphore(2)

    async def describe(self) -> dict[str, Any]:
        """What the head of the page says. The first answer tries out the sandbox, which starts a process."""
        return await asyncio.to_thread(self._describe)

    def _describe(self) -> dict[str, Any]:
        from toolkit import __version__

        return {
            "version": __version__,
            "package": self.core.catalog.package,
            "workspace": self.core.context.workspace,
            "allows": self.served.describe(),
            "sandbox": self.core.guards.process.choice.reason,
            "audit": str(self.served.audit),
            "auditIsTemporary": self.audit_is_temporary,
        }

    async def list_tools(self) -> list[dict[str, Any]]:
        return await asyncio.to_thread(list_tools, self.core)

    async def describe_tool(self, name: str) -> dict[str, Any]:
        return await asyncio.to_thread(describe_tool, self.core, name)

    async def explain(self, name: str, arguments: str) -> dict[str, Any]:
        async with self._turns_to_explain:
            return await asyncio.to_thread(explain_call, self.core, self.policy, name, arguments)

    async def describe_audit(self) -> dict[str, Any]:
        return await asyncio.to_thread(describe_audit, str(self.served.audit), self.core.context.session_id)

    async def measure_tools(self) -> dict[str, Any]:
        return await asyncio.to_thread(
            lambda: measure_tools(self.toolkit.get_allowed_tools(), self.toolkit.signatures())
        )

    def stop(self) -> None:
        """Cancels what runs; called in the event loop when the server is told to stop."""
        self.calls.cancel_all("the playground was stopped")

    async def close(self) -> None:
        """Waits for the calls, and closes the toolkit."""
        self.stop()
        await self.calls.wait()
        await self.toolkit.close()


_MAX_WORDS: Final = 10_000


def make_app(session: PlaygroundSession, *, hosts: Collection[str], token: str) -> ASGIApp:
    """The whole application: headers around the gate around the addresses."""
    api = PlaygroundApi(session)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        await session.close()

    pages = page_files()
    app = Starlette(
        routes=[*(Route(path, send_page_file, methods=["GET"]) for path in pages), *api.routes()],
        exception_handlers={RequestRefused: _refuse, HTTPException: _refuse_address, Exception: _report_crash},
        lifespan=lifespan,
    )
    return SafeHeaders(RequestGate(app, hosts=hosts, token=token, open_paths=pages))


class PlaygroundApi:
    """What each address answers."""

    def __init__(self, session: PlaygroundSession) -> None:
        self._session: Final = session

    def routes(self) -> list[Route]:
        return [
            Route("/api/session", self.describe, methods=["GET"]),
            Route("/api/tools", self.list_tools, methods=["GET"]),
            Route("/api/tools/{name:path}", self.describe_tool, methods=["GET"]),
            Route("/api/audit", self.describe_audit, methods=["GET"]),
            Route("/api/tokens", self.measure_tools, methods=["GET"]),
            Route("/api/explain", self.explain, methods=["POST"]),
            Route("/api/calls", self.start_call, methods=["POST"]),
            Route("/api/calls/{id}/cancel", self.cancel_call, methods=["POST"]),
            Route("/api/approvals/{id}", self.answer_approval, methods=["POST"]),
        ]

    async def describe(self, request: Request) -> Response:
        return _json(await self._session.describe())

    async def list_tools(self, request: Request) -> Response:
        return _json(await self._session.list_tools())

    async def describe_tool(self, request: Request) -> Response:
        return _json(await self._session.describe_tool(self._find_tool(request.path_params["name"])))

    async def describe_audit(self, request: Request) -> Response:
        return _json(await self._session.describe_audit())

    async def measure_tools(self, request: Request) -> Response:
        return _json(await self._session.measure_tools())

    async def explain(self, request: Request) -> Response:
        """The verdict on a call that is not made."""
        given = await read_json(request)
        tool = self._find_tool(read_text(given, "tool"))
        return _json(await self._session.explain(tool, read_text(given, "arguments")))

    async def start_call(self, request: Request) -> Any:
        """Runs a call; the response is its events, and closing it cancels the call."""
        given = await read_json(request)
        tool = self._find_tool(read_text(given, "tool"))
        call = self._session.calls.start(tool, read_text(given, "arguments"))
        if call is None:
            raise RequestRefused(429, f"{MAX_CALLS} calls are running already; wait for one of them, or cancel it")
        return EventStream(call)

    async def cancel_call(self, request: Request) -> Response:
        """Cancels a call. Asking again until it has ended changes nothing."""
        call = self._session.calls.find(request.path_params["id"])
        if call is None:
            raise RequestRefused(404, "no call with this id is running")
        call.signal.cancel("cancelled on the page")
        return JSONResponse({"cancelled": True})

    async def answer_approval(self, request: Request) -> Response:
        answer = _read_answer(await read_json(request))
        if not self._session.approvals.answer(request.path_params["id"], answer):
            raise RequestRefused(404, "no approval with this id is waiting: it was answered, or its call has ended")
        return JSONResponse({"answered": True})

    def _find_tool(self, name: str) -> str:
        if name not in self._session.core.catalog.tools:
            raise RequestRefused(404, "there is no tool of this name")
        return name


def _read_answer(given: dict[str, Any]) -> Answer:
    word = read_text(given, "answer")
    if word == "approve":
        return Approve()
    if word == "deny":
        return Deny(read_text(given, "words", "")[:_MAX_WORDS])
    if word != "edit":
        raise RequestRefused(400, "'answer' must be approve, deny or edit")
    try:
        arguments = parse_arguments(read_text(given, "arguments"))
    except InvalidArguments as error:
        raise RequestRefused(400, error.message) from None
    if not isinstance(arguments, dict):
        raise RequestRefused(400, "the arguments must be a JSON object")
    return Edit(arguments)


def _json(value: Any) -> Response:
    return Response(to_json(value), media_type="application/json")


async def _refuse(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestRefused)
    return JSONResponse({"error": error.sentence}, error.status, headers={"Connection": "close"})


async def _refuse_address(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    words = {404: "there is nothing at this address", 405: "this address does not take this method"}
    return JSONResponse({"error": words.get(error.status_code, error.detail)}, error.status_code, error.headers)


async def _report_crash(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": "an unexpected error; the terminal of the playground shows its cause"}, 500)
