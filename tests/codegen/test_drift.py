"""How changes of tools are classed: a table for the rules, and what a policy or a committed type would notice."""

from __future__ import annotations

from typing import Any

import pytest

from toolkit.codegen import DefinitionChange, find_changes

TEXT: dict[str, Any] = {"type": "string"}
COUNT: dict[str, Any] = {"type": "integer"}


def of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def closed(*required: str, **properties: Any) -> dict[str, Any]:
    return {**of(**properties), "required": list(required), "additionalProperties": False}


def told(old: dict[str, Any], new: dict[str, Any]) -> list[tuple[str, str, str]]:
    """The changes of one tool, as class, place and sentence."""
    base = {"name": "t", "inputSchema": {"type": "object"}}
    found = find_changes([{**base, **old}], [{**base, **new}])
    assert {change.tool for change in found} <= {"t"}
    return [(change.kind, change.pointer, change.sentence) for change in found]


INPUTS: list[tuple[str, dict[str, Any], dict[str, Any], list[tuple[str, str, str]]]] = [
    ("nothing", of(a=TEXT), of(a=TEXT), []),
    ("a new parameter", of(a=TEXT), of(a=TEXT, b=COUNT), [("widening", "/properties/b", "'b' is new")]),
    ("a new parameter of a closed object", closed(a=TEXT), closed(a=TEXT, b=COUNT), [("widening", "/properties/b", "'b' is new")]),
    ("a new one that is needed", of(a=TEXT), {**of(a=TEXT, b=COUNT), "required": ["b"]}, [("breaking", "/required", "'b' is required now"), ("widening", "/properties/b", "'b' is new")]),
    ("one that is gone", of(a=TEXT, b=COUNT), of(a=TEXT), [("breaking", "/properties/b", "'b' is no longer accepted")]),
    ("another name", of(a=TEXT), of(b=TEXT), [("breaking", "/properties/a", "'a' is no longer accepted"), ("widening", "/properties/b", "'b' is new")]),
    ("needed", of(a=TEXT), {**of(a=TEXT), "required": ["a"]}, [("breaking", "/required", "'a' is required now")]),
    ("no longer needed", closed("a", a=TEXT), closed(a=TEXT), [("widening", "/required", "'a' is no longer required")]),
    ("another type", of(a=TEXT), of(a=COUNT), [("breaking", "/properties/a/type", "the type was string, is now integer")]),
    ("a wider type", of(a=COUNT), of(a={"type": "number"}), [("widening", "/properties/a/type", "the type was integer, is now number")]),
    ("null as well", of(a=TEXT), of(a={"type": ["string", "null"]}), [("widening", "/properties/a/type", "the type was string, is now null or string")]),
    ("null in other words", of(a={"type": ["string", "null"]}), of(a={"anyOf": [TEXT, {"type": "null"}]}), [("compatible", "", "it is written differently and accepts the same values")]),
    ("a value gone", of(a={"enum": ["x", "y"]}), of(a={"enum": ["x"]}), [("breaking", "/properties/a/enum", '"y" no longer accepted')]),
    ("a value more", of(a={"enum": ["x"]}), of(a={"enum": ["x", "y"]}), [("widening", "/properties/a/enum", '"y" now also accepted')]),
    ("values that were a text", of(a=TEXT), of(a={"type": "string", "enum": ["x"]}), [("breaking", "/properties/a/enum", 'only "x" accepted now')]),
    ("values that are any text now", of(a={"type": "string", "enum": ["x", "y"]}), of(a=TEXT), [("widening", "/properties/a/enum", 'any value that fits the rest of the schema is accepted now, not only "x", "y"')]),
    ("one value for another", of(a={"enum": ["x", "y", None]}), of(a={"enum": ["x", "z"]}), [("breaking", "/properties/a/enum", '"y", null no longer accepted; "z" now also accepted')]),
    ("many values", of(a={"enum": [0]}), of(a={"enum": [*range(20)]}), [("widening", "/properties/a/enum", "1, 2, 3, 4, 5, 6, 7, 8 and 11 more now also accepted")]),
    ("a closer limit", of(a={**COUNT, "maximum": 10}), of(a={**COUNT, "maximum": 5}), [("breaking", "/properties/a/maximum", "'maximum' was 10, is now 5")]),
    ("a new limit", of(a=TEXT), of(a={**TEXT, "maxLength": 5}), [("breaking", "/properties/a/maxLength", "'maxLength' was absent, is now 5")]),
    ("a limit gone", of(a={**TEXT, "minLength": 5}), of(a=TEXT), [("widening", "/properties/a/minLength", "'minLength' was 5, is now absent")]),
    ("a limit in other words", of(a={**COUNT, "exclusiveMinimum": 0}), of(a={**COUNT, "minimum": 0}), [("widening", "/properties/a/exclusiveMinimum", "'exclusiveMinimum' was 0, is now absent")]),
    ("another pattern", of(a={**TEXT, "pattern": "a"}), of(a={**TEXT, "pattern": "b"}), [("breaking", "/properties/a/pattern", "'pattern' was \"a\", is now \"b\"")]),
    ("closed", of(a=TEXT), closed(a=TEXT), [("compatible", "", "it is written differently and accepts the same values")]),
    ("a map closed", {"type": "object", "additionalProperties": True}, {"type": "object", "additionalProperties": False}, [("breaking", "/additionalProperties", "'additionalProperties' was true, is now false")]),
    ("a map of texts", {"type": "object", "additionalProperties": {}}, {"type": "object", "additionalProperties": TEXT}, [("breaking", "/additionalProperties", "'additionalProperties' was {}, is now {\"type\": \"string\"}")]),
    ("a free object that names something", {"type": "object"}, of(a=TEXT), [("breaking", "/properties/a/type", "the type was anything, is now string")]),
    ("items", of(a={"type": "array", "items": TEXT}), of(a={"type": "array", "items": COUNT}), [("breaking", "/properties/a/items/type", "the type was string, is now integer")]),
    ("deep below", of(a=of(b=of(c=TEXT))), of(a=of(b=of(c=TEXT, d=TEXT))), [("widening", "/properties/a/properties/b/properties/d", "'d' is new")]),
    ("descriptions", of(a={**TEXT, "description": "x"}), of(a={**TEXT, "title": "X", "default": "z", "x-more": 1}), [("compatible", "", "it is written differently and accepts the same values")]),
    ("a not", of(a={"not": TEXT}), of(a={"not": COUNT}), [("breaking", "/properties/a/not", "'not' was {\"type\": \"string\"}, is now {\"type\": \"integer\"}")]),
    ("a not that is gone", of(a={"not": TEXT}), of(a={}), [("widening", "/properties/a/not", "'not' was {\"type\": \"string\"}, is now absent")]),
    ("a condition", of(a={"if": TEXT, "then": {"minLength": 1}}), of(a={"if": TEXT, "then": {"minLength": 2}}), [("breaking", "/properties/a/if", "'if' was {\"type\": \"string\"}, is now {\"type\": \"string\"}")]),
    ("a word nobody knows", of(a={**TEXT, "nullable": True}), of(a={**TEXT, "nullable": False}), [("breaking", "/properties/a/nullable", "'nullable' was true, is now false")]),
    ("one of two, told apart by type", of(a={"oneOf": [TEXT, COUNT]}), of(a={"oneOf": [TEXT, COUNT, {"type": "null"}]}), [("widening", "/properties/a/oneOf", "'oneOf' was [{\"type\": \"string\"}, {\"type\": \"integer\"}], is now [{\"type\": \"string\"}, {\"type\": \"integer\"}, {\"type\": \"null\"}]")]),
    ("one of two, never told apart", of(a={"oneOf": [{"minimum": 1}]}), of(a={"oneOf": [{"minimum": 1}, {"minimum": 2}]}), [("breaking", "/properties/a/oneOf", "'oneOf' was [{\"minimum\": 1}], is now [{\"minimum\": 1}, {\"minimum\": 2}]")]),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), [row[1:] for row in INPUTS], ids=[row[0] for row in INPUTS])
def test_inputs(old: dict[str, Any], new: dict[str, Any], expected: list[tuple[str, str, str]]) -> None:
    wanted = [(kind, f"/inputSchema{pointer}", sentence) for kind, pointer, sentence in expected]
    assert told({"inputSchema": old}, {"inputSchema": new}) == wanted


OUTPUTS: list[tuple[str, Any, Any, list[tuple[str, str, str]]]] = [
    ("nothing", of(a=TEXT), of(a=TEXT), []),
    ("a new property of an open object", of(a=TEXT), of(a=TEXT, b=COUNT), [("widening", "/properties/b/type", "the type was anything, is now integer")]),
    ("a new property of a closed object", closed(a=TEXT), closed(a=TEXT, b=COUNT), [("breaking", "/properties/b", "'b' is new, and the committed type is closed")]),
    ("always there", of(a=TEXT), {**of(a=TEXT), "required": ["a"]}, [("widening", "/required", "'a' is always present now")]),
    ("no longer always there", {**of(a=TEXT), "required": ["a"]}, of(a=TEXT), [("breaking", "/required", "'a' may be missing now")]),
    ("gone from an open object", of(a=TEXT, b=COUNT), of(a=TEXT), [("breaking", "/properties/b/type", "the type was integer, is now anything")]),
    ("gone from a closed object", closed(a=TEXT, b=COUNT), closed(a=TEXT), [("breaking", "/properties/b", "'b' is no longer returned")]),
    ("another type", of(a=TEXT), of(a=COUNT), [("breaking", "/properties/a/type", "the type was string, is now integer")]),
    ("a narrower type", of(a={"type": "number"}), of(a=COUNT), [("widening", "/properties/a/type", "the type was number, is now integer")]),
    ("a null", of(a=TEXT), of(a={"type": ["string", "null"]}), [("breaking", "/properties/a/type", "the type was string, is now null or string")]),
    ("no null any more", of(a={"type": ["string", "null"]}), of(a=TEXT), [("widening", "/properties/a/type", "the type was null or string, is now string")]),
    ("a new member", of(a={"enum": ["x"]}), of(a={"enum": ["x", "y"]}), [("breaking", "/properties/a/enum", '"y" now also returned')]),
    ("a member less", of(a={"enum": ["x", "y"]}), of(a={"enum": ["x"]}), [("widening", "/properties/a/enum", '"y" no longer returned')]),
    ("one member for another", of(a={"enum": ["x", "y"]}), of(a={"enum": ["x", "z"]}), [("breaking", "/properties/a/enum", '"z" now also returned; "y" no longer returned')]),
    ("any text", of(a={"type": "string", "enum": ["x"]}), of(a=TEXT), [("breaking", "/properties/a/enum", 'any value that fits the rest of the schema may be returned now, not only "x"')]),
    ("no longer any text", of(a=TEXT), of(a={"type": "string", "enum": ["x"]}), [("widening", "/properties/a/enum", 'only "x" returned now')]),
    ("a schema at last", None, of(a=TEXT), [("widening", "", "the output has a schema now")]),
    ("no schema any more", of(a=TEXT), None, [("breaking", "", "the output no longer has a schema")]),
    ("in other words", of(a=TEXT), of(a={**TEXT, "description": "x"}), [("compatible", "", "it is written differently and allows the same values")]),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), [row[1:] for row in OUTPUTS], ids=[row[0] for row in OUTPUTS])
def test_outputs(old: Any, new: Any, expected: list[tuple[str, str, str]]) -> None:
    wanted = [(kind, f"/outputSchema{pointer}", sentence) for kind, pointer, sentence in expected]
    assert told(*({} if schema is None else {"outputSchema": schema} for schema in (old, new))) == wanted


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({}, {"description": "x"}, [("compatible", "/description", "'description' changed")]),
        ({"title": "A"}, {}, [("compatible", "/title", "'title' changed")]),
        ({"rename": "a"}, {"rename": "b"}, []),
        ({"annotations": {"readOnlyHint": True}}, {}, [("breaking", "/annotations/readOnlyHint", "'readOnlyHint' was true, is now false: a policy may rely on it")]),
        ({"annotations": {"destructiveHint": False}}, {"annotations": {"destructiveHint": True}}, [("breaking", "/annotations/destructiveHint", "'destructiveHint' was false, is now true: a policy may rely on it")]),
        ({"annotations": {"openWorldHint": False}}, {"annotations": {}}, [("breaking", "/annotations/openWorldHint", "'openWorldHint' was false, is now true: a policy may rely on it")]),
        ({}, {"annotations": {"destructiveHint": True, "readOnlyHint": False}}, []),
        ({}, {"annotations": {"readOnlyHint": True, "title": "x"}}, [("compatible", "/annotations/readOnlyHint", "'readOnlyHint' was false, is now true"), ("compatible", "/annotations/title", "'title' changed")]),
        ({"permissions": ["execute"]}, {"permissions": {"required": ["execute"], "optional": ["network"]}}, [("breaking", "/permissions", "it now needs the permission 'network' (optional)")]),
        ({"permissions": ["execute", "network"]}, {"permissions": ["execute"]}, [("compatible", "/permissions", "it no longer needs the permission 'network' (required)")]),
        ({"wrapsResult": True}, {}, [("breaking", "/wrapsResult", "the server changed whether it wraps the result")]),
        ({"request": {"method": "get", "parameters": [{"name": "a"}]}}, {"request": {"method": "get", "parameters": [{"name": "b"}, {"name": "a"}]}}, []),
        ({"request": {"method": "get", "parameters": [{"name": "a"}]}}, {"request": {"method": "put", "parameters": []}}, [("breaking", "/request/method", "the operation is called in another way now"), ("breaking", "/request/parameters", "the operation is called in another way now")]),
    ],
)  # fmt: skip
def test_the_rest_of_a_definition(
    old: dict[str, Any], new: dict[str, Any], expected: list[tuple[str, str, str]]
) -> None:
    assert told(old, new) == expected


def test_tools_come_and_go() -> None:
    def tool(name: str) -> dict[str, Any]:
        return {"name": name, "inputSchema": {}}

    one, two, three = map(tool, ("one", "two", "three"))
    assert find_changes([one, two], [three, two]) == [
        DefinitionChange("one", "breaking", "", "the tool was removed"),
        DefinitionChange("three", "widening", "", "the tool was added"),
    ]


def test_a_definition_is_as_good_as_what_it_stands_for() -> None:
    direct = {"inputSchema": of(a=of(b=TEXT))}
    by_name = {"inputSchema": {**of(a={"$ref": "#/$defs/A"}), "$defs": {"A": of(b=TEXT)}}}
    wider = {"inputSchema": {**of(a={"$ref": "#/$defs/A"}), "$defs": {"A": of(b=TEXT, c=TEXT)}}}
    assert [change[0] for change in told(direct, by_name)] == ["compatible"]
    assert told(by_name, wider) == [("widening", "/inputSchema/properties/a/properties/c", "'c' is new")]
    assert [change[0] for change in told(wider, direct)] == ["breaking"]


def test_schemas_that_contain_themselves_are_compared() -> None:
    def tree(value: dict[str, Any]) -> dict[str, Any]:
        node = of(value=value, children={"type": "array", "items": {"$ref": "#/$defs/Node"}})
        return {"inputSchema": {**of(root={"$ref": "#/$defs/Node"}), "$defs": {"Node": node}}}

    assert told(tree(COUNT), tree(COUNT)) == []
    assert {change[0] for change in told(tree(COUNT), tree({"type": "number"}))} == {"widening"}
    assert {change[0] for change in told(tree({"type": "number"}), tree(COUNT))} == {"breaking"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (of(a={"$ref": "https://example.org/a"}), of(a={"$ref": "https://example.org/b"})),
        (of(a={"$dynamicRef": "#x"}, b=TEXT), of(a={"$dynamicRef": "#x"}, b={"$ref": "#/properties/a"})),
        ({"type": "object", "properties": 3}, {"type": "object", "properties": 4}),
        ({"type": "object", "required": "a"}, {"type": "object", "required": "b"}),
        (of(a={"minimum": "1"}), of(a={"minimum": "2"})),
        (
            of(a={"unevaluatedProperties": False, **of(b=TEXT)}),
            of(a={"unevaluatedProperties": False, **of(b=TEXT, c=TEXT)}),
        ),
    ],
)
def test_what_cannot_be_compared_is_breaking(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert "breaking" in [change[0] for change in told({"inputSchema": old}, {"inputSchema": new})]
