"""Where the keys of a TOML file are: every key and item of what ``tomllib`` reads has a place, and it is the right one."""

from __future__ import annotations

import pytest

from toolkit.toml_places import KeyPath, TomlMistake, TomlPlaces

TRICKY = '''\
# a comment with [[brackets]] = and "quotes
top = 1
"quoted \\u00e9.key" = """
[not.a.table]
""" # after
  'literal.key'   = \'\'\'it's\'\'\'
dotted . "and" .spaced = { inline = [ 1, { x = "]}" } ], y = 1979-05-27 07:32:00 }
list = [
    "a,b", # comment ]
    [ "nested" ],
]

[table.sub]
key = '#'

[[rules]]
decision = "deny"
[rules.more]
deep = true
[[rules]]
  path = "x"
[[rules.items]]
n = 1.5
[[rules.items]]
n = -inf
'''
EXPECTED: dict[KeyPath, tuple[int, int]] = {
    ("top",): (2, 1),
    ("quoted é.key",): (3, 1),
    ("literal.key",): (6, 3),
    ("dotted", "and", "spaced"): (7, 1),
    ("dotted", "and", "spaced", "inline", 1, "x"): (7, 44),
    ("dotted", "and", "spaced", "y"): (7, 58),
    ("list", 1, 0): (10, 7),
    ("table", "sub", "key"): (14, 1),
    ("rules", 0): (16, 1),
    ("rules", 0, "more", "deep"): (19, 1),
    ("rules", 1, "path"): (21, 3),
    ("rules", 1, "items", 1, "n"): (25, 1),
}


def paths(value: object, above: KeyPath = ()) -> list[KeyPath]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path for key, item in items for path in ((*above, key), *paths(item, (*above, key)))]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_every_key_has_its_place(end: str) -> None:
    data, places = TomlPlaces.read(TRICKY.replace("\n", end))
    assert {path: places.find(path) for path in EXPECTED} == EXPECTED
    assert [path for path in paths(data) if path not in places._places] == []


def test_what_has_no_place_is_at_what_holds_it() -> None:
    _, places = TomlPlaces.read("\na = 1\n")
    assert (places.find(("a", "b")), places.find(("c",))) == ((2, 1), (1, 1))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = ", ("not valid TOML: invalid value; put text in quotes", 1, 5)),
        ('a = "x', ("not valid TOML: unterminated string", 1, 7)),
        ("a = 1\n  a = 2", ("this key is given twice; keep one of them", 2, 3)),
        ("[a]\n[a]", ("this table is declared twice; join the two", 2, 1)),
    ],
)
def test_mistakes_have_places(text: str, expected: tuple[str, int, int]) -> None:
    with pytest.raises(TomlMistake) as caught:
        TomlPlaces.read(text)
    assert (str(caught.value), caught.value.line, caught.value.column) == expected
