"""HTTP for tools: ``NetGuard`` fetches URLs that a ``Network`` permits, ``ServiceGuard`` sends requests to one origin.

Promise: every hop is parsed, judged, looked up once and connected to by the guard (``guard/network/connect.py``); nothing
here can open a connection by itself. Time, redirects, headers and the decoded body are bounded; so is memory, by a small
multiple of ``max_bytes``. Nothing is kept between calls: no cookies, no credentials.

Not stopped: what the server does with the URL, and what the response contains.

The HTTP is the standard library's: an HTTP client would look names up and connect by itself.
"""

from __future__ import annotations

import codecs
import contextlib
import copy
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from toolkit.errors import InvalidArguments, SandboxViolation, ToolFailed
from toolkit.guard.network.connect import Check, Deadline, Wire, connect
from toolkit.guard.network.hosts import Network, Url
from toolkit.system_faults import OsErrorTranslation

if TYPE_CHECKING:
    import socket

Headers: TypeAlias = tuple[tuple[str, str], ...]
Method: TypeAlias = Literal["GET", "HEAD"]
RedirectJudge: TypeAlias = Callable[[str], None]

MAX_REDIRECTS: Final = 5
METHODS: Final = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE")
MAX_SENT: Final = 32 << 20
# For these methods, a request without a body is sent with an empty one.
_USUALLY_WITH_BODY: Final = ("POST", "PUT", "PATCH")


class NetGuard:
    """Fetches URLs that ``network`` permits. Thread-safe."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self._check: Check = _no_check
        self._judge_redirect: RedirectJudge = _no_redirect_judge
        # Shared by all views, because each network loads the system's certificate authorities once.
        self._service_networks: dict[tuple[str, bool], Network] = {}

    def __repr__(self) -> str:
        return f"<NetGuard: {self._network!r}>"

    @property
    def network(self) -> Network:
        """What may be reached."""
        return self._network

    def with_check(self, check: Check) -> NetGuard:
        """A view with the same network that calls ``check`` before every wait.

        ``check`` raises a ``ToolkitError`` to end the call; it replaces an earlier one.
        """
        view = copy.copy(self)
        view._check = check
        return view

    def with_redirect_judge(self, judge: RedirectJudge) -> NetGuard:
        """A view that calls ``judge`` with the URL of every redirect to another host.

        ``judge`` raises a ``ToolkitError`` to refuse the redirect, before the name is looked up.
        """
        view = copy.copy(self)
        view._judge_redirect = judge
        return view

    def service(self, url: str, *, public_only: bool = False) -> ServiceGuard:
        """A guard that may send all kinds of requests to the origin of ``url``, and nowhere else.

        ``url`` must come from the configuration: the origin may be anywhere, including this machine. If somebody else chose
        it, such as the author of a document, use ``public_only``: then every lookup is judged as for ``fetch``.
        """

        origin = Url.parse(url)
        key = (origin.origin, public_only)
        if key not in self._service_networks:
            self._service_networks[key] = self._network.for_service(origin.host, public_only=public_only)
        return ServiceGuard(self._service_networks[key], origin, self._check)

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
        """Request ``url`` and follow at most five redirects, each checked like the first URL.

        ``headers`` go to the first origin. After a redirect to another origin only accept, accept-language and user-agent
        are sent; the others are not sent again. A redirect from https to http is refused. ``timeout`` (seconds) covers the
        whole call.
        Raises ``InvalidArguments``, ``SandboxViolation``, ``ToolFailed`` with NETWORK (no connection, or timed out) or
        REMOTE (invalid HTTP, too many redirects), and what ``check`` raises.
        """
        if max_bytes < 0:
            raise ValueError("max_bytes must not be negative: a fetch is always bounded")
        deadline = Deadline(timeout, check or self._check)
        if method not in ("GET", "HEAD"):
            raise InvalidArguments("the method must be GET or HEAD")
        current, sent = Url.parse(url), check_headers(headers or {})
        hops: list[str] = []
        while len(hops) <= MAX_REDIRECTS:
            with (
                contextlib.closing(self._connect(current, deadline)) as sock,
                ConnectionErrors(current),
                contextlib.closing(Wire(sock, deadline)) as wire,
            ):
                answer = send_request(wire, current, method, sent)
                location = redirect_location(answer)
                if location is None:
                    body, truncated = read_body(wire, answer, max_bytes)
                    return build_response(url, current, answer, body, truncated, tuple(hops))
            hops.append(current.text)
            before, (current, sent) = current.host, next_hop(current, location, sent)
            if current.host != before:
                self._judge_redirect(current.text)
        raise ToolFailed("REMOTE", f"the server sent more than {MAX_REDIRECTS} redirects")

    def _connect(self, url: Url, deadline: Deadline) -> socket.socket:
        return connect(self._network, url.host, url.port, deadline, tls=url.scheme == "https")


class ServiceGuard:
    """Sends requests to one service from the configuration. Created by ``NetGuard.service``; thread-safe.

    Promise: a request goes to the scheme, host and port of the service or nowhere; a redirect is returned and not
    followed. Hosts and addresses that the network denies stay denied; with ``public_only`` so do all addresses that are
    not public. Time and sizes are bounded, and nothing is kept between calls.

    Not stopped: what the service does with a request.
    """

    def __init__(self, network: Network, origin: Url, check: Check) -> None:
        self._network = network
        self._origin = origin
        self._check = check

    def send(
        self,
        target: str,
        *,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        timeout: float = 60,
        max_bytes: int = 5 << 20,
    ) -> Response:
        """Request ``target``, a path and query. Returns the response with any status, redirects included.

        Raises the same errors as ``NetGuard.fetch``.
        """
        if method not in METHODS:
            raise InvalidArguments(f"the method must be one of {', '.join(METHODS)}")
        if body is not None and len(body) > MAX_SENT:
            raise InvalidArguments(f"the body of a request may have at most {MAX_SENT} bytes")
        url = self._url(target)
        sent = check_headers(headers or {})
        if body is None and method in _USUALLY_WITH_BODY:
            body = b""
        deadline = Deadline(timeout, self._check)
        sock = connect(self._network, url.host, url.port, deadline, tls=url.scheme == "https")
        with (
            contextlib.closing(sock),
            ConnectionErrors(url),
            contextlib.closing(Wire(sock, deadline)) as wire,
        ):
            answer = send_request(wire, url, method, sent, body)
            content, truncated = read_body(wire, answer, max_bytes)
            return build_response(url.text, url, answer, content, truncated, ())

    def _url(self, target: str) -> Url:
        if not target.startswith("/"):
            raise InvalidArguments("a path must begin with a slash")
        url = Url.parse(f"{self._origin.origin}{target}")
        if url.origin != self._origin.origin:
            raise SandboxViolation(f"requests may go only to {self._origin.origin}")
        return url


def _no_check() -> None:
    """The check of a ``NetGuard`` without one."""


def _no_redirect_judge(url: str) -> None:
    """Only the network's settings decide about redirects."""


# -- redirects ---------------------------------------------------------------------------------------------------------

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
# Any other header may be a secret for the first origin only.
_SENT_TO_OTHER_ORIGINS: Final = frozenset({"accept", "accept-language", "user-agent"})


def redirect_location(answer: HTTPResponse) -> str | None:
    """Where a redirect leads; None if the response is not a redirect."""
    location = answer.headers.get("location")
    if answer.status not in _REDIRECTS or location is None:
        return None
    try:
        return location.encode("latin-1").decode()
    except UnicodeError:
        raise HTTPException("a Location header that is not text") from None


def next_hop(current: Url, location: str, sent: Mapping[str, str]) -> tuple[Url, dict[str, str]]:
    """The next URL and the headers to send there; refuses an invalid URL and a step from https to http."""
    try:
        following = current.join(location)
    except InvalidArguments as error:
        raise ToolFailed("REMOTE", f"'{current.host.text}' redirects to an invalid URL: {error.message}") from None
    if current.scheme == "https" and following.scheme == "http":
        raise SandboxViolation(f"'{current.host.text}' redirects from https to http, which is not followed")
    same = following.origin == current.origin
    return following, {name: value for name, value in sent.items() if same or name in _SENT_TO_OTHER_ORIGINS}


# -- one exchange ------------------------------------------------------------------------------------------------------

# Promise: a request consists of exactly its parts; nothing in a header or a URL can end it early or add to it. The head and
# the decoded body of the response are bounded, and a response that ``http.client`` would have to guess about is refused.

_CHUNK: Final = 64 << 10

_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE: Final = re.compile(r"[\t\x20-\x7e\xa0-\xff]*")
# These decide where a message ends, where it goes or how it is encoded. The caller may not set them.
_RESERVED: Final = frozenset(
    {"accept-encoding", "connection", "content-length", "expect", "host", "keep-alive", "te", "trailer"}
    | {"transfer-encoding", "upgrade"}
)
_DEFAULTS: Final = {"accept": "*/*", "user-agent": "typed-toolkit"}
# Encodings of real pages. Python has more, but some take quadratic time or are not text encodings.
_CHARSETS: Final = re.compile(
    r"utf-?8|us-ascii|ascii|utf-16(le|be)?|iso-8859-\d{1,2}|latin-?1|windows-125\d|cp125\d|koi8-[ru]|"
    r"shift_jis|euc-jp|iso-2022-jp|euc-kr|gb2312|gbk|gb18030|big5"
)
# Browsers read, and authors mean, a larger character set than these names say.
_ACTUAL_CHARSETS: Final = {
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
    """The response of a server, with any status.

    ``url`` is the one that was requested, ``final_url`` the one of this response, ``hops`` those in between. Names in
    ``headers`` are in lower case, and each value is one line. ``body`` is decompressed; ``truncated`` means that there was
    more of it. Limit: headers and body are the server's text, unescaped.
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
        """The body as text; never raises. The encoding comes from the byte order mark, else the charset in the header, else
        the one ``declared`` in the body itself, each only if web pages use it, else UTF-8.

        What cannot be decoded becomes U+FFFD. An incomplete character at the end of a truncated body is left out.
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
    """Python's name for a charset in a page or header; None if web pages do not use it."""
    name = charset.lower()
    if not _CHARSETS.fullmatch(name):
        return None
    try:
        return codecs.lookup(_ACTUAL_CHARSETS.get(name, name)).name
    except LookupError:  # such as iso-8859-99
        return None


def check_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers to send, with defaults and names in lower case. ``InvalidArguments`` never repeats a value."""
    sent = dict(_DEFAULTS)
    for name, value in headers.items():
        if not _TOKEN.fullmatch(name):
            raise InvalidArguments("the name of a header may contain only letters, digits and !#$%&'*+.^_`|~-")
        if name.lower() in _RESERVED or name.lower().startswith("proxy-"):
            raise InvalidArguments(f"the header '{name}' may not be set; leave it out")
        if not _VALUE.fullmatch(value):
            raise InvalidArguments(f"the header '{name}' must not contain line breaks or other control characters")
        sent[name.lower()] = value
    return sent


def send_request(
    wire: Wire, url: Url, method: str, headers: Mapping[str, str], body: bytes | None = None
) -> HTTPResponse:
    """Send the request and read the head of the response; interim responses are skipped."""
    lines = [f"{method} {url.target} HTTP/1.1", f"host: {url.authority}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if body is not None:
        lines.append(f"content-length: {len(body)}")
    lines += ["accept-encoding: gzip, deflate", "connection: close", "", ""]
    wire.send("\r\n".join(lines).encode("latin-1") + (body or b""))
    while True:
        answer = wire.next_response(method)
        answer.begin()
        if wire.ended:  # http.client mistakes the end of the connection for the end of the head
            raise HTTPException("the head ended early")
        if answer.status == 101:
            raise HTTPException("an unrequested switch to another protocol")
        if answer.status >= 200:
            return answer


def read_body(wire: Wire, answer: HTTPResponse, max_bytes: int) -> tuple[bytes, bool]:
    """The decoded body, at most ``max_bytes`` of it, and whether it was truncated."""
    _check_framing(answer)
    decoder = _ContentDecoder(answer.headers.get("content-encoding", ""))
    # An encoded body may be longer than the content, but not without limit. The limit also holds where http.client reads
    # everything, as it does for a chunk of size -1.
    wire.allow(2 * max_bytes + (1 << 20))
    pieces: list[bytes] = []
    room = max_bytes + 1  # the extra byte distinguishes a full body from a truncated one
    while room > 0 and (chunk := answer.read(_CHUNK)):
        pieces.append(decoder.decode(chunk, room))
        room -= len(pieces[-1])
    if room > 0:
        if answer.length:
            raise HTTPException("the body ended early")
        decoder.finish()
    return b"".join(pieces)[:max_bytes], room <= 0


def _check_framing(answer: HTTPResponse) -> None:
    """Refuse a response whose length ``http.client`` would have to guess."""
    coding = answer.headers.get_all("transfer-encoding", [])
    lengths = set(answer.headers.get_all("content-length", []))
    if coding and [each.strip().lower() for each in coding] != ["chunked"]:
        raise HTTPException("an unrequested Transfer-Encoding")
    if len(lengths) > 1 or any(not re.fullmatch(r"\s*[0-9]{1,18}\s*", each) for each in lengths):
        raise HTTPException("an invalid Content-Length")


class _ContentDecoder:
    """Decodes one Content-Encoding. Once ``decode`` has returned ``room`` bytes, it must not be called again."""

    def __init__(self, coding: str) -> None:
        self._coding = coding.strip().lower().removeprefix("x-") or "identity"
        if self._coding not in ("identity", "gzip", "deflate"):
            raise HTTPException("an unrequested Content-Encoding")
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
                # gzip may continue with another member; anything else is padding.
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


def build_response(
    requested: str, url: Url, answer: HTTPResponse, body: bytes, truncated: bool, hops: tuple[str, ...]
) -> Response:
    headers = tuple((name.lower(), " ".join(value.split())) for name, value in answer.headers.items())
    content_type = next((value for name, value in headers if name == "content-type"), "")
    return Response(requested, url.text, answer.status, headers, content_type, body, truncated, hops)


class ConnectionErrors(OsErrorTranslation):
    """Raises errors of a connection as failures, without the text of the system or the server."""

    __slots__ = ("_host",)

    def __init__(self, url: Url) -> None:
        self._host = url.host.text

    def translate(self, error: OSError) -> ToolFailed:
        return ToolFailed("NETWORK", f"the connection to '{self._host}' was lost")

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: object) -> None:
        # http.client lets ValueError through for some broken chunks.
        if isinstance(error, HTTPException | ValueError | zlib.error):
            raise ToolFailed("REMOTE", f"'{self._host}' did not send a valid HTTP response") from None
        super().__exit__(kind, error, traceback)
