"""The official OAuth client with a token that outlives the process, and without a person unless there is one.

The official client discovers the authorization server, registers, runs the flow with PKCE and refreshes. This subclass adds
what it lacks for programs that nobody watches: it also restores when a token ends and where it is refreshed; and where a
person would be needed and none is there, it tries to refresh a refused token, or raises an error that says what to run.

The replaced methods are not public: ``tests/packs/test_mcp_official_client.py`` says what is lost if one of them moves.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import httpx2
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.auth.utils import is_valid_client_metadata_url, issuers_match, union_scopes
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata
from pydantic import AnyUrl

from toolkit.errors import ToolFailed
from toolkit.guard.environment_variables import fill_in, read_variables
from toolkit.packs.mcp.oauth.redirect_listener import RedirectListener
from toolkit.runtime.workers import Workers

if TYPE_CHECKING:
    from toolkit.packs.mcp.oauth.token_store import TokenStore
    from toolkit.packs.mcp.questions import TimeLimits
    from toolkit.packs.mcp.server import McpServer
    from toolkit.runtime.context.mcp_callbacks import OpenUrl

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
        """The configured one if there is one: a server must not choose where its user logs in instead."""
        client = self.context.client_info
        if not self._oauth.issuer:
            if self._open_url is None and client and client.issuer and not issuers_match(client.issuer, advertised[0]):
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
            raise self.needs_login("refused the stored token, and its refresh was refused as well")

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
