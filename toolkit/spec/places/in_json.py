"""Where in a JSON text the value of a JSON pointer is."""

from __future__ import annotations

import json
import re
from functools import partial
from typing import Final

from toolkit.schema.places import Cursor, Lines, PlaceTable
from toolkit.schema.problems import ODD_KEY

_TOKEN: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"|[{}\[\]]|[^\s{}\[\],:"]++', re.DOTALL)


def find_in_json(text: str, places: PlaceTable) -> None:
    cursor, lines = Cursor(places), Lines(text)
    for match in _TOKEN.finditer(text):
        token, place = match.group(), lines.place(match.start())
        if token in ("]", "}"):
            cursor.close()
        elif token in ("[", "{"):
            cursor.open(token == "{", *place)
        else:
            cursor.scalar(partial(_read_string, token), *place)


def _read_string(token: str) -> str:
    try:
        value = json.loads(token)
    except ValueError:
        return ODD_KEY
    return value if isinstance(value, str) else ODD_KEY
