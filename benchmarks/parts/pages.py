"""Converting a one-megabyte page as ``webfetch`` does, compared with tokenizing only and with ``html.parser``."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from typing import Final

from benchmarks import REPOSITORY
from benchmarks.results import Row, Table
from benchmarks.timing import least_cpu
from toolkit.builtin.web.html import Page, to_html, tokens
from toolkit.builtin.web.markdown import to_markdown, to_text

SIZE: Final = 1_000_000
URL: Final = "https://example.org/dir/page"
ARTICLE: Final = REPOSITORY / "tests" / "builtin" / "pages" / "article.html"
BASE: Final = "html.parser, without handlers"
MARKDOWN: Final = "Markdown"


def measure(*, full: bool) -> Iterator[Table]:
    page = make_page(SIZE if full else SIZE // 50)
    contenders: dict[str, Callable[[], object]] = {
        BASE: lambda: HTMLParser().feed(page),
        "tags and texts only": lambda: deque(tokens(page), maxlen=0),
        MARKDOWN: lambda: to_markdown(Page(page, URL).events(), 2 * SIZE),
        "text": lambda: to_text(Page(page, URL).events(), 2 * SIZE),
        "clean HTML": lambda: to_html(Page(page, URL).events(), 2 * SIZE),
    }
    best = least_cpu(contenders, rounds=5 if full else 1)
    size = len(page.encode()) / 1e6
    rows = [
        Row(name, size / (time / 1e9), "MB/s", time / best[BASE], BASE, ours=name != BASE)
        for name, time in best.items()
    ]
    title = f"A page of {size:.1f} MB, {len(list(tokens(page))):,} tags and texts (the ratio is of times)"
    yield Table("page", title, tuple(rows))


def make_page(size: int) -> str:
    """A real article whose main part is repeated."""
    head, _, rest = ARTICLE.read_text().partition("<main")
    main, _, foot = rest.partition("</main>")
    return f"{head}{f'<main{main}</main>' * max(1, size // len(main))}{foot}"
