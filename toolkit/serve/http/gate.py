"""The gate before every HTTP request: its Host, its Origin, and its token.

- **Host**: a page that made its own name resolve to this machine (DNS rebinding) sends that name.
- **Origin**: browsers add it to what a foreign page sends. Clients that are not browsers send none.
- **Token**: ``Authorization: Bearer ...``. Browsers never add it by themselves, so a forged request has none.
"""

from __future__ import annotations

import hmac
from collections.abc import Collection
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

_MISDIRECTED: Final = 421


class RequestGate:
    """Passes a request on to the application, or refuses it in one sentence."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        hosts: Collection[str],
        token: str | None,
        open_paths: Collection[str] = (),
        way_out: str = "",
    ) -> None:
        """``open_paths`` need no token: a page must be loaded before it can send one. ``way_out`` is the end of the sentence
        about an unknown Host."""
        self._app: Final = app
        self._hosts: Final = frozenset(hosts)
        self._origins: Final = frozenset(f"{scheme}://{host}" for host in hosts for scheme in ("http", "https"))
        self._token: Final = None if token is None else token.encode()
        self._open_paths: Final = frozenset(open_paths)
        self._way_out: Final = way_out

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        refusal = self._judge(scope)
        if refusal is None:
            await self._app(scope, receive, send)
            return
        from starlette.responses import PlainTextResponse

        status, text = refusal
        headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
        await PlainTextResponse(text, status, headers)(scope, receive, send)

    def _judge(self, scope: Scope) -> tuple[int, str] | None:
        """The status and the sentence of a refusal."""
        if scope["type"] != "http":
            return 400, "only HTTP requests are answered here"
        given = _headers(scope)
        hosts = given.get(b"host", [])
        if len(hosts) != 1 or hosts[0].decode("latin-1").lower() not in self._hosts:
            return (
                _MISDIRECTED,
                f"the Host header names another server than this one{self._way_out}",
            )
        origins = given.get(b"origin", [])
        if any(origin.decode("latin-1").lower() not in self._origins for origin in origins):
            return 403, "requests from other web pages are refused"
        if self._token is None or scope["path"] in self._open_paths:
            return None
        if not _has_token(given.get(b"authorization", []), self._token):
            return 401, "the token is missing or wrong: send `Authorization: Bearer TOKEN`"
        return None


def _headers(scope: Scope) -> dict[bytes, list[bytes]]:
    given: dict[bytes, list[bytes]] = {}
    for name, value in scope["headers"]:
        given.setdefault(name.lower(), []).append(value)
    return given


def _has_token(given: list[bytes], token: bytes) -> bool:
    if len(given) != 1:
        return False
    scheme, _, value = given[0].partition(b" ")
    return scheme.lower() == b"bearer" and hmac.compare_digest(value.strip(), token)
