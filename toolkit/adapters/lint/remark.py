"""One thing a provider does to a tool's definition."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeAlias

Effect: TypeAlias = Literal["refused", "renamed", "not strict", "moved", "lost", "reshaped", "loosened"]
"""``refused``: a request with it fails. ``renamed``: another name is sent, which the toolkit maps back. ``not strict``:
strict mode cannot carry it, so it is sent without. ``moved``: only in the description. ``lost``: not sent at all.
``reshaped``: requested in another form, and turned back. ``loosened``: the provider lets more pass than the schema allows,
until the tool itself checks."""

SCHEMA: Final = "/inputSchema"


class Remark(NamedTuple):
    """What becomes of one place of a definition; ``pointer`` leads into the tool's spec."""

    effect: Effect
    pointer: str
    message: str


def quote(word: str) -> str:
    """A keyword or a name inside a message: quoted, on one line, of bounded length."""
    return repr(word if len(word) <= 80 else f"{word[:80]}...")
