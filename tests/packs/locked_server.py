"""A server behind a login, with an authorization server of its own, both made with the official SDK and on the loopback."""

from __future__ import annotations

import secrets
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    AuthorizeError,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    TokenError,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl, AnyUrl
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send


class Logins(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """The authorization server; it remembers everything that happened."""

    def __init__(self) -> None:
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.access: dict[str, AccessToken] = {}
        self.refresh: dict[str, RefreshToken] = {}
        self.logins = 0
        self.refreshes = 0
        self.offered: list[str] = []
        """The refresh tokens that clients sent here."""
        self.refuses_people = False

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        assert client_info.client_id is not None
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        if self.refuses_people:
            raise AuthorizeError("access_denied", "not you")
        self.logins += 1
        code = secrets.token_urlsafe()
        assert client.client_id is not None
        self.codes[code] = AuthorizationCode(
            code=code,
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        return construct_redirect_uri(str(params.redirect_uri), code=code, state=params.state)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        del self.codes[authorization_code.code]
        return self._make_token(authorization_code.client_id, authorization_code.scopes, authorization_code.resource)

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        self.offered.append(refresh_token)
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        if self.refresh.pop(refresh_token.token, None) is None:
            raise TokenError("invalid_grant")
        self.refreshes += 1
        return self._make_token(refresh_token.client_id, scopes, refresh_token.resource)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.access.get(token)

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self.access.pop(token.token, None)

    def _make_token(self, client_id: str, scopes: list[str], resource: str | None) -> OAuthToken:
        access, refresh = f"access-{secrets.token_urlsafe()}", f"refresh-{secrets.token_urlsafe()}"
        self.access[access] = AccessToken(token=access, client_id=client_id, scopes=scopes, resource=resource)
        self.refresh[refresh] = RefreshToken(token=refresh, client_id=client_id, scopes=scopes, resource=resource)
        return OAuthToken(access_token=access, refresh_token=refresh, expires_in=3600, scope=" ".join(scopes))


class LockedServer:
    """The server as tests see it."""

    def __init__(self, url: str, logins: Logins) -> None:
        self.url = url
        self.logins = logins
        self.logs_in_at: str | None = None
        """Another authorization server that it names, in the place of its own."""

    def add_client(self, client_id: str, redirect: str) -> None:
        """Registers a client by hand."""
        self.logins.clients[client_id] = OAuthClientInformationFull(
            client_id=client_id, redirect_uris=[AnyUrl(redirect)], token_endpoint_auth_method="none", scope="greet"
        )

    def naming_another(self, app: ASGIApp) -> ASGIApp:
        """The application, which says where people log in as ``logs_in_at`` wants it."""

        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            asked = scope["type"] == "http" and scope["path"].startswith("/.well-known/oauth-protected-resource")
            if self.logs_in_at is None or not asked:
                return await app(scope, receive, send)
            named = JSONResponse({"resource": self.url, "authorization_servers": [self.logs_in_at]})
            return await named(scope, receive, send)

        return answer


@contextmanager
def locked_server() -> Iterator[LockedServer]:
    """A running server with one tool, ``greet``."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        origin = f"http://127.0.0.1:{listening.getsockname()[1]}"
        logins = Logins()
        server = MCPServer(
            "locked",
            version="1",
            log_level="CRITICAL",
            auth_server_provider=logins,
            auth=AuthSettings(
                issuer_url=AnyHttpUrl(origin),
                resource_server_url=AnyHttpUrl(f"{origin}/mcp"),
                validate_token_resource=True,
                required_scopes=["greet"],
                client_registration_options=ClientRegistrationOptions(
                    enabled=True, valid_scopes=["greet"], default_scopes=["greet"]
                ),
            ),
        )

        @server.tool(structured_output=False)
        def greet(name: str) -> str:
            """A greeting."""
            return f"Hello {name}"

        locked = LockedServer(f"{origin}/mcp", logins)
        app = locked.naming_another(server.streamable_http_app())
        running = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="on"))
        thread = threading.Thread(target=running.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        try:
            yield locked
        finally:
            running.should_exit = True
            thread.join()
