"""Acme's tools, and one more."""

from __future__ import annotations

from typing import Final

from acme.tools.pictures import describe_picture

from acme.generated import bind
from acme.tools.handlers import add, count_words, fail, hold, shout

ACME: Final = bind(
    add=add, count_words=count_words, describe_picture=describe_picture, fail=fail, hold=hold, shout=shout
)
