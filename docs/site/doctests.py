"""Shows the examples of docstrings as code: the parser of this style of docstrings leaves them as plain text."""

from __future__ import annotations

import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"^>>> .*\n?(?:^(?!\s*$|:param |:returns?:|:raises ).*\n?)*", re.MULTILINE)


class Doctests(griffe.Extension):
    """A griffe extension; ``mkdocs.yml`` names this file."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring:
            obj.docstring.value = _EXAMPLE.sub(_as_code, obj.docstring.value)


def _as_code(found: re.Match[str]) -> str:
    return f"```pycon\n{found[0].rstrip()}\n```\n"
