"""Requests to a server with its token, and the requests to the authorization server behind it.

Promise: the token goes to the origin of the server only. The authorization server, which the MCP server names, is reached
over https at a public address that the context's ``Network`` allows; at the server's own host, and at the host of
``issuer`` in the settings, wherever those are. Redirects are not followed, answers are read up to a limit, and configured
headers are not sent there. A failure fails one request with a clear error.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Final

import httpx2
from mcp.client.auth import OAuthFlowError
from pydantic import ValidationError

from toolkit.errors import SandboxViolation, ToolFailed, ToolkitError
from toolkit.guard.files.path import display
from toolkit.guard.network.hosts import Url
from toolkit.guard.network.network import Network
from toolkit.packs.mcp.http.guarded_pool import CONNECTION_FAILURES, describe_failure, open_pool, read_body, send
from toolkit.packs.mcp.http.transport import error_answer
from toolkit.packs.mcp.oauth.authorization import ServerAuthorization
from toolkit.runtime.workers import Workers

_MAX_ANSWER: Final = 1 << 20
_SECONDS: Final = 30.0
_MAX_QUOTED: Final = 300
_UNAUTHORIZED: Final = 401
_FORBIDDEN: Final = 403


class AuthorizedTransport(httpx2.AsyncBaseTransport):
    """Sends requests over ``inner`` with the token of the server; runs the flow when there is none or it is refused."""

    def __init__(
        self,
        inner: httpx2.AsyncBaseTransport,
        authorization: ServerAuthorization,
        servers: AuthorizationServers,
        name: str,
    ) -> None:
        self._inner = inner
        self._authorization = authorization
        self._servers = servers
        self._name = f"the MCP server {name!r}"
        self._failure: ToolkitError | None = None

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            token = await self._authorization.usable_token()
            return await self._send(request, token)
        except ToolkitError as error:
            return error_answer(error)

    async def _send(self, request: httpx2.Request, token: str | None) -> httpx2.Response:
        if token is None and self._authorization.context.can_refresh_token():
            response = await self._log_in(request, None, None)
        else:
            if token is not None:
                request.headers["Authorization"] = f"Bearer {token}"
            response = await self._inner.handle_async_request(request)
            if response.status_code in (_UNAUTHORIZED, _FORBIDDEN):
                response = await self._log_in(request, token, response)
        if response.status_code == _UNAUTHORIZED:
            raise ToolFailed("REMOTE", f"{self._name} refuses the token that its own login gave")
        return response

    async def _log_in(
        self, request: httpx2.Request, token: str | None, refused: httpx2.Response | None
    ) -> httpx2.Response:
        """Run the flow; a person who did not log in is not asked again by the next request of the same session."""
        if self._failure is not None and self._authorization.has_person:
            raise self._failure
        try:
            return await self._run_flow(request, token, refused)
        except ToolkitError as error:
            failure = error
        except (OAuthFlowError, ValidationError, ValueError) as error:
            words = display(str(error).splitlines()[0][:_MAX_QUOTED]) if str(error) else type(error).__name__
            failure = ToolFailed("REMOTE", f"the login to {self._name} failed: {words}")
        self._failure = failure
        raise failure

    async def _run_flow(
        self, request: httpx2.Request, token: str | None, refused: httpx2.Response | None
    ) -> httpx2.Response:
        """Run the official flow. ``refused`` is the answer to this request with ``token``, which is not sent again."""
        flow = self._authorization.async_auth_flow(request)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(flow.aclose)
            outgoing = await anext(flow)
            while True:
                if outgoing is not request:
                    response = await self._servers.send(outgoing)
                elif refused is not None and self._authorization.access_token == token:
                    response, refused = refused, None
                else:  # not sent yet, or another request brought a new token meanwhile
                    refused = None
                    response = await self._inner.handle_async_request(request)
                response.request = outgoing
                if outgoing is request and response.status_code in (_UNAUTHORIZED, _FORBIDDEN):
                    await stack.enter_async_context(self._authorization.ready_for_login())
                try:
                    outgoing = await flow.asend(response)
                except StopAsyncIteration:
                    return response

    async def aclose(self) -> None:
        await self._inner.aclose()


class AuthorizationServers:
    """The way to the authorization servers that one MCP server names."""

    def __init__(self, server: Url, issuer: str, network: Network, workers: Workers) -> None:
        self._server = server
        self._named = {server.host.text} | ({Url.parse(issuer).host.text} if issuer else set())
        self._network = network
        self._workers = workers

    async def send(self, request: httpx2.Request) -> httpx2.Response:
        """The answer to one request of the flow."""
        url = Url.parse(str(request.url))
        pool = open_pool(url, self._network_for(url), self._workers)
        request.extensions = {"timeout": dict.fromkeys(("connect", "read", "write", "pool"), _SECONDS)}
        try:
            answer = await send(pool, request)
            body = await read_body(answer, _MAX_ANSWER)
            await answer.aclose()
        except CONNECTION_FAILURES as error:
            message = f"the authorization server '{url.authority}': {describe_failure(error)}"
            raise ToolFailed("NETWORK", message) from None
        finally:
            await pool.aclose()
        headers = httpx2.Headers(answer.headers)
        if headers.get("content-encoding", "identity") != "identity":
            raise ToolFailed("REMOTE", f"'{url.authority}' used an unrequested Content-Encoding")
        headers.pop("content-length", None)
        return httpx2.Response(answer.status, headers=headers, content=body)

    def _network_for(self, url: Url) -> Network:
        is_named = url.host.text in self._named
        if url.scheme != "https" and not (is_named and self._server.scheme == "http"):
            raise SandboxViolation(
                f"the authorization server '{url.authority}' is refused: it must be reached over https"
            )
        return self._network.for_service(url.host, public_only=not is_named)
