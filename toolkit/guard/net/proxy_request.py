"""The head of a request to the proxy of a command: read in exactly one way, or refused.

Promise: what is sent on consists of exactly the parts that were read. No line break, NUL, second length or second host can
make the server read another request than the one that was judged. The ``Host`` header is that of the URL, whatever the
command sent. Headers for the proxy alone are not sent on. Nothing here touches the network.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from toolkit.guard.network.hosts import Url

MAX_HEAD: Final = 64 << 10
END_OF_HEAD: Final = b"\r\n\r\n"

_REQUEST_LINE: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([\x21-\x7e]+) (HTTP/1\.[01])")
_NAME: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE: Final = re.compile(rb"[\t\x20-\x7e\x80-\xff]*")
_SCHEME: Final = re.compile(r"([a-z][a-z0-9+.-]*)://", re.IGNORECASE)
_LENGTH: Final = re.compile(r"[0-9]{1,18}")
# For this connection only, or rewritten below.
_NOT_SENT_ON: Final = frozenset(
    {"connection", "content-length", "host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"}
)
_PROXY_PREFIX: Final = "proxy-"


class RefusedRequest(Exception):
    """The request is not sent on: the status and the text of the answer."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status: Final = status
        self.message: Final = message


@dataclass(frozen=True, slots=True)
class ProxyRequest:
    """One request. ``head`` is what the server gets, empty for a tunnel (``CONNECT``); ``body_length`` bytes follow it."""

    url: Url
    is_tunnel: bool
    head: bytes = b""
    body_length: int = 0


def parse_request(head: bytes) -> ProxyRequest:
    """Read a head without its last empty line. Raises ``RefusedRequest``, or what ``Url.parse`` raises.

    >>> request = parse_request(b"GET http://Example.org/a HTTP/1.1\\r\\nHost: other\\r\\nProxy-Connection: keep-alive")
    >>> request.head
    b'GET /a HTTP/1.1\\r\\nHost: example.org\\r\\nConnection: close\\r\\n\\r\\n'
    """
    first, *lines = head.split(b"\r\n")
    found = _REQUEST_LINE.fullmatch(first)
    if found is None:
        raise RefusedRequest(400, "the first line must be a method, a URL and HTTP/1.0 or HTTP/1.1")
    method, target, version = (part.decode("ascii") for part in found.groups())
    fields = [_parse_field(line) for line in lines]
    if method == "CONNECT":
        return ProxyRequest(_parse_authority(target), is_tunnel=True)
    url = _parse_url(target)
    length = _body_length(fields)
    sent = [f"{method} {url.target} {version}", f"Host: {url.authority}", *_fields_to_send(fields)]
    if length is not None:
        sent.append(f"Content-Length: {length}")
    sent += ["Connection: close", "", ""]
    return ProxyRequest(url, is_tunnel=False, head="\r\n".join(sent).encode("latin-1"), body_length=length or 0)


def _parse_field(line: bytes) -> tuple[str, str]:
    name, colon, value = line.partition(b":")
    if not colon or not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
        raise RefusedRequest(
            400, "a header must be a name, a colon and a value, on one line without control characters"
        )
    return name.decode("ascii"), value.strip(b" \t").decode("latin-1")


def _parse_authority(target: str) -> Url:
    """The host and port of a tunnel; the path is made up, so that the policy gets a URL as for any request."""
    if re.search("[/?#]", target) or not re.search(":[0-9]{1,5}$", target):
        raise RefusedRequest(400, "CONNECT needs a host and a port, such as example.org:443")
    return Url.parse(f"https://{target}/")


def _parse_url(target: str) -> Url:
    scheme = _SCHEME.match(target)
    if scheme is None:
        raise RefusedRequest(400, "this is a proxy: a request must name a whole URL, such as http://example.org/")
    if scheme[1].lower() == "https":
        raise RefusedRequest(501, "https URLs are reached with CONNECT")
    if scheme[1].lower() != "http":
        raise RefusedRequest(501, "only http and https URLs can be reached")
    return Url.parse(target)


def _body_length(fields: list[tuple[str, str]]) -> int | None:
    if any(name.lower() == "transfer-encoding" for name, _ in fields):
        raise RefusedRequest(411, "a request body needs a Content-Length; chunked bodies are not sent on")
    lengths = [value for name, value in fields if name.lower() == "content-length"]
    if len(lengths) > 1 or not all(map(_LENGTH.fullmatch, lengths)):
        raise RefusedRequest(400, "a request may have one Content-Length, which is a number")
    return int(lengths[0]) if lengths else None


def _fields_to_send(fields: list[tuple[str, str]]) -> list[str]:
    named = {
        word.strip().lower() for name, value in fields if name.lower() == "connection" for word in value.split(",")
    }
    dropped = _NOT_SENT_ON | named
    return [
        f"{name}: {value}"
        for name, value in fields
        if name.lower() not in dropped and not name.lower().startswith(_PROXY_PREFIX)
    ]


class ResponseHeadEditor:
    """Passes a response on, and says in its head that the connection ends with it: the command would otherwise wait for an
    answer to its next request. What does not look like a response is passed on as it is.

    >>> editor = ResponseHeadEditor()
    >>> editor.feed(b"HTTP/1.1 200 OK\\r\\nKeep-Alive: timeout=5\\r\\n"), editor.feed(b"\\r\\nbody")
    (b'', b'HTTP/1.1 200 OK\\r\\nConnection: close\\r\\n\\r\\nbody')
    """

    def __init__(self) -> None:
        self._held = bytearray()
        self._is_past_head = False

    def feed(self, data: bytes) -> bytes:
        """What to pass on now."""
        if self._is_past_head:
            return data
        searched = max(0, len(self._held) - len(END_OF_HEAD))
        self._held += data
        passed_on = b""
        while (end := self._held.find(END_OF_HEAD, searched)) >= 0:
            head = bytes(self._held[:end])
            del self._held[: end + len(END_OF_HEAD)]
            searched = 0
            if not _is_interim(head):
                self._is_past_head = True
                return passed_on + _edit_head(head) + self.end()
            passed_on += head + END_OF_HEAD
        if len(self._held) > MAX_HEAD:
            self._is_past_head = True
            return passed_on + self.end()
        return passed_on

    def end(self) -> bytes:
        """What is left when no more comes."""
        rest = bytes(self._held)
        self._held.clear()
        return rest


def _is_interim(head: bytes) -> bool:
    """100 to 199, which another response follows; 101 is the last one on a connection."""
    return re.match(rb"HTTP/1\.[01] 1(?!01)[0-9][0-9]", head) is not None


def _edit_head(head: bytes) -> bytes:
    first, *lines = head.split(b"\r\n")
    kept = [
        line
        for line in lines
        if line.partition(b":")[0].strip().lower() not in (b"connection", b"keep-alive", b"proxy-connection")
    ]
    return b"\r\n".join([first, *kept, b"Connection: close", b"", b""])
