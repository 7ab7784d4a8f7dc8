"""Acme's tools: specs beside their handlers."""

from __future__ import annotations

from typing import Final

from acme.generated import bind
from acme.tools.handlers import add, count_words, fail, hold, shout

ACME: Final = bind(add=add, count_words=count_words, fail=fail, hold=hold, shout=shout)
