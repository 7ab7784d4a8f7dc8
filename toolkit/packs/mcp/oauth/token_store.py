"""What is kept of one login: the tokens, the registered client, and where tokens are refreshed.

It is a private record of the user (``PrivateRecords``: mode 0600, outside every root of a toolkit), one for each server and
client, shared by all projects and processes of the user. The official client reads and writes it through ``TokenStorage``.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from mcp.shared.auth import OAuthClientInformationFull, OAuthMetadata, OAuthToken, ProtectedResourceMetadata
from pydantic import BaseModel, ValidationError

from toolkit.errors import SetupError, ToolFailed

if TYPE_CHECKING:
    from toolkit.packs.mcp.server import McpServer
    from toolkit.runtime.state_directory import PrivateRecords


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
    """Rights that a call was refused for. The next login asks for them as well."""


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
