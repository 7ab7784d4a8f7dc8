"""The official OAuth client with a token that outlives the process, and without a person unless there is one.

The official client discovers the authorization server, registers, runs the flow with PKCE and refreshes. This subclass adds
what it lacks for programs that nobody watches: it also restores when a token ends and where it is refreshed; and where a
person would be needed and none is there, it tries to refresh a refused token, or raises an error that says what to run.

The replaced methods are not public: ``tests/packs/test_mcp_official_client.py`` says what is lost if one of them moves.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, urlsplit

import httpx2
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider, OAuthFlowError
from mcp.client.auth.utils import is_valid_client_metadata_url, issuers_match, union_scopes
from mcp.shared.auth import (
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import AnyUrl, BaseModel, ValidationError

from toolkit.errors import SandboxViolation, SetupError, ToolFailed, ToolkitError
from toolkit.guard.network.hosts import Network, Url
from toolkit.packs.mcp.http import CONNECTION_FAILURES, describe_failure, error_answer, open_pool, read_body, send
from toolkit.runtime.workers import Workers
from toolkit.user_state import fill_in, read_variables
from toolkit.visible import display

if TYPE_CHECKING:
    from toolkit.packs.mcp.questions import TimeLimits
    from toolkit.packs.mcp.server import McpServer
    from toolkit.runtime.context import OpenUrl
    from toolkit.runtime.state_directory import PrivateRecords


# ----------------------------------------------------------------------------------------------------------------------
# The end of a login in the browser: the authorization server sends the browser back to an address on this machine.
#
# Promise: listens on the loopback only, as long as one login lasts. Accepts one answer, which must carry the state of this
# login; everything else is refused and changes nothing. Requests are read up to a limit.

LOGIN_SECONDS: Final = 300.0
"""How long a login may take."""

_HOST: Final = "127.0.0.1"
_PATH: Final = "/callback"
_MAX_REQUEST: Final = 16 << 10
_READ_SECONDS: Final = 10.0
_PAGE: Final = "<!doctype html><title>typed-toolkit</title><p>{}</p>"


class RedirectListener:
    """Waits for the browser of one login."""

    def __init__(self) -> None:
        self._state = ""
        self._answer: asyncio.Future[dict[str, str]] = asyncio.get_running_loop().create_future()
        self._port = 0

    @property
    def url(self) -> str:
        """The address that the browser is sent back to."""
        return f"http://{_HOST}:{self._port}{_PATH}"

    def expect(self, authorization_url: str) -> None:
        """From now on wait for the answer to the login at this address."""
        self._state = parse_qs(urlsplit(authorization_url).query).get("state", [""])[0]

    async def wait(self) -> AuthorizationCodeResult:
        """The code that the browser brought; raises ``ToolFailed`` if the person refused, or nobody came."""
        try:
            async with asyncio.timeout(LOGIN_SECONDS):
                found = await asyncio.shield(self._answer)
        except TimeoutError:
            raise ToolFailed("NOT_CONFIGURED", f"nobody logged in within {LOGIN_SECONDS / 60:g} minutes") from None
        if "code" not in found:
            words = ": ".join(filter(None, [found.get("error", "no code"), found.get("error_description", "")]))
            raise ToolFailed("NOT_CONFIGURED", f"the login was refused ({words[:200]!r})")
        return AuthorizationCodeResult(code=found["code"], state=found.get("state"), iss=found.get("iss"))

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request of a browser."""
        try:
            async with asyncio.timeout(_READ_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
            status, words = self._judge(head.split(b" ", 2)[:2])
        except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
            status, words = "400 Bad Request", "This is not a request."
        page = _PAGE.format(words).encode()
        lines = [f"HTTP/1.1 {status}", "Content-Type: text/html; charset=utf-8", f"Content-Length: {len(page)}"]
        writer.write("\r\n".join([*lines, "Referrer-Policy: no-referrer", "Connection: close", "", ""]).encode() + page)
        try:
            await writer.drain()
        except ConnectionError:  # the browser has gone
            return
        finally:
            writer.close()

    def _judge(self, request: list[bytes]) -> tuple[str, str]:
        if len(request) != 2 or request[0] != b"GET":
            return "405 Method Not Allowed", "Only GET is answered here."
        target = urlsplit(request[1].decode("ascii", "replace"))
        found = {name: values[0] for name, values in parse_qs(target.query).items()}
        if target.path != _PATH:
            return "404 Not Found", "There is nothing here."
        if not self._state or not secrets.compare_digest(found.get("state", "").encode(), self._state.encode()):
            return "400 Bad Request", "This is not the login that the toolkit waits for."
        if not self._answer.done():
            self._answer.set_result(found)
        return "200 OK", "The toolkit has the answer. You can close this window."

    @asynccontextmanager
    async def listen(self, port: int) -> AsyncIterator[None]:
        """Listen as long as this lasts; port 0 means a free one. Raises ``OSError`` if the port is taken."""
        server = await asyncio.start_server(self.answer, _HOST, port, limit=_MAX_REQUEST)
        self._port = server.sockets[0].getsockname()[1]
        try:
            yield
        finally:
            server.close()


_UNUSED_REDIRECT: Final = "http://127.0.0.1/callback"


class ServerAuthorization(OAuthClientProvider):
    """The login of one server. ``open_url`` shows an address to a person; None means that nobody is there."""

    def __init__(
        self, server: McpServer, store: TokenStore, open_url: OpenUrl | None, workers: Workers, limits: TimeLimits
    ) -> None:
        assert server.oauth is not None
        self._server: Final = server
        self._oauth: Final = server.oauth
        self._store: Final = store
        self._open_url: Final = open_url
        self._workers: Final = workers
        self._limits: Final = limits
        self._listener: RedirectListener | None = None
        self._is_refreshing = False
        has_document = is_valid_client_metadata_url(self._oauth.client_id)
        super().__init__(
            server.url,
            OAuthClientMetadata(client_name="typed-toolkit", redirect_uris=[AnyUrl(_UNUSED_REDIRECT)]),
            store,
            self._show_url,
            self._wait_for_code,
            client_metadata_url=self._oauth.client_id if has_document else None,
        )

    # -- for the transport ---------------------------------------------------------------------------------------------

    async def usable_token(self) -> str | None:
        """The access token if there is one that has not ended; None if the flow must be run first.

        Raises ``ToolFailed`` if there is none, and nobody who could log in.
        """
        if not self._initialized or self.context.current_tokens is None:
            await self._initialize()  # somebody may have logged in meanwhile
        if self.context.current_tokens is None and self._open_url is None:
            raise self.needs_login("needs a login, and no token for it is stored on this machine")
        return self.access_token if self.context.is_token_valid() else None

    @property
    def has_person(self) -> bool:
        """Whether somebody can log in."""
        return self._open_url is not None

    @property
    def access_token(self) -> str | None:
        tokens = self.context.current_tokens
        return None if tokens is None else tokens.access_token

    def secret_values(self) -> Iterator[str]:
        """Values that must not be shown."""
        tokens, client = self.context.current_tokens, self.context.client_info
        for value in (
            tokens and tokens.access_token,
            tokens and tokens.refresh_token,
            client and client.client_secret,
        ):
            if value:
                yield value

    def needs_login(self, problem: str) -> ToolFailed:
        """The error for what only a person can repair."""
        message = (
            f"the MCP server {self._server.name!r} {problem}; run `toolkit import {self._server.name}` on a terminal"
        )
        return ToolFailed("NOT_CONFIGURED", f"{message} to log in", server=self._server.name)

    @asynccontextmanager
    async def ready_for_login(self) -> AsyncIterator[None]:
        """With a person: listen for the browser as long as this lasts. The address is part of the registration."""
        if self._open_url is None or self._listener is not None:
            yield
            return
        async with AsyncExitStack() as stack:
            self._listener = await self._listen(stack)
            self.context.client_metadata.redirect_uris = [AnyUrl(self._listener.url)]
            try:
                yield
            finally:
                self._listener = None

    async def _listen(self, stack: AsyncExitStack) -> RedirectListener:
        """On the port that the client was registered with, if that is free; else it is registered again."""
        listener = RedirectListener()
        client = self.context.client_info
        port = self._oauth.redirect_port or _redirect_port(client)
        try:
            await stack.enter_async_context(listener.listen(port))
        except OSError as error:
            if self._oauth.redirect_port:
                raise ToolFailed(
                    "IO",
                    f"the 'redirect_port' {port} cannot be used ({error.strerror}); end what uses it, or change it",
                ) from None
            self.context.client_info = None
            await stack.enter_async_context(listener.listen(0))
        return listener

    # -- steps of the official client ----------------------------------------------------------------------------------

    async def _initialize(self) -> None:
        """Restore everything that a login left."""
        login = self._store.load()
        context = self.context
        context.current_tokens, context.token_expiry_time = login.tokens, login.expires_at
        context.oauth_metadata, context.protected_resource_metadata = login.metadata, login.resource
        context.auth_server_url = login.issuer
        context.client_info = self._configured_client() or login.client
        missing = set((login.wanted_scope or "").split()) - set((login.tokens and login.tokens.scope or "").split())
        if missing and self._open_url is not None:
            context.clear_tokens()
        self._initialized = True

    def _configured_client(self) -> OAuthClientInformationFull | None:
        """The client that was registered by hand."""
        oauth = self._oauth
        if not oauth.client_id or self.context.client_metadata_url is not None:
            return None
        variables = read_variables([oauth.client_secret], f"the MCP server {self._server.name!r}")
        secret = fill_in(oauth.client_secret, variables) or None
        return OAuthClientInformationFull(
            client_id=oauth.client_id,
            client_secret=secret,
            token_endpoint_auth_method="client_secret_basic" if secret else "none",
            issuer=oauth.issuer or None,
        )

    def _select_authorization_server(self, advertised: list[str]) -> str:
        """The configured one if there is one: a server must not choose where its user logs in instead.

        Without a person it is the one of the last login, which alone may get the refresh token.
        """
        if not self._oauth.issuer:
            login = self._store.load()
            known = login.issuer or (str(login.metadata.issuer) if login.metadata else None)
            if self._open_url is None and known and not issuers_match(known, advertised[0]):
                raise self.needs_login("has another authorization server now")
            return advertised[0]
        for issuer in advertised:
            if issuers_match(issuer, self._oauth.issuer):
                return issuer
        raise ToolFailed(
            "REMOTE",
            f"the MCP server {self._server.name!r} wants a login at {advertised[0][:200]!r}, but its 'issuer' in the"
            f" settings is {self._oauth.issuer!r}",
        )

    async def _perform_authorization(self) -> httpx2.Request:
        """Without a person: a refresh, unless that was tried or more rights are wanted."""
        if self._open_url is not None:
            return await super()._perform_authorization()
        login = self._store.load()
        wanted, tokens = self.context.client_metadata.scope, login.tokens
        if tokens is None or not self.context.can_refresh_token():
            raise self.needs_login("refused the stored token, which cannot be refreshed")
        missing = set((wanted or "").split()) - set((tokens.scope or "").split())
        if missing and tokens.scope:
            self._store.save(wanted_scope=union_scopes(login.wanted_scope, wanted))
            raise self.needs_login(f"asks for more rights than were granted ({' '.join(sorted(missing))[:200]!r})")
        self.context.current_tokens = tokens  # another process may have refreshed it
        self._is_refreshing = True
        return await self._refresh_token()

    async def _perform_authorization_code_grant(self) -> tuple[str, str]:
        """Ask for what the server wants, what a call was refused for, and what the settings name."""
        metadata = self.context.client_metadata
        more = union_scopes(self._store.load().wanted_scope, self._oauth.scope or None)
        metadata.scope = union_scopes(metadata.scope, more)
        return await super()._perform_authorization_code_grant()

    async def _handle_token_response(self, response: httpx2.Response) -> None:
        self._remember_server()
        if not self._is_refreshing:
            await super()._handle_token_response(response)
            self._store.save(wanted_scope=None)
            return
        self._is_refreshing = False
        if not await self._handle_refresh_response(response):
            raise self.needs_login("refused the stored token, and then its refresh")

    async def _handle_refresh_response(self, response: httpx2.Response) -> bool:
        """Whether there is a token now. Another process may have been faster, which ends the refresh token that we used."""
        before = self.access_token
        if await super()._handle_refresh_response(response):
            return True
        login = self._store.load()
        if login.tokens is None or login.tokens.access_token == before:
            return False
        self.context.current_tokens, self.context.token_expiry_time = login.tokens, login.expires_at
        return True

    def _remember_server(self) -> None:
        context = self.context
        self._store.save(
            metadata=context.oauth_metadata,
            resource=context.protected_resource_metadata,
            issuer=context.auth_server_url,
        )

    # -- the person ----------------------------------------------------------------------------------------------------

    async def _show_url(self, url: str) -> None:
        open_url, listener = self._open_url, self._listener
        assert open_url is not None and listener is not None
        if urlsplit(url).scheme not in ("http", "https"):
            raise ToolFailed(
                "REMOTE", f"the MCP server {self._server.name!r} names a login page that is not a web page"
            )
        listener.expect(url)
        await asyncio.wrap_future(self._workers.submit(lambda: open_url(url)))

    async def _wait_for_code(self) -> AuthorizationCodeResult:
        assert self._listener is not None
        with self._limits.stand_still():
            return await self._listener.wait()


def _redirect_port(client: OAuthClientInformationFull | None) -> int:
    for uri in (client and client.redirect_uris) or ():
        if uri.host in ("127.0.0.1", "localhost") and uri.port:
            return uri.port
    return 0


# ----------------------------------------------------------------------------------------------------------------------
# What is kept of one login: the tokens, the registered client, and where tokens are refreshed.
#
# It is a private record of the user (``PrivateRecords``: mode 0600, outside every root of a toolkit), one for each server and
# client, shared by all projects and processes of the user. The official client reads and writes it through ``TokenStorage``.


class StoredLogin(BaseModel):
    """The record of one login."""

    server: str
    tokens: OAuthToken | None = None
    expires_at: float | None = None
    """When the access token ends, in seconds since the epoch; None if the authorization server did not say."""
    client: OAuthClientInformationFull | None = None
    metadata: OAuthMetadata | None = None
    """Describes the authorization server: a refresh needs its address, also after a restart."""
    resource: ProtectedResourceMetadata | None = None
    issuer: str | None = None
    wanted_scope: str | None = None
    """Rights that a call was refused for. The next login asks for them."""


class TokenStore:
    """Reads and writes the record of one server."""

    def __init__(self, records: PrivateRecords, server: McpServer) -> None:
        assert server.oauth is not None
        self._records = records
        self._server = server
        self._key = f"{server.url}\0{server.oauth.client_id}"

    def load(self) -> StoredLogin:
        """The record on disk, or an empty one."""
        found = self._records.read(self._key)
        try:
            login = StoredLogin.model_validate(found)
        except ValidationError:
            return StoredLogin(server=self._server.url)
        return login if login.server == self._server.url else StoredLogin(server=self._server.url)

    def save(self, **changes: Any) -> None:
        """Change these fields of the record."""
        login = self.load().model_copy(update=changes)
        try:
            self._records.write(self._key, login.model_dump(mode="json", exclude_none=True))
        except (OSError, SetupError) as error:
            raise ToolFailed(
                "IO",
                f"the token of the MCP server {self._server.name!r} cannot be kept in the user's state directory:"
                f" {getattr(error, 'strerror', None) or error}; make room or set XDG_STATE_HOME to another folder",
            ) from None

    # -- the official client's protocol TokenStorage -------------------------------------------------------------------

    async def get_tokens(self) -> OAuthToken | None:
        return self.load().tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        seconds = tokens.expires_in
        self.save(tokens=tokens, expires_at=None if seconds is None else time.time() + seconds)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.load().client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.save(client=client_info)


# ----------------------------------------------------------------------------------------------------------------------
# Requests to a server with its token, and the requests to the authorization server behind it.
#
# Promise: the token goes to the origin of the server only. The authorization server, which the MCP server names, is reached
# over https at a public address that the context's ``Network`` allows; at the server's own host, and at the host of
# ``issuer`` in the settings, wherever those are. Redirects are not followed, answers are read up to a limit, and configured
# headers are not sent there. A failure fails one request with a clear error.

_MAX_ANSWER: Final = 1 << 20
_REQUEST_SECONDS: Final = 30.0
_MAX_QUOTED: Final = 300
_UNAUTHORIZED: Final = 401
_FORBIDDEN: Final = 403


class AuthorizedTransport(httpx2.AsyncBaseTransport):
    """Sends requests over ``inner`` with the token of the server; runs the flow when there is none or it is refused.

    The official client is an ``httpx2.Auth``. Used as one, it would raise into the session's task, hold one lock for all
    requests and send to any address the server names. Here it is driven by hand: a failure answers one request, and with a
    valid token a request takes no detour.
    """

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
        request.extensions = {"timeout": dict.fromkeys(("connect", "read", "write", "pool"), _REQUEST_SECONDS)}
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
