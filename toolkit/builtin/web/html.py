"""Writes page events as clean HTML; cleaning it again changes nothing."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from toolkit.builtin.web.elements import FORMATS
from toolkit.builtin.web.events import VOID, Event, Start


def to_html(events: Iterable[Event], room: int) -> str:
    """The events as HTML; stops when there are more than ``room`` characters."""
    pieces: list[str] = []
    for event in events:
        if isinstance(event, str):
            piece = escape(event, quote=False)
        elif isinstance(event, Start):
            attributes = "".join(f' {name}="{escape(value)}"' for name, value in event.attributes.items())
            piece = f"<{event.name}{attributes}>"
        else:
            piece = f"</{event.name}>"
        if not isinstance(event, str) and (event.name in VOID or not isinstance(event, Start)):
            # A line break between blocks has no meaning, and makes the HTML readable.
            piece += "" if event.name in FORMATS or event.name == "img" else "\n"
        pieces.append(piece)
        room -= len(piece)
        if room < 0:
            break
    return "".join(pieces).strip()
