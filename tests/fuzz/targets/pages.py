"""Pages of the web, as Markdown, text and clean HTML."""

from __future__ import annotations

from toolkit.builtin.web.html import Page, to_html
from toolkit.builtin.web.markdown import to_markdown, to_text

URL = "http://site.test/dir/page"
ROOM = 1 << 20


def check_page(data: bytes) -> None:
    """Every page gives all three forms; clean HTML stays as it is when it is cleaned again, and has no scripts."""
    page = data.decode(errors="replace")
    for is_xml in (False, True):
        clean = to_html(Page(page, URL, is_xml=is_xml).events(), ROOM)
        assert to_html(Page(clean, URL).events(), ROOM) == clean, "cleaned again, it is another page"
        assert "<script" not in clean.lower() and "<style" not in clean.lower(), "a script is left"
        for convert in (to_markdown, to_text):
            written = convert(Page(page, URL, is_xml=is_xml).events(), ROOM)
            assert not any(0xD800 <= ord(letter) <= 0xDFFF for letter in written), "no text that can be sent"
            assert len(written) <= 64 * len(page) + 64, "a page does not grow without end"
