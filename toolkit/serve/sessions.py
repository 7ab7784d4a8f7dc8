"""Long outputs as resources: what a tool's text shows only in part can be read whole, by lines."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, quote, unquote

from mcp_types import (
    INVALID_PARAMS,
    BlobResourceContents,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)

from toolkit.errors import ToolkitError

if TYPE_CHECKING:
    from toolkit.runtime.output.cache.cached_output import CachedOutput
    from toolkit.runtime.stores.outputs import OutputCache
    from toolkit.wire.content import ContentBlock

_SCHEME: Final = "toolkit-output:///"
_URI: Final = re.compile(rf"{re.escape(_SCHEME)}([^?#]+)(?:\?([^#]*))?\Z")
_MAX_BYTES: Final = 128 * 1024
"""How much of an output one answer holds: escaped as JSON, still less than the megabyte that the official client takes over
HTTP. The rest is read by line numbers."""
_MAX_BLOCK_BYTES: Final = 700 * 1024
"""The same for an output of media, which have no lines. Base64 needs no escapes."""
_MAX_LISTED: Final = 100

TEMPLATE: Final = ResourceTemplate(
    uri_template=f"{_SCHEME}{{ref}}{{?offset,limit}}",
    name="kept output",
    description="The whole output of a call whose answer was cut. `offset` is the first line, from 1; `limit` counts lines.",
)


class NoSuchOutput(Exception):
    """A URI that names no kept output of this session."""

    code: Final = INVALID_PARAMS


def output_uri(ref: str) -> str:
    """The address of a kept output."""
    return f"{_SCHEME}{quote(ref, safe='')}"


class KeptOutputs:
    """The outputs of one session that a client can list: the last ones whose answers were cut."""

    def __init__(self) -> None:
        self._names: OrderedDict[str, str] = OrderedDict()

    def add(self, ref: str, tool_name: str) -> None:
        self._names[ref] = tool_name
        while len(self._names) > _MAX_LISTED:
            self._names.popitem(last=False)

    def list(self) -> list[Resource]:
        """The newest first."""
        return [
            Resource(uri=output_uri(ref), name=f"whole output of {name}", mime_type="text/plain")
            for ref, name in reversed(self._names.items())
        ]


def read_output(uri: str, cache: OutputCache, session_id: str) -> ReadResourceResult:
    """One kept output, or a part of it. Refs of other sessions do not exist here."""
    match = _URI.match(uri)
    if match is None:
        raise NoSuchOutput(f"unknown resource {uri!r}; the resources of this server are {TEMPLATE.uri_template}")
    offset, limit = _lines_wanted(match[2] or "")
    try:
        with cache.open(session_id, unquote(match[1])) as kept:
            if blocks := kept.blocks():
                return ReadResourceResult(contents=list(_block_contents(uri, blocks)))
            return ReadResourceResult(contents=_text_contents(uri.partition("?")[0], kept, offset, limit))
    except ToolkitError as error:
        raise NoSuchOutput(error.message) from None


def _lines_wanted(query: str) -> tuple[int, int | None]:
    given = dict(parse_qsl(query, keep_blank_values=True))
    numbers = {name: value for name, value in given.items() if name in ("offset", "limit")}
    wrong = [
        name for name, value in given.items() if name not in numbers or not re.fullmatch(r"[1-9][0-9]{0,8}", value)
    ]
    if wrong:
        raise NoSuchOutput(f"{wrong[0]!r} is wrong; write ?offset=LINE&limit=LINES with whole numbers from 1")
    return int(numbers.get("offset", 1)), int(numbers["limit"]) if "limit" in numbers else None


def _text_contents(
    uri: str, kept: CachedOutput, offset: int, limit: int | None
) -> list[TextResourceContents | BlobResourceContents]:
    """The lines, as many as fit; then where to go on. Of a line that does not fit, its beginning."""
    last = kept.total_lines if limit is None else min(kept.total_lines, offset + limit - 1)
    start, end = kept.start_of(offset), kept.start_of(last + 1)
    data = b"".join(_take(kept, start, min(end, start + _MAX_BYTES)))
    note = ""
    if start + len(data) < end:
        whole = data.count(b"\n")
        data = data[: data.rindex(b"\n") + 1] if whole else data
        following = offset + max(whole, 1)
        cut = "" if whole else f"the rest of line {offset} is too long to be shown; "
        note = f"[{cut}read {uri}?offset={following} for the lines from {following} to {kept.total_lines}]"
    contents: list[TextResourceContents | BlobResourceContents] = [
        TextResourceContents(uri=uri, mime_type=kept.media_type or "text/plain", text=data.decode(errors="replace"))
    ]
    if note:
        contents.append(TextResourceContents(uri=uri, mime_type="text/plain", text=note))
    return contents


def _take(kept: CachedOutput, start: int, end: int) -> Iterator[bytes]:
    for chunk in kept.chunks(start):
        yield chunk[: end - start]
        start += len(chunk)
        if start >= end:
            return


def _block_contents(
    uri: str, blocks: tuple[ContentBlock, ...]
) -> Iterator[TextResourceContents | BlobResourceContents]:
    """Texts and media, as far as they fit; what does not is named with its size."""
    room = _MAX_BLOCK_BYTES
    for block in blocks:
        kind, size = block.media_type or "text/plain", len(block.text or block.data or "")
        if size > room:
            note = f"[{block.type} of {size} bytes, too large for one answer: call the tool again for a smaller part]"
            yield TextResourceContents(uri=uri, mime_type="text/plain", text=note)
            continue
        room -= size
        if block.text is not None:
            yield TextResourceContents(uri=uri, mime_type=kind, text=block.text)
        elif block.data is not None:
            yield BlobResourceContents(uri=uri, mime_type=block.media_type, blob=block.data)
