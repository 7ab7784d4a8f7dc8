"""Acme's tools and one added tool."""

from __future__ import annotations

from typing import Final

from acme.tools.pictures import describe_picture

from acme.generated import bind
from acme.tools.handlers import add, count_words, fail, hold, shout
from acme.tools.imported_handlers import find_book, lend_book, search_shapes

ACME: Final = bind(
    add=add,
    count_words=count_words,
    describe_picture=describe_picture,
    fail=fail,
    hold=hold,
    library_find=find_book,
    library_lend_book=lend_book,
    shapes_search=search_shapes,
    shout=shout,
)
