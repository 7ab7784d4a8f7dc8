"""The types of generated models say what their schemas say: shared bases, recursive unions, unions with keywords next to them."""

from __future__ import annotations

import ast
import re
from typing import Any

import jsonschema_rs
import pytest
from pydantic import BaseModel, ValidationError

from tests.modules import documents, input_model, load_module, module_text

LAYER = {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}


def ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/$defs/{name}"}


def tool(definitions: dict[str, Any], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "$defs": definitions}


def fields(schema: dict[str, Any], output: dict[str, Any] | None = None) -> dict[str, str]:
    """The type of every field (``Class.field``) and of every alias, as it is written."""
    found = {}
    for statement in (
        inner for outer in ast.parse(module_text(schema, output)).body for inner in getattr(outer, "orelse", [outer])
    ):
        if isinstance(statement, ast.ClassDef):
            for field in statement.body:
                if isinstance(field, ast.AnnAssign) and ast.unparse(field.target) != "__enforced__":
                    found[f"{statement.name}.{ast.unparse(field.target)}"] = _written(field.annotation)
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            found[ast.unparse(statement.target)] = _written(statement.value)
        elif isinstance(statement, ast.Assign):
            found[ast.unparse(statement.targets[0])] = _written(statement.value)
    return found


def _written(node: ast.expr) -> str:
    return ast.unparse(node).replace("'", '"')


def assert_same_verdicts(schema: dict[str, Any], values: list[Any]) -> None:
    """The model accepts what jsonschema-rs accepts, and writes it out as it was read; each verdict occurs."""
    model, judge = input_model(schema), jsonschema_rs.validator_for(schema)
    seen = set()
    for value in values:
        try:
            read: BaseModel | None = model.model_validate(value)
        except ValidationError:
            read = None
        assert (read is not None) == judge.is_valid(value), value
        if read is not None:
            assert read.model_dump(mode="json", by_alias=True, exclude_unset=True) == value
        seen.add(read is not None)
    assert seen == {True, False}


# -- a shared base ----------------------------------------------------------------------------------------------------

SHARED_BASE = {
    "Layer": LAYER,
    "Doc": {"allOf": [ref("Layer"), {"properties": {"pages": {"type": "array", "items": ref("Page")}}}]},
    "Page": {"allOf": [ref("Layer"), {"properties": {"title": {"type": "string"}, "back": ref("Doc")}}]},
}


@pytest.mark.parametrize("order", [("doc", "page"), ("page", "doc"), ("doc",)])
def test_a_base_that_several_share_is_typed_in_every_order(order: tuple[str, ...]) -> None:
    places = {"doc": ref("Doc"), "page": ref("Page")}
    found = fields(tool(SHARED_BASE, **{name: places[name] for name in order}))
    assert found["XInputDoc.pages"].replace('"', "") == "Omissible[list[XInputPage]]"
    assert found["XInputPage.back"].replace('"', "") == "Omissible[XInputDoc]"
    assert found["XInputPage.id"] == "str"
    assert not any("Any" in kind for kind in found.values())


def test_a_shared_base_keeps_its_verdicts() -> None:
    page = {"id": "p", "title": "t"}
    values: list[Any] = [
        {"doc": {"id": "d", "pages": [page, {**page, "back": {"id": "d"}}]}},
        {"doc": {"id": "d", "pages": [{"title": "no id"}]}},
        {"doc": {"id": "d", "pages": [{**page, "back": {"pages": []}}]}},
        {"doc": {"id": "d", "pages": [7]}},
    ]
    assert_same_verdicts(tool(SHARED_BASE, doc=ref("Doc")), values)


def test_a_base_inside_itself_ends_in_its_own_class() -> None:
    """The conjunction of a folder holds the same conjunction."""
    folder = {"allOf": [ref("Layer"), {"properties": {"inside": {"allOf": [ref("Layer"), ref("Folder")]}}}]}
    found = fields(tool({"Layer": LAYER, "Folder": folder}, top=ref("Folder")))
    assert not any("Any" in kind for kind in found.values()), found
    assert_same_verdicts(
        tool({"Layer": LAYER, "Folder": folder}, top=ref("Folder")),
        [
            {"top": {"id": "a", "inside": {"id": "b", "inside": {"id": "c"}}}},
            {"top": {"id": "a", "inside": {"inside": {}}}},
        ],
    )


def test_two_bases_that_refine_each_other_end() -> None:
    """Each level merges both again; they are the same two schemas, so it is the same class."""
    definitions = {
        "A": {"type": "object", "properties": {"next": {"allOf": [ref("A"), ref("B")]}, "a": {"type": "integer"}}},
        "B": {"type": "object", "properties": {"next": ref("B"), "b": {"type": "integer"}}},
    }
    found = fields(tool(definitions, top={"allOf": [ref("A"), ref("B")]}))
    assert not any("Any" in kind for kind in found.values()), found
    assert sum(name.endswith(".a") for name in found if name.startswith("XInput")) <= 2
    values = [{"top": {"next": {"next": {"a": 1, "b": 2}}}}, {"top": {"next": {"next": {"a": "no"}}}}]
    assert_same_verdicts(tool(definitions, top={"allOf": [ref("A"), ref("B")]}), values)


def test_keywords_next_to_a_reference_to_what_is_being_read_are_merged() -> None:
    node = {
        "type": "object",
        "properties": {"child": {**ref("Node"), "required": ["name"]}, "name": {"type": "string"}},
    }
    found = fields(tool({"Node": node}, top=ref("Node")))
    assert not any("Any" in kind for kind in found.values()), found
    values = [{"top": {"child": {"name": "x", "child": {"name": "y"}}}}, {"top": {"child": {"child": {}}}}]
    assert_same_verdicts(tool({"Node": node}, top=ref("Node")), values)


# -- recursive unions ------------------------------------------------------------------------------------------------

FRAME = {
    "type": "object",
    "properties": {"kind": {"const": "frame"}, "children": {"type": "array", "items": ref("Node")}},
    "required": ["kind"],
}
TEXT = {"type": "object", "properties": {"kind": {"const": "text"}, "chars": {"type": "string"}}, "required": ["kind"]}
NODES = {"Node": {"oneOf": [ref("Frame"), ref("Text")]}, "Frame": FRAME, "Text": TEXT}


def test_a_recursive_union_that_is_entered_through_itself_has_a_name() -> None:
    found = fields(tool(NODES, node=ref("Node")))
    assert found["XInputFrame.children"] == 'Omissible[list["XInputNode"]]'
    assert found["XInput.node"] == "Omissible[XInputNode]"
    assert "XInputFrame | XInputText" in found["XInputNode"]
    assert found["XArgsNode"] == '"XArgsFrame | XArgsText"'
    assert found["XArgsFrame.children"] == 'NotRequired["list[XArgsNode]"]'


def test_a_recursive_union_that_is_entered_through_a_class_is_typed() -> None:
    found = fields(tool(NODES, frame=ref("Frame")))
    assert not any("Any" in kind for kind in found.values()), found


def test_a_recursive_union_keeps_its_verdicts() -> None:
    text = {"kind": "text", "chars": "x"}
    values = [
        {"node": text},
        {"node": {"kind": "frame", "children": [text, {"kind": "frame", "children": [text]}]}},
        {"node": {"kind": "frame", "children": [{"kind": "frame", "children": [{"kind": "other"}]}]}},
        {"node": {"kind": "frame", "children": ["x"]}},
    ]
    assert_same_verdicts(tool(NODES, node=ref("Node")), values)


RECURSIVE: dict[str, tuple[dict[str, Any], list[Any], list[Any]]] = {
    # what a definition named Tree is, values that it accepts, values that it refuses
    "through an array": (
        {"anyOf": [{"type": "integer"}, {"type": "array", "items": ref("Tree")}]},
        [1, [1, [2, []]]],
        ["x", [[True]]],
    ),
    "through a map": (
        {"anyOf": [{"type": "integer"}, {"type": "object", "additionalProperties": ref("Tree")}]},
        [1, {"a": {"b": 1}}],
        [{"a": {"b": "x"}}],
    ),
    "nullable": (
        {"anyOf": [{"type": "null"}, {"type": "array", "items": ref("Tree"), "maxItems": 2}]},
        [None, [None, [None]]],
        [[1], [None, None, None]],
    ),
    "an array of itself": ({"type": "array", "items": ref("Tree")}, [[], [[], [[]]]], [[1], {}]),
    "a map of itself": ({"type": "object", "additionalProperties": ref("Tree")}, [{}, {"a": {}}], [{"a": 1}]),
    "several types": (
        {"type": ["string", "array", "object"], "items": ref("Tree"), "properties": {"in": ref("Tree")}},
        ["x", ["x", {"in": ["x"]}]],
        [[1], {"in": 1}],
    ),
    "through another definition": (
        {"oneOf": [{"type": "string"}, ref("Branch")]},
        ["x", {"left": "x"}, {"left": {"left": "x", "right": {}}}],
        [{"left": {"left": 7}}],
    ),
    "nested unions": (
        {"anyOf": [{"oneOf": [{"type": "string"}, {"type": "array", "items": ref("Tree")}]}, ref("Branch")]},
        ["x", ["x", {"left": ["x"]}]],
        [[7], {"left": [7]}],
    ),
    "with keywords next to it": (
        {
            "type": "object",
            "properties": {"id": {"type": "string"}},
            "oneOf": [
                {"properties": {"kind": {"const": "leaf"}}, "required": ["kind"]},
                {
                    "properties": {"kind": {"const": "node"}, "in": {"type": "array", "items": ref("Tree")}},
                    "required": ["kind"],
                },
            ],
        },
        [{"kind": "leaf", "id": "x"}, {"kind": "node", "in": [{"kind": "leaf"}, {"kind": "node"}]}],
        [{"kind": "node", "in": [{"kind": "leaf", "id": 7}]}, {"kind": "node", "in": [{}]}],
    ),
}
BRANCH = {"type": "object", "properties": {"left": ref("Tree"), "right": {"anyOf": [ref("Branch"), {"type": "null"}]}}}


@pytest.mark.parametrize("case", RECURSIVE)
def test_recursion_is_typed_and_keeps_its_verdicts(case: str) -> None:
    tree, valid, invalid = RECURSIVE[case]
    schema = tool({"Tree": tree, "Branch": BRANCH}, tree=ref("Tree"), trees={"type": "array", "items": ref("Tree")})
    found = fields(schema)
    assert not any("Any" in kind for kind in found.values()), found
    values = [{"tree": value} for value in (*valid, *invalid)] + [{"trees": valid}, {"trees": invalid}]
    assert_same_verdicts(schema, values)
    assert documents(schema)[0].losses == []


@pytest.mark.parametrize("case", RECURSIVE)
def test_an_output_that_is_recursive_at_its_root_is_typed(case: str) -> None:
    tree, valid, invalid = RECURSIVE[case]
    root = {"$ref": "#/$defs/Tree", "$defs": {"Tree": tree, "Branch": BRANCH}}
    output: Any = load_module(module_text({"type": "object"}, root)).XOutput
    for value in valid:
        assert output.model_validate(value).model_dump(mode="json", by_alias=True, exclude_unset=True) == value
    for value in invalid:
        with pytest.raises(ValidationError):
            output.model_validate(value)


def test_null_in_a_recursive_union_is_written_where_it_is_used() -> None:
    tree = {"anyOf": [{"type": "null"}, {"type": "string"}, {"type": "array", "items": ref("Tree")}]}
    found = fields(tool({"Tree": tree}, tree=ref("Tree")))
    assert found["XInput.tree"] == "XInputTree | None"
    assert found["XArgsTree"] == '"str | list[XArgsTree | None]"'


def test_a_union_that_is_its_own_branch_is_reported() -> None:
    tree = {"anyOf": [ref("Tree"), {"type": "string"}]}
    document, _ = documents(tool({"Tree": tree}, tree=ref("Tree")))
    assert [pointer for _, pointer in document.losses] == ["/$defs/Tree"]


# -- keywords next to a union ----------------------------------------------------------------------------------------

RULE = {
    "type": "object",
    "properties": {"id": {"type": "integer"}},
    "oneOf": [
        {"properties": {"type": {"const": "creation"}}, "required": ["type"]},
        {
            "properties": {
                "type": {"const": "update"},
                "parameters": {"type": "object", "properties": {"fetch": {"type": "boolean"}}, "required": ["fetch"]},
            },
            "required": ["type"],
        },
    ],
}


def test_keywords_next_to_a_union_are_merged_into_its_branches() -> None:
    found = fields(tool({}, rule=RULE))
    assert found["XInput.rule"].count("|") == 1
    assert [kind for name, kind in found.items() if name.startswith("XInput") and name.endswith(".id")] == [
        "Omissible[int]"
    ] * 2
    assert [kind for name, kind in found.items() if name.startswith("XInput") and name.endswith(".type")] == [
        'Literal["creation"]',
        'Literal["update"]',
    ]
    assert not any("Any" in kind for kind in found.values())
    values = [
        {"rule": {"type": "creation", "parameters": 7}},
        {"rule": {"type": "update", "parameters": {"fetch": True}, "id": 1}},
        {"rule": {"type": "update", "parameters": {"fetch": 1}}},
        {"rule": {"type": "update", "id": "x"}},
        {"rule": {"id": 1}},
    ]
    assert_same_verdicts(tool({}, rule=RULE), values)


def test_keywords_that_add_nothing_leave_the_branches_their_names() -> None:
    """As in LINE's flex messages: ``type: object`` next to references to objects, which hold the union again."""
    definitions = {
        "Container": {
            "type": "object",
            "oneOf": [ref("Bubble"), ref("Carousel")],
            "discriminator": {"propertyName": "type"},
        },
        "Bubble": {
            "type": "object",
            "properties": {"type": {"enum": ["bubble"]}, "body": ref("Box")},
            "required": ["type"],
        },
        "Carousel": {
            "type": "object",
            "properties": {"type": {"enum": ["carousel"]}, "contents": {"type": "array", "items": ref("Container")}},
            "required": ["type"],
        },
        "Component": {"type": "object", "properties": {"type": {"type": "string"}}, "required": ["type"]},
        "Box": {
            "allOf": [ref("Component"), {"properties": {"contents": {"type": "array", "items": ref("Component")}}}],
        },
    }
    found = fields(tool(definitions, message=ref("Container")))
    assert found["XInputContainer"] == 'Annotated[XInputBubble | XInputCarousel, Field(discriminator="type")]'
    assert found["XInputCarousel.contents"] == 'Omissible[list["XInputContainer"]]'
    assert found["XInputBox.contents"] == "Omissible[list[XInputComponent]]"
    bubble = {"type": "bubble", "body": {"type": "box", "contents": [{"type": "text", "text": "x"}]}}
    values: list[Any] = [bubble, {"type": "carousel", "contents": [bubble]}, {"type": "carousel", "contents": [{}]}]
    values.append({"type": "bubble", "body": {"type": "box", "contents": [{"text": "x"}]}})
    assert_same_verdicts(tool(definitions, message=ref("Container")), [{"message": value} for value in values])


def test_a_union_of_many_blocks_is_named_once() -> None:
    """As in GitBook's documents: every block holds every other block."""
    names = [f"block{number}" for number in range(20)]
    every = {"oneOf": [ref(name) for name in names]}
    definitions: dict[str, Any] = {
        name: {
            "type": "object",
            "properties": {
                "object": {"const": "block"},
                "type": {"const": name},
                "nodes": {"type": "array", "items": ref("Block")},
            },
            "required": ["object", "type"],
        }
        for name in names
    }
    schema = tool({**definitions, "Block": every}, document={"type": "array", "items": ref("Block")})
    text = module_text(schema)
    assert text.count('Field(discriminator="type")') == 1
    assert not any("Any" in kind for kind in fields(schema).values())
    block = {"object": "block", "type": "block3", "nodes": [{"object": "block", "type": "block4"}]}
    assert_same_verdicts(schema, [{"document": [block]}, {"document": [{**block, "nodes": [{"type": "block4"}]}]}])


def test_a_union_that_only_requires_names_stays_one_class() -> None:
    either = {
        "type": "object",
        "properties": {"path": {"type": "string"}, "url": {"type": "string"}},
        "anyOf": [{"required": ["path"]}, {"required": ["url"]}],
    }
    found = fields(tool({}, source=either))
    assert found["XInput.source"] == "Omissible[XInputSource]"
    assert_same_verdicts(tool({}, source=either), [{"source": {"url": "x"}}, {"source": {}}])


def test_branches_that_exclude_the_keywords_next_to_them_are_left_out() -> None:
    text = {"type": "string", "anyOf": [{"type": "string", "enum": ["a"]}, {"type": "null"}, {"enum": ["b", 1]}]}
    assert fields(tool({}, text=text))["XInput.text"] == 'Omissible[Literal["a", "b"]]'
    assert_same_verdicts(tool({}, text=text), [{"text": "a"}, {"text": "b"}, {"text": None}, {"text": 1}])


def test_two_unions_next_to_each_other_are_both_typed() -> None:
    both = {
        "type": "object",
        "anyOf": [
            {"properties": {"a": {"type": "string"}}, "required": ["a"]},
            {"properties": {"b": {"type": "integer"}}},
        ],
        "oneOf": [
            {"properties": {"c": {"const": 1}}, "required": ["c"]},
            {"properties": {"c": {"const": 2}}, "required": ["c"]},
        ],
    }
    found = fields(tool({}, both=both))
    assert found["XInput.both"].count("|") == 3
    assert not any("Any" in kind for kind in found.values())
    assert_same_verdicts(
        tool({}, both=both), [{"both": {"a": "x", "c": 1}}, {"both": {"c": 3}}, {"both": {"b": "x", "c": 2}}]
    )


def test_an_allof_of_two_unions_is_typed_by_both() -> None:
    one = {
        "oneOf": [
            {"properties": {"a": {"const": 1}}, "required": ["a"]},
            {"properties": {"a": {"const": 2}}, "required": ["a"]},
        ]
    }
    two = {
        "oneOf": [
            {"properties": {"b": {"type": "string"}}, "required": ["b"]},
            {"properties": {"d": {"type": "string"}}, "required": ["d"]},
        ]
    }
    schema = tool({}, both={"allOf": [{"type": "object"}, one, two]})
    found = fields(schema)
    assert found["XInput.both"].count("|") == 3
    values = [
        {"both": {"a": 1, "b": "x"}},
        {"both": {"a": 1}},
        {"both": {"a": 3, "b": "x"}},
        {"both": {"a": 2, "b": "x", "d": "x"}},
    ]
    assert_same_verdicts(schema, values)


def test_arguments_that_only_some_branches_declare_have_their_type() -> None:
    """Arguments are keywords, so the root of an input is one class; where a branch is open, it still accepts anything."""
    schema = {
        "type": "object",
        "oneOf": [
            {"properties": {"kind": {"const": "a"}, "path": {"type": "string"}}, "required": ["kind", "path"]},
            {"properties": {"kind": {"const": "b"}}, "required": ["kind"]},
        ],
    }
    found = fields(schema)
    assert found["XInput.kind"] == 'Literal["a", "b"]'
    assert found["XInput.path"] == "DeclaredBySome[str | None]"
    assert found["XArgs.path"] == "NotRequired[str]"
    values = [
        {"kind": "a", "path": "x"},
        {"kind": "a", "path": 7},
        {"kind": "b", "path": 7},
        {"kind": "b", "path": None},
    ]
    assert_same_verdicts(schema, [*values, {"kind": "a"}, {"kind": "c"}])
    assert [pointer for _, pointer in documents(schema)[0].losses] == ["/oneOf/0/properties/path"]


# -- tags ------------------------------------------------------------------------------------------------------------


def test_classes_that_a_tag_tells_apart_are_a_discriminated_union() -> None:
    """Also where it is null, in a list, in a map, recursive, and entered through one of its classes."""
    schema = tool(
        {**NODES, "Nodes": {"type": "array", "items": {"anyOf": [ref("Frame"), ref("Text")]}}},
        frame=ref("Frame"),
        node=ref("Node"),
        inline={"oneOf": [ref("Frame"), ref("Text")]},
        maybe={"anyOf": [ref("Node"), {"type": "null"}]},
        nodes=ref("Nodes"),
        map={"type": "object", "additionalProperties": {"oneOf": [ref("Frame"), ref("Text")]}},
    )
    found = fields(schema)
    union = 'Annotated[XInputFrame | XInputText, Field(discriminator="kind")]'
    assert found["XInputNode"] == found["XInputMapValue"] == union
    assert found["XInput.inline"] == 'Annotated[Omissible[XInputFrame | XInputText], Field(discriminator="kind")]'
    assert found["XInput.maybe"] == "XInputNode | None"
    text = {"kind": "text"}
    values: list[Any] = [
        text,
        {"kind": "frame", "children": [text]},
        {"kind": "text", "chars": 1},
        {"kind": "x"},
        {},
        None,
        [],
    ]
    values += [{"kind": ["text"]}, {"kind": None}, {"kind": "frame", "children": [{"kind": "x"}]}]
    found_at = [{name: value} for name in ("frame", "node", "inline", "maybe") for value in values]
    found_at += [{"nodes": [value]} for value in values] + [{"map": {"a": value}} for value in values]
    assert_same_verdicts(schema, found_at)


def test_a_tag_is_blamed_alone_and_its_value_is_not_repeated() -> None:
    model = input_model(tool(NODES, node=ref("Node")))
    for value in ({"kind": "s3cret"}, {}):
        with pytest.raises(ValidationError) as caught:
            model.model_validate({"node": value})
        assert [error["msg"] for error in caught.value.errors()] == ["'kind' should be one of: 'frame', 'text'"]
        assert "s3cret" not in str(caught.value)
    with pytest.raises(ValidationError) as caught:
        model.model_validate({"node": {"kind": "frame", "children": [{"kind": "text", "chars": 7}]}})
    assert [error["loc"] for error in caught.value.errors()] == [("node", "frame", "children", 0, "text", "chars")]


@pytest.mark.parametrize(
    "tag",
    [
        {"class": {"const": "a"}},
        {"kind": {"const": 1}},
        {"kind": {"enum": ["a", "shared"]}},
        {"kind": {"enum": ["a", "c"]}},
        {"kind": {"type": "string"}},
    ],
)
def test_what_pydantic_cannot_choose_by_is_a_plain_union(tag: dict[str, Any]) -> None:
    """A name that is no identifier, a number, a value that both have, several values, no value at all."""
    name = next(iter(tag))
    other = {name: {"enum": ["b", "shared"]}}
    union = {"anyOf": [{"type": "object", "properties": each, "required": [name]} for each in (tag, other)]}
    schema = tool({}, value=union)
    assert "discriminator" not in module_text(schema)
    values: list[Any] = ["a", "b", "shared", 1, True, None, []]
    assert_same_verdicts(schema, [{"value": {}}, *({"value": {name: value}} for value in values)])


# -- literals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("branches", "written"),
    [
        ([{"type": "boolean"}, {"const": True}], "bool"),
        ([{"const": "off"}, {"const": "strict"}], 'Literal["off", "strict"]'),
        ([{"type": "string"}, {"const": "x"}], "str"),
        ([{"enum": ["x", 1]}, {"type": "string"}], "Literal[1] | str"),
        ([{"enum": [True, False]}], "bool"),
        ([{"enum": ["a", "b"]}, {"enum": ["b", "c"]}, {"type": "integer"}], 'Literal["a", "b", "c"] | int'),
        ([{"type": "integer"}, {"type": "number"}], "float"),
        ([{"type": "number"}, {"const": 1}], "float"),
        ([{"type": "string"}, {"type": "string"}], "str"),
        ([{"type": "string"}, {"type": "string", "minLength": 2}], "str"),
        ([{"anyOf": [{"const": "a"}]}, {"oneOf": [{"const": "b"}, {"type": "integer"}]}], 'Literal["a", "b"] | int'),
        ([{"type": "integer"}, {"const": True}], "int | Literal[True]"),
        ([{"type": "string", "minLength": 2}, {"const": "x"}], 'XInputVString | Literal["x"]'),
        ([{"type": "string", "format": "date"}, {"const": "x"}], "str"),
        ([{"type": "integer", "format": "int64"}, {"enum": [1, "x"]}], 'int | Literal["x"]'),
        ([{"type": "string", "format": "email"}, {"type": "string", "minLength": 2}], "str"),
        ([{"type": "integer"}, {"type": "number", "format": "double"}], "float"),
    ],
)
def test_a_union_says_nothing_twice(branches: list[Any], written: str) -> None:
    schema = {**tool({}, v={"anyOf": branches}), "required": ["v"]}
    assert fields(schema)["XInput.v"] == written
    values: list[Any] = ["off", "x", "xy", "a", True, False, 1, 2, 1.5, "", []]
    assert_same_verdicts(schema, [{"v": value} for value in values])


def test_null_among_literals_is_said_once() -> None:
    schema = {**tool({}, v={"anyOf": [{"enum": ["a", None]}, {"type": "null"}, {"const": "b"}]}), "required": ["v"]}
    assert fields(schema)["XInput.v"] == 'Literal["a", "b"] | None'


def test_a_union_with_a_branch_that_turns_out_to_be_anything_is_anything() -> None:
    """The branch refers to itself while it is made, so it has a name before its type is known."""
    anything = {"anyOf": [{"type": "string"}, {"anyOf": [True, {"$ref": "#/$defs/Any"}]}]}
    schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/Any"}}, "$defs": {"Any": anything}}
    model = input_model(schema)
    for value in (None, 1, "x", {"b": None}):
        assert model.model_validate({"a": value}).model_dump() == {"a": value}


def test_what_quoted_types_name_is_imported_and_what_literals_say_is_not() -> None:
    tree = {
        "anyOf": [
            {"type": "integer", "minimum": 1},
            {"type": "array", "items": {"anyOf": [ref("Tree"), {"type": "null"}]}},
        ]
    }
    text = module_text(tool({"Tree": tree}, tree=ref("Tree"), word={"enum": ["ClassVar", "Any"]}))
    head = text.partition("class XInput")[0]
    assert re.search(r"^from typing import .*\bOptional\b", head, re.MULTILINE)
    assert not re.search(r"\bClassVar\b|\bAny\b", head)
    model = load_module(text).XInput
    assert model.model_validate({"tree": [1, [None]]}).model_dump() == {"tree": [1, [None]]}
