"""Resolves links and image sources of a page to absolute URLs."""

from __future__ import annotations

import re
from typing import Final

from toolkit.visible import to_one_line

_MAX_ADDRESS: Final = 8192
_SCHEME: Final = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*):")
_SCHEMES: Final = frozenset({"http", "https", "mailto", "tel"})
_PARTS: Final = re.compile(r"(https?:)(//[^/?#]*)([^?#]*)")
# Characters that would end a URL, or have a meaning in the text around it.
_UNSAFE: Final = {ord(letter): f"%{ord(letter):02X}" for letter in ' "<>\\^`{|}'}


class BaseUrl:
    """The URL of a page, split once because a page may have very many links."""

    def __init__(self, url: str) -> None:
        found = _PARTS.match(url)
        self.has_host: Final = found is not None
        """Whether links can be resolved against it; ``mailto:`` and ``http:path`` have none."""
        self._scheme, self._host, path = found.groups() if found else ("", "", "")
        self._path = path
        self._folder = path[: path.rfind("/") + 1] or "/"

    def resolve(self, reference: str) -> str:
        """The absolute URL of ``reference``; empty if it is not one that a reader could open.

        That is an anchor on the page itself, a script, inline data, or not a URL at all.
        Limit: ``..`` is resolved only at the start; elsewhere it is left to the server.

        >>> BaseUrl("http://example.org/x/y").resolve("../b c")
        'http://example.org/b%20c'
        """
        if not 0 < len(reference) <= _MAX_ADDRESS:
            return ""
        reference = to_one_line(reference)
        if not reference or reference.startswith("#"):
            return ""
        scheme = _SCHEME.match(reference)
        if scheme is not None:
            address = reference if scheme[1].lower() in _SCHEMES else ""
        elif reference.startswith("//"):
            address = f"{self._scheme}{reference}"
        elif reference.startswith("/"):
            address = f"{self._scheme}{self._host}{reference}"
        elif reference.startswith("?"):
            address = f"{self._scheme}{self._host}{self._path or '/'}{reference}"
        else:
            address = f"{self._scheme}{self._host}{self._resolve_relative(reference)}"
        return address.translate(_UNSAFE) if len(address) <= _MAX_ADDRESS else ""

    def _resolve_relative(self, reference: str) -> str:
        """The path of a reference relative to the folder of this page."""
        at, end = 0, len(self._folder)
        while True:
            if reference.startswith("./", at):
                at += 2
            elif reference.startswith("../", at):
                at, end = at + 3, self._parent_end(end)
            elif reference[at:] in (".", ".."):
                return self._folder[: end if reference[at:] == "." else self._parent_end(end)]
            else:
                return self._folder[:end] + reference[at:]

    def _parent_end(self, end: int) -> int:
        """The end of the parent of the folder that ends at ``end``; the root is its own parent."""
        return max(self._folder.rfind("/", 0, end - 1) + 1, 1)
