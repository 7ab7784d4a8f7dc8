"""Where links and images on a page lead, as addresses that can be fetched from anywhere."""

from __future__ import annotations

import re
from typing import Final

from toolkit.visible import to_one_line

_MAX_ADDRESS: Final = 8192
_SCHEME: Final = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*):")
_LED_TO: Final = frozenset({"http", "https", "mailto", "tel"})
_PARTS: Final = re.compile(r"(https?:)(//[^/?#]*)([^?#]*)")
# What would end an address, or open something, in the text around it.
_UNSAFE: Final = {ord(letter): f"%{ord(letter):02X}" for letter in ' "<>\\^`{|}'}


class Base:
    """The address of a page, taken apart once: a page may have more links than its address has letters."""

    def __init__(self, url: str) -> None:
        found = _PARTS.match(url)
        self._scheme, self._host, path = found.groups() if found else ("", "", "")
        self._path = path
        self._folder = path[: path.rfind("/") + 1] or "/"

    def whole(self, reference: str) -> str:
        """The address ``reference`` means on this page; empty where it leads nowhere that a reader could go.

        That is a place on the page itself, a script, data written out in it, or no address at all.
        Limit: ``..`` counts at the beginning only; elsewhere it is left to the server.

        >>> Base("http://example.org/x/y").whole("../b c")
        'http://example.org/b%20c'
        """
        if not 0 < len(reference) <= _MAX_ADDRESS:
            return ""
        reference = to_one_line(reference)
        if not reference or reference.startswith("#"):
            return ""
        scheme = _SCHEME.match(reference)
        if scheme is not None:
            address = reference if scheme[1].lower() in _LED_TO else ""
        elif reference.startswith("//"):
            address = f"{self._scheme}{reference}"
        elif reference.startswith("/"):
            address = f"{self._scheme}{self._host}{reference}"
        elif reference.startswith("?"):
            address = f"{self._scheme}{self._host}{self._path or '/'}{reference}"
        else:
            address = f"{self._scheme}{self._host}{self._below(reference)}"
        return address.translate(_UNSAFE) if len(address) <= _MAX_ADDRESS else ""

    def _below(self, reference: str) -> str:
        """The path of what is named from this page's folder on."""
        at, end = 0, len(self._folder)
        while True:
            if reference.startswith("./", at):
                at += 2
            elif reference.startswith("../", at):
                at, end = at + 3, self._above(end)
            elif reference[at:] in (".", ".."):
                return self._folder[: end if reference[at:] == "." else self._above(end)]
            else:
                return self._folder[:end] + reference[at:]

    def _above(self, end: int) -> int:
        """Where the folder above the one that ends there ends; the root is above itself."""
        return max(self._folder.rfind("/", 0, end - 1) + 1, 1)
