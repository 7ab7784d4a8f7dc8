"""Where in a TOML text the value of a JSON pointer is."""

from __future__ import annotations

from toolkit.schema.places import PlaceTable
from toolkit.schema.problems import pointer_of
from toolkit.toml_places import TomlMistake, TomlPlaces


def find_in_toml(text: str, places: PlaceTable) -> None:
    """Records tables at their headers, and keys where they are set, also inside inline tables."""
    try:
        _, found = TomlPlaces.read(text)
    except (TomlMistake, RecursionError):
        return  # that is the finding, and it has its own place
    for path, place in found.items():
        places.record(pointer_of(path), *place)
