"""Names of nested types: what a person would call them. One table row is a schema and the classes it becomes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import Any

import pytest

from tests.modules import documents, load_module, module_text
from tests.projects import REPOSITORY

Json = dict[str, Any]


def thing(*fields: str, **keys: Any) -> Json:
    """An object with these required texts. Types of one schema have different fields: equal ones would be one class."""
    return {
        "type": "object",
        "properties": {key: {"type": "string"} for key in fields},
        "required": list(fields),
        **keys,
    }


def tagged(tag: str, *fields: str, key: str = "type", **keys: Any) -> Json:
    made = thing(key, *fields, **keys)
    made["properties"][key] = {"const": tag}
    return made


def holding(field: str, schema: Json, *fields: str) -> Json:
    made = thing(*fields)
    made["properties"][field] = schema
    return made


def many(schema: Json) -> Json:
    return {"type": "array", "items": schema}


def by_key(schema: Json) -> Json:
    return {"type": "object", "additionalProperties": schema}


def either(*branches: Json) -> Json:
    return {"anyOf": list(branches)}


def names(properties: Json, **keys: Any) -> list[str]:
    """What follows ``XInput`` in the names of the types, in alphabetical order."""
    inputs, _ = documents({"type": "object", "properties": properties, **keys})
    found = sorted([*inputs.objects, *inputs.aliases])
    assert all(name.startswith("XInput") for name in found)
    return [name.removeprefix("XInput") for name in found]


NULL: Json = {"type": "null"}
SHORT: Json = {"type": "string", "maxLength": 9}
ROWS: dict[str, tuple[Json, list[str]]] = {
    "a property": ({"filter": thing("a")}, ["Filter"]),
    "an item of a list": ({"matches": many(thing("a"))}, ["Match"]),
    "an item of a list without a plural": ({"content": many(thing("a"))}, ["ContentItem"]),
    "a list of lists": ({"rows": many(many(thing("a")))}, ["RowItem"]),
    "irregular plurals": (
        {"children": many(thing("a")), "people": many(thing("b")), "indices": many(thing("c")), "axes": many(thing("d"))},
        ["Axis", "Child", "Index", "Person"],
    ),
    "words that only look like plurals": (
        {"series": many(thing("a")), "status": many(thing("b")), "address": many(thing("c"))},
        ["AddressItem", "SeriesItem", "StatusItem"],
    ),
    "plurals with an e": (
        {"sizes": many(thing("a")), "caches": many(thing("b")), "movies": many(thing("c")), "databases": many(thing("d"))},
        ["Cache", "Database", "Movie", "Size"],
    ),
    "a value of a map": ({"users": by_key(thing("a")), "by_key": by_key(thing("b"))}, ["ByKeyValue", "User"]),
    "or null": ({"filter": either(thing("a"), NULL)}, ["Filter"]),
    "the only object of a union": ({"filter": either(thing("a"), {"type": "string"}, NULL)}, ["Filter"]),
    "an object or a list of others": ({"filter": either(thing("a"), many(thing("b")))}, ["Filter", "FilterItem"]),
    "a type with a limit": ({"tags": many(SHORT)}, ["Tag"]),
    "one type of several with a limit": ({"place": either(SHORT, thing("a"))}, ["Place", "PlaceString"]),
    "a title": ({"filter": thing("a", title="Search options")}, ["SearchOptions"]),
    "a title that is a sentence": ({"filter": thing("a", title="The filter that the search uses")}, ["Filter"]),
    "a title that says nothing": ({"filter": thing("a", title="object")}, ["Filter"]),
    "a title in other letters": ({"filter": thing("a", title="筛选")}, ["Filter"]),
    "tags": (
        {"operations": many(either(tagged("insert_text", "a"), tagged("delete_text", "b")))},
        ["DeleteText", "InsertText", "Operation"],  # the union itself is a type, which shows its tag
    ),
    "a tag under any name, beside a constant that all share": (
        {
            "steps": many(
                either(
                    {**(one := tagged("go", "kind", key="op")), "properties": {**one["properties"], "kind": {"const": "v1"}}},
                    {**(two := tagged("stop", "kind", key="op")), "properties": {**two["properties"], "kind": {"const": "v1"}}},
                )
            )
        },
        ["Go", "Step", "Stop"],
    ),
    "titles before tags": (
        {"operation": either(tagged("i", title="Insert"), tagged("d", "b", title="Delete"))},
        ["Delete", "Insert"],
    ),
    "tags, where all have one title": (
        {"operation": either(tagged("i", title="Operation"), tagged("d", "b", title="Operation"))},
        ["D", "I"],
    ),
    "a constant of an object that stands alone is no tag": ({"filter": tagged("simple", "a")}, ["Filter"]),
    "a property that only one of them has": (
        {"comments": many(either(thing("body", "line"), thing("body", "position")))},
        ["CommentWithLine", "CommentWithPosition"],
    ),
    "one of them has no property of its own": ({"user": either(thing("id"), thing("id", "name"))}, ["User", "UserWithName"]),
    "nothing tells them apart": (
        {"user": either(thing("id"), holding("id", {"type": "integer"}), holding("id", {"type": "boolean"}))},
        ["User", "User2", "User3"],
    ),
    "the shortest name": ({"filter": holding("range", thing("a"))}, ["Filter", "Range"]),
    "a word that says nothing alone": ({"filter": holding("options", thing("a"))}, ["Filter", "FilterOptions"]),
    "two places with one word": (
        {"filter": holding("range", thing("a")), "sort": holding("range", thing("b"))},
        ["Filter", "Range", "Sort", "SortRange"],
    ),
    "the one closer to the root": (
        {"filter": holding("range", thing("a")), "range": thing("b")},
        ["Filter", "FilterRange", "Range"],
    ),
    "one tag in two unions": (
        {"source": either(tagged("file", "a"), tagged("url", "b")), "target": either(tagged("file", "c"), tagged("url", "d"))},
        ["File", "TargetFile", "TargetUrl", "Url"],
    ),
    "a property and a list of that": (
        {"columns": many(thing("a")), "column": thing("b")},
        ["Column", "ColumnItem"],
    ),
    "a type inside a type of that name": (
        {"children": many(holding("children", many(holding("children", many(thing("a")), "b"))))},
        ["Child", "ChildChild", "ChildChildChild"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("row", ROWS)
def test_a_type_is_named_as_a_person_would(row: str) -> None:
    properties, expected = ROWS[row]
    assert names(properties) == expected


DEFINITIONS = {
    "tree-node": ["TreeNode"],
    "acme.api.v1.Pet": ["Pet"],
    "app__models__Pet": ["Pet"],
    "Pet.Info": ["PetInfo"],
    "Pet_Input": ["PetInput"],
    "__schema0": ["Place"],
    "model": ["Place"],
    "größe": ["Größe"],
    "#": ["Place"],
}


@pytest.mark.parametrize("key", DEFINITIONS)
def test_a_definition_gives_its_name(key: str) -> None:
    assert names({"place": {"$ref": f"#/$defs/{key}"}}, **{"$defs": {key: thing("a")}}) == DEFINITIONS[key]
    nullable = {"anyOf": [thing("a"), NULL]}
    assert names({"place": {"$ref": f"#/definitions/{key}"}}, definitions={key: nullable}) == DEFINITIONS[key]


def test_a_definition_keeps_its_name_and_the_property_gives_way() -> None:
    found = names({"range": thing("a"), "other": {"$ref": "#/$defs/Range"}}, **{"$defs": {"Range": thing("b")}})
    assert found == ["Range", "Range2"]


def test_a_definition_that_is_named_after_its_tool_does_not_say_it_twice() -> None:
    found = names({"body": {"$ref": "#/$defs/XRequest"}}, **{"$defs": {"XRequest": thing("a")}})
    assert found == ["Request"]


def test_what_a_title_calls_a_generated_definition() -> None:
    found = names({"place": {"$ref": "#/$defs/schema1"}}, **{"$defs": {"schema1": thing("a", title="Postal address")}})
    assert found == ["PostalAddress"]


def test_a_name_is_lengthened_only_to_sixty_characters() -> None:
    inner = "a_property_with_a_rather_long_name"
    schema = holding(inner, holding("range", thing("a")))
    found = names({"range": thing("b"), "between_the_first_and_the_last": schema})
    assert found == [
        "APropertyWithARatherLongName", "APropertyWithARatherLongNameRange", "BetweenTheFirstAndTheLast", "Range"
    ]  # fmt: skip
    taken = {"range": thing("b"), "aPropertyWithARatherLongNameRange": thing("c")}
    assert "BetweenTheFirstAndTheLastRange" in names({**taken, "between_the_first_and_the_last": schema})


def test_the_nested_classes_of_the_built_in_tools_keep_their_names() -> None:
    found = {
        name
        for file in (REPOSITORY / "generated" / "models").glob("*.py")
        for name in re.findall(r"^class (\w+(?:Input|Output)\w+)\(", file.read_text(), re.MULTILINE)
    }
    assert found >= {
        "ApplyPatchOutputFile", "GitStatusSummaryOutputChange", "GitStatusSummaryOutputCounts", "GrepOutputMatch",
        "ListOutputEntry", "TodoreadOutputCounts", "TodoreadOutputTodo", "TodowriteInputTodo", "TodowriteOutputCounts",
        "TodowriteOutputTodo", "ToolOutputCacheGrepOutputMatch", "TreeOutputNode",
    }  # fmt: skip


# -- hostile texts ----------------------------------------------------------------------------------------------------

HOSTILE = [
    "", "#", "3d", "class", "None", "__init__", "Input", "XInput", "ﬁle", "e\u0301", "日本", "a\nb", "\0", "'; import os", '"""',
    "a" * 300, "ª", "·", "\u2118", "\u0e33", "Ⅷ", "x\u200b", "TypedDict", "ToolModel", "..", "/", "~0~1", "%s", "{x}",
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("place", ["property", "title", "tag", "definition"])
def test_hostile_texts_become_names_of_classes(text: str, place: str) -> None:
    if place == "property":
        schema = {"properties": {text: thing("a"), "b": many(thing("c"))}}
    elif place == "title":
        schema = {"properties": {"a": thing("a", title=text), "b": thing("b", title=text)}}
    elif place == "tag":
        schema = {"properties": {"a": either(tagged(text, "a"), tagged("b", "b"))}}
    else:
        key = text.replace("~", "~0").replace("/", "~1")
        schema = {"properties": {"a": {"$ref": f"#/$defs/{key}"}}, "$defs": {text: thing("a")}}
    inputs, _ = documents({"type": "object", **schema})
    expected = 1 if place == "definition" else 2
    assert len(inputs.objects) == expected
    assert all(name.isidentifier() for name in inputs.objects)
    module = load_module(module_text({"type": "object", **schema}))
    assert all(hasattr(module, name) for name in inputs.objects)


def test_properties_with_one_word_become_two_classes() -> None:
    assert names({"a-b": thing("a"), "a_b": thing("b"), "aB": thing("c")}) == ["AB", "AB2", "AB3"]
    assert names({"#": thing("a"), "$": thing("b")}) == ["Field", "Field2"]


def test_a_number_is_not_taken_from_a_property_that_has_it() -> None:
    assert names({"a-b": thing("a"), "a_b": thing("b"), "ab2": thing("c"), "AB2": thing("d")}) == [
        "AB",
        "AB2",
        "AB3",
        "Ab2",
    ]


# -- stability ---------------------------------------------------------------------------------------------------------

GROWING: Json = {
    "filter": holding("range", thing("a")),
    "sort": holding("range", thing("b")),
    "operations": many(either(tagged("insert", "a"), tagged("delete", "b"))),
    "a-b": thing("c"),
    "a_b": thing("d"),
    "user": either(thing("id"), holding("id", {"type": "integer"})),
    "node": {"$ref": "#/$defs/node"},
}
NODE: Json = {"node": {**thing("z"), "properties": {"children": many({"$ref": "#/$defs/node"})}}}


def held_types(properties: Json) -> dict[str, object]:
    """By property: its flat node, which holds the names of its types."""
    inputs, _ = documents({"type": "object", "properties": properties, "$defs": NODE})
    return {key: inputs.root["properties"][key] for key in GROWING} | {
        name: inputs.objects[name] for name in sorted(inputs.objects) if name in BEFORE
    }


BEFORE = sorted(documents({"type": "object", "properties": GROWING, "$defs": NODE})[0].objects)


@pytest.mark.parametrize(
    "added",
    [
        {"later": thing("x")},
        {"later": holding("range", thing("x"))},
        {"later": holding("filter", holding("sort", holding("user", thing("x"))))},
        {"later": many(either(tagged("insert", "x"), tagged("replace", "y")))},
        {"a.b": thing("x")},
        {"later": {"type": "string"}},
        {"later": many(SHORT)},
    ],
)
def test_a_property_that_is_added_renames_nothing(added: Json) -> None:
    assert held_types({**GROWING, **added}) == held_types(GROWING)


def test_a_branch_that_is_added_renames_no_other() -> None:
    two = [tagged("insert", "a"), tagged("delete", "b")]
    assert names({"steps": many(either(*two))}) == ["Delete", "Insert", "Step"]
    assert names({"steps": many(either(*two, tagged("replace", "c")))}) == ["Delete", "Insert", "Replace", "Step"]


def test_types_below_the_root_do_not_change_when_the_output_does() -> None:
    first, _ = documents({"type": "object", "properties": GROWING, "$defs": NODE}, thing("a"))
    second, _ = documents(
        {"type": "object", "properties": GROWING, "$defs": NODE},
        {"type": "object", "properties": GROWING, "$defs": NODE},
    )
    assert first == second


@pytest.mark.whole  # test_generation.py does this with a package
@pytest.mark.slow
def test_names_do_not_depend_on_the_hash_seed() -> None:
    program = (
        "import json, sys\nfrom tests.modules import module_text\n"
        "schema = json.loads(sys.argv[1])\nprint(module_text(schema, schema))"
    )
    schema = json.dumps({"type": "object", "properties": GROWING, "$defs": NODE})
    texts = {
        subprocess.run(
            [sys.executable, "-c", program, schema],
            env={**os.environ, "PYTHONHASHSEED": seed}, check=True, capture_output=True, text=True,
        ).stdout
        for seed in ("0", "1", "2")
    }  # fmt: skip
    assert len(texts) == 1
