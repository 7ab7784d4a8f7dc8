"""One HTTP exchange over a connection that was checked: sends a request and reads the response, within limits.

Promise: a request consists of exactly its parts; nothing in a header or a URL can end it early or add to it. The head and
the decoded body of the response are bounded, and a response that ``http.client`` would have to guess about is refused.
"""

from __future__ import annotations

import codecs
import contextlib
import io
import re
import socket
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from toolkit.errors import InvalidArguments, ToolFailed
from toolkit.guard.net.dial import Deadline
from toolkit.guard.network.hosts import Url
from toolkit.guard.os_error_translation import OsErrorTranslation

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

Headers: TypeAlias = tuple[tuple[str, str], ...]

_MAX_HEAD: Final = 128 << 10
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


class Wire:
    """A connection in the form ``HTTPResponse`` reads: the deadline limits every wait, and the bytes read are limited."""

    def __init__(self, sock: socket.socket, deadline: Deadline) -> None:
        self._sock = sock
        self._deadline = deadline
        self._left = _MAX_HEAD
        self.ended = False
        self._reader = _SharedReader(_WireSource(self))
        self._answer: HTTPResponse | None = None

    def next_response(self, method: str) -> HTTPResponse:
        """The response to read next. The one before is closed, and ``close`` closes the last one."""
        self.close()
        self._answer = HTTPResponse(cast(socket.socket, self), method=method)  # all it calls is makefile
        return self._answer

    def close(self) -> None:
        """Close the response, not the connection. If the garbage collector closed it, its reader might be gone already."""
        if self._answer is not None:
            self._answer.close()
            self._answer = None

    def makefile(self, _mode: str) -> io.BufferedReader:
        """The only reader of this connection, so that nothing is lost between an interim response and the next one."""
        return self._reader

    def allow(self, count: int) -> None:
        """Allow this many more bytes to be read."""
        self._left = count

    def send(self, data: bytes) -> None:
        while data:
            self._sock.settimeout(self._deadline.next_wait())
            with contextlib.suppress(TimeoutError):
                data = data[self._sock.send(data) :]

    def receive(self, buffer: WriteableBuffer) -> int:
        if self._left <= 0:
            raise HTTPException("more bytes than the content needs")
        with memoryview(buffer)[: self._left] as room:
            while True:
                self._sock.settimeout(self._deadline.next_wait())
                with contextlib.suppress(TimeoutError):
                    count = self._sock.recv_into(room)
                    self._left -= count
                    self.ended = count == 0
                    return count


class _WireSource(io.RawIOBase):
    """The received bytes of a ``Wire`` as a raw stream."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        return self._wire.receive(buffer)


class _SharedReader(io.BufferedReader):
    def close(self) -> None:
        """Does nothing: an interim response closes its reader, but the next one still needs it."""


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
