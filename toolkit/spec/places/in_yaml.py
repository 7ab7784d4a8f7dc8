"""Where in a YAML text the value of a JSON pointer is."""

from __future__ import annotations

from functools import partial

from toolkit.schema.places import Cursor, PlaceTable
from toolkit.schema.problems import ODD_KEY
from toolkit.schema.spec_text import shield_line_ends


def find_in_yaml(text: str, places: PlaceTable) -> None:
    import yaml

    cursor = Cursor(places)
    try:
        shielded, restore = shield_line_ends(text)
        for event in yaml.parse(shielded, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            place = (event.start_mark.line + 1, event.start_mark.column + 1)
            if isinstance(event, yaml.CollectionStartEvent):
                cursor.open(isinstance(event, yaml.MappingStartEvent), *place)
            elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
                cursor.close()
            elif isinstance(event, yaml.ScalarEvent):
                cursor.scalar(partial(event.value.translate, restore), *place)
            elif isinstance(event, yaml.AliasEvent):
                cursor.scalar(lambda: ODD_KEY, *place)
    except Exception:  # the pure-Python scanner raises several types; the places found so far are right
        return
