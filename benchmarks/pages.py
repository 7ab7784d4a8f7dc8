"""Converting a one-megabyte page as ``webfetch`` does, compared with tokenizing only and with ``html.parser``."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

from benchmarks.measure import least_cpu
from toolkit.builtin.web.html import to_html
from toolkit.builtin.web.markdown import to_markdown, to_text
from toolkit.builtin.web.page_events import Page
from toolkit.builtin.web.tokens import tokens

SIZE = 1_000_000
URL = "https://example.org/dir/page"
ARTICLE = Path(__file__).parents[1] / "tests" / "builtin" / "pages" / "article.html"


def report() -> str:
    article = ARTICLE.read_text()
    head, _, rest = article.partition("<main")
    main, _, foot = rest.partition("</main>")
    page = f"{head}{f'<main{main}</main>' * (SIZE // len(main))}{foot}"
    contenders: dict[str, Callable[[], object]] = {
        "Markdown": lambda: to_markdown(Page(page, URL).events(), 2 * SIZE),
        "text": lambda: to_text(Page(page, URL).events(), 2 * SIZE),
        "clean HTML": lambda: to_html(Page(page, URL).events(), 2 * SIZE),
        "tags and texts only": lambda: deque(tokens(page), maxlen=0),
        "html.parser, without handlers": lambda: HTMLParser().feed(page),
    }
    best = least_cpu(contenders, rounds=5, calls=1)
    size = len(page.encode()) / 1e6
    rows = [f"  {name:<52} {size / (nanoseconds / 1e9):>12.2f} MB/s" for name, nanoseconds in best.items()]
    return "\n".join([f"A page of {size:.1f} MB, {len(list(tokens(page))):,} tags and texts", *rows])
