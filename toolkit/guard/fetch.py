"""The only way from a tool to the web: ``NetGuard`` fetches a URL inside what a ``Network`` permits.

Promise: every hop is parsed, judged, looked up once and connected to as ``dial.connect`` says. Time, redirects,
headers and the decoded body are bounded; memory is too, by a small multiple of ``max_bytes``. Nothing is taken
from the environment and nothing is kept between calls: no proxies, no cookies, no stored credentials.

Not stopped: what the asked server does with the URL it gets, and what stands in the answer.
"""

from __future__ import annotations

import codecs
import contextlib
import copy
import io
import re
import socket
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, cast

from toolkit.errors import InvalidArguments, SandboxViolation, ToolFailed
from toolkit.guard.dial import Check, Deadline, connect
from toolkit.guard.hosts import Url
from toolkit.guard.net import Network

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

Method: TypeAlias = Literal["GET", "HEAD"]
Headers: TypeAlias = tuple[tuple[str, str], ...]
Judge: TypeAlias = Callable[[str], None]

MAX_REDIRECTS: Final = 5
_MAX_HEAD: Final = 128 << 10
_CHUNK: Final = 64 << 10

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE: Final = re.compile(r"[\t\x20-\x7e\xa0-\xff]*")
# They decide where a message ends, where it goes or how it is packed, which is not the caller's to say.
_OURS: Final = frozenset(
    {"accept-encoding", "connection", "content-length", "expect", "host", "keep-alive", "te", "trailer"}
    | {"transfer-encoding", "upgrade"}
)
_DEFAULTS: Final = {"accept": "*/*", "user-agent": "typed-toolkit"}
# What is not in here may be a secret meant for the first origin only.
_TO_OTHER_ORIGINS: Final = frozenset({"accept", "accept-language", "user-agent"})

# Encodings of real pages. Python knows more, some of which run in quadratic time or are no text encodings.
_CHARSETS: Final = re.compile(
    r"utf-?8|us-ascii|ascii|utf-16(le|be)?|iso-8859-\d{1,2}|latin-?1|windows-125\d|cp125\d|koi8-[ru]|"
    r"shift_jis|euc-jp|iso-2022-jp|euc-kr|gb2312|gbk|gb18030|big5"
)
# What browsers read, and authors mean, under names of smaller sets.
_MEANT: Final = {
    **dict.fromkeys(("iso-8859-1", "latin1", "latin-1", "ascii", "us-ascii"), "cp1252"),
    "iso-8859-9": "cp1254",
    "iso-8859-11": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "big5": "big5hkscs",
    "shift_jis": "cp932",
    "euc-kr": "cp949",
    "utf-16": "utf-16-le",
}
_CHARSET: Final = re.compile(r";\s*charset\s*=\s*[\"']?([a-z0-9_-]+)", re.ASCII | re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Response:
    """What a server answered, whatever its status.

    ``url`` is as it was asked for, ``final_url`` the one that gave this answer, ``hops`` those that led from one to
    the other. Names in ``headers`` are in lower case, each value is one line. ``body`` is decompressed;
    ``truncated`` says that there was more of it. Limit: headers and body are the server's words, unescaped.
    """

    url: str
    final_url: str
    status: int
    headers: Headers
    content_type: str
    body: bytes
    truncated: bool
    hops: tuple[str, ...]

    def text(self, declared: str = "") -> str:
        """The body as text, never an error: by its byte order mark, else the charset the server names, else the one
        ``declared`` in the body itself, each only if web pages use it, else UTF-8.

        What cannot be decoded becomes U+FFFD; a character that was cut in two at the end of a cut body is left out.
        """
        named = _CHARSET.search(self.content_type)
        if self.body.startswith(b"\xef\xbb\xbf"):
            encoding = "utf-8-sig"
        elif self.body.startswith((b"\xff\xfe", b"\xfe\xff")):
            encoding = "utf-16"
        else:
            encoding = _encoding(named[1] if named else "") or _encoding(declared) or "utf-8"
        return codecs.getincrementaldecoder(encoding)("replace").decode(self.body, not self.truncated)


def _encoding(charset: str) -> str | None:
    """Python's name for a charset in a page or header; None where pages are not written so."""
    name = charset.lower()
    if not _CHARSETS.fullmatch(name):
        return None
    try:
        return codecs.lookup(_MEANT.get(name, name)).name
    except LookupError:  # a number in a family that has no such member
        return None


class NetGuard:
    """Fetches inside what ``network`` permits. May be used by several threads."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._check: Check = _no_check
        self._judge: Judge = _no_judge

    @property
    def network(self) -> Network:
        """What may be reached."""
        return self._network

    def bound(self, check: Check) -> NetGuard:
        """A view with the same network that calls ``check`` before every wait.

        ``check`` raises a ``ToolkitError`` to end the call; it takes the place of an earlier one.
        """
        view = copy.copy(self)
        view._check = check
        return view

    def judging(self, judge: Judge) -> NetGuard:
        """A view that asks ``judge`` about every redirect to another host than the one before, by its URL.

        ``judge`` raises a ``ToolkitError`` to refuse it, before the name is even looked up.
        """
        view = copy.copy(self)
        view._judge = judge
        return view

    def fetch(
        self,
        url: str,
        *,
        method: Method = "GET",
        headers: Mapping[str, str] | None = None,
        timeout: float = 30,
        max_bytes: int = 5 << 20,
        check: Check | None = None,
    ) -> Response:
        """Ask for ``url`` and follow at most five redirects, each judged as if it had been asked for.

        ``headers`` go to the first origin; a redirect to another one takes along only accept, accept-language and
        user-agent, and the rest is gone for good. A redirect from https to http is refused. ``timeout`` (seconds)
        covers the whole call.
        Raises ``InvalidArguments``, ``SandboxViolation``, ``ToolFailed`` with NETWORK (no connection, or out of time)
        or REMOTE (no proper HTTP, too many redirects), and what ``check`` raises.
        """
        if max_bytes < 0:
            raise ValueError("max_bytes must not be negative: a fetch is always bounded")
        deadline = Deadline(timeout, check or self._check)
        current, sent = Url.parse(url), _checked_request(method, headers or {})
        hops: list[str] = []
        while len(hops) <= MAX_REDIRECTS:
            with contextlib.closing(self._connect(current, deadline)) as sock, _translated(current):
                wire = _Wire(sock, deadline)
                answer = _ask(wire, current, method, sent)
                location = _location(answer)
                if location is None:
                    body, truncated = _body(wire, answer, max_bytes)
                    return _response(url, current, answer, body, truncated, tuple(hops))
            hops.append(current.text)
            before, (current, sent) = current.host, _next_hop(current, location, sent)
            if current.host != before:
                self._judge(current.text)
        raise ToolFailed("REMOTE", f"more than {MAX_REDIRECTS} redirects")

    def _connect(self, url: Url, deadline: Deadline) -> socket.socket:
        return connect(self._network, url.host, url.port, deadline, tls=url.scheme == "https")


def _no_check() -> None:
    """What an unbound ``NetGuard`` asks before each wait."""


def _no_judge(url: str) -> None:
    """What is asked about redirects when only the network's settings decide."""


class _Wire:
    """A connection as ``HTTPResponse`` reads it: every wait ends with the deadline, every read counts."""

    def __init__(self, sock: socket.socket, deadline: Deadline) -> None:
        self._sock = sock
        self._deadline = deadline
        self._left = _MAX_HEAD
        self.ended = False
        self._reader = _Reader(_Source(self))

    def makefile(self, _mode: str) -> io.BufferedReader:
        """The one reader of this connection, so that an answer behind an interim one loses nothing."""
        return self._reader

    def allow(self, count: int) -> None:
        """Let so many bytes more be read."""
        self._left = count

    def send(self, data: bytes) -> None:
        while data:
            self._sock.settimeout(self._deadline.slice())
            with contextlib.suppress(TimeoutError):
                data = data[self._sock.send(data) :]

    def receive(self, buffer: WriteableBuffer) -> int:
        if self._left <= 0:
            raise HTTPException("more bytes than the content needs")
        with memoryview(buffer)[: self._left] as room:
            while True:
                self._sock.settimeout(self._deadline.slice())
                with contextlib.suppress(TimeoutError):
                    count = self._sock.recv_into(room)
                    self._left -= count
                    self.ended = count == 0
                    return count


class _Source(io.RawIOBase):
    def __init__(self, wire: _Wire) -> None:
        self._wire = wire

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        return self._wire.receive(buffer)


class _Reader(io.BufferedReader):
    def close(self) -> None:
        """Nothing: an interim answer closes its reader when it is dropped, and the next one still needs it."""


def _checked_request(method: str, headers: Mapping[str, str]) -> dict[str, str]:
    if method not in ("GET", "HEAD"):
        raise InvalidArguments("the method must be GET or HEAD")
    return {**_DEFAULTS, **checked_headers(headers)}


def checked_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers a caller may send, their names in lower case; errors name the header and never show its value."""
    sent: dict[str, str] = {}
    for name, value in headers.items():
        if not _TOKEN.fullmatch(name):
            raise InvalidArguments("a header's name must be a plain word")
        if name.lower() in _OURS or name.lower().startswith("proxy-"):
            raise InvalidArguments(f"the header '{name}' may not be given")
        if not _VALUE.fullmatch(value):
            raise InvalidArguments(f"the header '{name}' must not hold line breaks or other control characters")
        sent[name.lower()] = value
    return sent


def _ask(wire: _Wire, url: Url, method: str, headers: Mapping[str, str]) -> HTTPResponse:
    """Send the request and read the answer's head; interim answers are passed over."""
    lines = [f"{method} {url.target} HTTP/1.1", f"host: {url.authority}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    lines += ["accept-encoding: gzip, deflate", "connection: close", "", ""]
    wire.send("\r\n".join(lines).encode("latin-1"))
    while True:
        answer = HTTPResponse(cast(socket.socket, wire), method=method)  # all it calls is makefile
        answer.begin()
        if wire.ended:  # http.client takes the end of the connection for the end of the head
            raise HTTPException("the head ended early")
        if answer.status == 101:
            raise HTTPException("a switch to another protocol that nobody asked for")
        if answer.status >= 200:
            return answer


def _location(answer: HTTPResponse) -> str | None:
    location = answer.headers.get("location")
    if answer.status not in _REDIRECTS or location is None:
        return None
    try:
        return location.encode("latin-1").decode()
    except UnicodeError:
        raise HTTPException("a Location that is no text") from None


def _next_hop(current: Url, location: str, sent: Mapping[str, str]) -> tuple[Url, dict[str, str]]:
    try:
        following = current.join(location)
    except InvalidArguments as error:
        raise ToolFailed("REMOTE", f"'{current.host.text}' redirects to no proper URL: {error.message}") from None
    if current.scheme == "https" and following.scheme == "http":
        raise SandboxViolation(f"'{current.host.text}' redirects from https to http")
    same = following.origin == current.origin
    return following, {name: value for name, value in sent.items() if same or name in _TO_OTHER_ORIGINS}


def _body(wire: _Wire, answer: HTTPResponse, max_bytes: int) -> tuple[bytes, bool]:
    _check_framing(answer)
    decoder = _Decoder(answer.headers.get("content-encoding", ""))
    # Packing may need more than the content, but not without end. This also holds where http.client reads all
    # there is, as it does for a chunk of size -1.
    wire.allow(2 * max_bytes + (1 << 20))
    pieces: list[bytes] = []
    room = max_bytes + 1  # the one more tells a full body from a cut one
    while room > 0 and (chunk := answer.read(_CHUNK)):
        pieces.append(decoder.decode(chunk, room))
        room -= len(pieces[-1])
    if room > 0:
        if answer.length:
            raise HTTPException("the body ended early")
        decoder.finish()
    return b"".join(pieces)[:max_bytes], room <= 0


def _check_framing(answer: HTTPResponse) -> None:
    """Refuse what ``http.client`` would guess about."""
    coding = answer.headers.get_all("transfer-encoding", [])
    lengths = set(answer.headers.get_all("content-length", []))
    if coding and [each.strip().lower() for each in coding] != ["chunked"]:
        raise HTTPException("a transfer coding that nobody asked for")
    if len(lengths) > 1 or any(not re.fullmatch(r"\s*[0-9]{1,18}\s*", each) for each in lengths):
        raise HTTPException("no proper length")


class _Decoder:
    """Undoes one content coding. ``decode`` gives at most ``room`` bytes, after which it must not be called again."""

    def __init__(self, coding: str) -> None:
        self._coding = coding.strip().lower().removeprefix("x-") or "identity"
        if self._coding not in ("identity", "gzip", "deflate"):
            raise HTTPException("a content coding that nobody asked for")
        self._inflater: zlib._Decompress | None = None
        self._ended = False

    def decode(self, data: bytes, room: int) -> bytes:
        if self._coding == "identity":
            return data
        pieces: list[bytes] = []
        while data and room > 0 and not self._ended:
            if self._inflater is None:
                self._inflater = zlib.decompressobj(self._window(data))
            pieces.append(self._inflater.decompress(data, room))
            room -= len(pieces[-1])
            data = self._inflater.unconsumed_tail
            if self._inflater.eof:
                data = self._inflater.unused_data
                self._inflater = None
                # gzip may go on with a further member; what else follows is padding.
                self._ended = self._coding == "deflate" or data[:1] not in (b"", b"\x1f")
        return b"".join(pieces)

    def finish(self) -> None:
        if self._inflater is not None:
            raise HTTPException("the compressed body ended early")

    def _window(self, data: bytes) -> int:
        if self._coding == "gzip":
            return 16 + zlib.MAX_WBITS
        # "deflate" means a zlib stream, but some servers send the bare one.
        has_header = len(data) > 1 and data[0] & 15 == 8 and int.from_bytes(data[:2]) % 31 == 0
        return zlib.MAX_WBITS if has_header else -zlib.MAX_WBITS


def _response(
    asked: str, url: Url, answer: HTTPResponse, body: bytes, truncated: bool, hops: tuple[str, ...]
) -> Response:
    headers = tuple((name.lower(), " ".join(value.split())) for name, value in answer.headers.items())
    content_type = next((value for name, value in headers if name == "content-type"), "")
    return Response(asked, url.text, answer.status, headers, content_type, body, truncated, hops)


@contextlib.contextmanager
def _translated(url: Url) -> Iterator[None]:
    """The one translation of what goes wrong on a connection; texts of the system and the server are left out."""
    try:
        yield
    except (HTTPException, ValueError, zlib.error):  # http.client lets ValueError through for some broken chunks
        raise ToolFailed("REMOTE", f"'{url.host.text}' did not answer in proper HTTP") from None
    except OSError:
        raise ToolFailed("NETWORK", f"the connection to '{url.host.text}' broke") from None
