"""The end of a login in the browser: the authorization server sends the browser back to an address on this machine.

Promise: listens on the loopback only, as long as one login lasts. Accepts one answer, which must carry the state of this
login; everything else is refused and changes nothing. Requests are read up to a limit.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final
from urllib.parse import parse_qs, urlsplit

from mcp.client.auth import AuthorizationCodeResult

from toolkit.errors import ToolFailed

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
