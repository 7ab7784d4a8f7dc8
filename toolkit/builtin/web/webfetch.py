"""``webfetch``: fetches one public web page as readable text; media are attached."""

from __future__ import annotations

import base64
import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from toolkit.builtin.files.whole_file import Media, recognise_media
from toolkit.errors import ToolFailed
from toolkit.generated import WebfetchInput, WebfetchOutput
from toolkit.runtime.tool_context import ToolContext
from toolkit.visible import escape_hidden
from toolkit.wire.content import ContentBlock

if TYPE_CHECKING:
    from toolkit.web import Response

# As in the spec; some error messages mention them.
MAX_BYTES: Final = 10_485_760
MAX_TIMEOUT_MS: Final = 120_000

_HEAD: Final = 8 * 1024
_MAX_TYPE: Final = 200
_TITLE_WITHIN: Final = 1000

# Some servers offer a page in several formats; the first choice needs the least conversion.
_ACCEPT: Final = {
    "markdown": "text/markdown, text/html;q=0.9, text/plain;q=0.8, */*;q=0.5",
    "text": "text/plain, text/markdown;q=0.9, text/html;q=0.8, */*;q=0.5",
    "html": "text/html, application/xhtml+xml;q=0.9, */*;q=0.5",
}
_XHTML: Final = "application/xhtml+xml"
_NOT_TEXT: Final = re.compile(r"(?:image|audio|video|font)/(?!svg\+xml)")
# How an HTML page without a content type starts.
_PAGE: Final = re.compile(r"\s*(?:<!--.{0,1000}?-->\s*)?<(?:!doctype\s+html|html|head|body|title)\b", re.I | re.S)
_DECLARED: Final = re.compile(
    rb"<meta\b[^>]{0,200}?\bcharset\s*=\s*[\"']?([\w-]{1,40})"
    rb"|\A\s*<\?xml\b[^>]{0,200}?\bencoding\s*=\s*[\"']([\w-]{1,40})",
    re.I,
)
_DECLARED_WITHIN: Final = 2048


def run(args: WebfetchInput, ctx: ToolContext) -> WebfetchOutput:
    end = time.monotonic() + args.timeout_ms / 1000
    response = _fetch(args, ctx)
    media = recognise_media(response.body[:_HEAD])
    if media is not None:
        return _attach(response, media, ctx)
    text = response.text(_declared_charset(response.body))
    title = None
    if _is_page(response, text):
        title, content = _convert_page(response, text, args, _make_check(response, args, ctx, end))
    else:
        _refuse_binary(response, text)
        content = _escape_lines(text)
    kept = content.encode()[: args.max_bytes].decode(errors="ignore")
    return _to_output(response, title, kept, truncated=response.truncated or len(kept) < len(content))


def _fetch(args: WebfetchInput, ctx: ToolContext) -> Response:
    headers = {"accept": _ACCEPT[args.format]}
    try:
        return ctx.net.fetch(args.url, headers=headers, timeout=args.timeout_ms / 1000, max_bytes=args.max_bytes)
    except ToolFailed as error:
        if not error.details.get("timed_out") or args.timeout_ms == MAX_TIMEOUT_MS:
            raise
        message = f"{error.message}; timeout_ms may be up to {MAX_TIMEOUT_MS}"
        raise ToolFailed("NETWORK", message, timed_out=True) from None


def _make_check(response: Response, args: WebfetchInput, ctx: ToolContext, end: float) -> Callable[[], None]:
    """A function that raises if the call is over, or the time of this fetch is up."""

    def check() -> None:
        ctx.signal.check()
        if time.monotonic() > end:
            advice = "ask for fewer max_bytes"
            if args.timeout_ms < MAX_TIMEOUT_MS:
                advice += f", or raise timeout_ms (up to {MAX_TIMEOUT_MS})"
            message = (
                f"{response.final_url} has {len(response.body)} bytes, and converting them to {args.format} "
                f"took longer than the {args.timeout_ms / 1000:g} s of this fetch; {advice}"
            )
            raise ToolFailed("NETWORK", message, timed_out=True)

    return check


def _media_type(response: Response) -> str:
    return response.content_type.partition(";")[0].strip().lower()


def _shown_type(response: Response) -> str:
    return escape_hidden(response.content_type[:_MAX_TYPE])


def _attach(response: Response, media: Media, ctx: ToolContext) -> WebfetchOutput:
    size = len(response.body)
    if response.truncated:
        way_out = f"; max_bytes may be up to {MAX_BYTES}" if size < MAX_BYTES else ", too large to attach"
        message = f"{response.final_url} ({media.media_type}) has more than {size} bytes{way_out}"
        raise ToolFailed("TOO_LARGE", message, final_url=response.final_url, status=response.status)
    data, name = base64.b64encode(response.body).decode(), urlsplit(response.final_url).path.rpartition("/")[2]
    ctx.attach(ContentBlock(media.block, media.media_type, data=data, filename=escape_hidden(name) or None))
    return _to_output(response, None, "", truncated=False, media_type=media.media_type)


def _to_output(
    response: Response, title: str | None, content: str, *, truncated: bool, **media_type: str
) -> WebfetchOutput:
    return WebfetchOutput(
        url=response.url,
        final_url=response.final_url,
        status=response.status,
        content_type=_shown_type(response),
        title=title,
        content=content,
        truncated=truncated,
        bytes=len(response.body),
        **media_type,
    )


def _declared_charset(body: bytes) -> str:
    """The charset that a page declares near its start; a declaration readable as ASCII is never UTF-16."""
    found = _DECLARED.search(body[:_DECLARED_WITHIN])
    name = "" if found is None else (found[1] or found[2]).decode("ascii", "ignore")
    return "" if name.lower().startswith("utf-16") else name


def _is_page(response: Response, text: str) -> bool:
    media_type = _media_type(response)
    return media_type in ("text/html", _XHTML) or (not media_type and _PAGE.match(text) is not None)


def _convert_page(
    response: Response, text: str, args: WebfetchInput, check: Callable[[], None]
) -> tuple[str | None, str]:
    """Title and content; the content may be slightly longer than ``max_bytes``."""
    # Loaded with the first page: every toolkit has this tool, but few calls use it.
    from toolkit.builtin.web.html import Page, to_html
    from toolkit.builtin.web.markdown import to_markdown, to_text

    page = Page(text, response.final_url, is_xml=_media_type(response) == _XHTML, check=check)
    if args.format == "html":
        content = to_html(page.events(), args.max_bytes)
    else:
        content = (to_text if args.format == "text" else to_markdown)(page.events(), args.max_bytes, check)
    return page.title, content


def _refuse_binary(response: Response, text: str) -> None:
    """Refuse a response that is not text; undecodable bytes count as text unless there is a NUL."""
    if "\0" not in text[:_HEAD] and not _NOT_TEXT.match(_media_type(response)):
        return
    what = _shown_type(response) or "content without a type"
    more = "more than " if response.truncated else ""
    message = (
        f"{response.final_url} is not text but {what} ({more}{len(response.body)} bytes, status {response.status})"
    )
    raise ToolFailed(
        "BINARY_NOT_SUPPORTED", message, final_url=response.final_url, status=response.status, size=len(response.body)
    )


def _escape_lines(text: str) -> str:
    """Text as it was sent, with uniform line ends and everything invisible escaped."""
    return escape_hidden(text.replace("\r\n", "\n").replace("\r", "\n"), kept="\t\n")


def text(output: WebfetchOutput) -> str:
    rows = [f"[{'; '.join(notes)}]"] if (notes := _notes(output)) else []
    if output.media_type is not None:
        rows.append(f"[attached: {output.media_type}, {output.bytes} bytes]")
    elif output.content.strip():
        rows.append(output.content)
    elif output.bytes:
        rows.append(f"[no text in {output.bytes} bytes; pages built by scripts are empty, because scripts are not run]")
    else:
        rows.append("[empty response]")
    if output.truncated:
        way_out = f"max_bytes may be up to {MAX_BYTES}" if output.bytes < MAX_BYTES else "more cannot be read"
        rows.append(f"[cut at max_bytes; {way_out}]")
    return "\n".join(rows)


def _notes(output: WebfetchOutput) -> list[str]:
    """What the content does not show: an unusual status, another URL, a title."""
    notes = [] if output.status == 200 else [f"status {output.status}"]
    if _comparable(output.url) != _comparable(output.final_url):
        notes.append(f"now at {output.final_url}")
    if output.title is not None and output.title not in output.content[:_TITLE_WITHIN]:
        notes.append(f"title: {output.title}")
    return notes


def _comparable(url: str) -> str:
    return url.partition("#")[0].rstrip("/").lower()
