"""A spec is data: whatever stands in it, no code of it runs, and what cannot be served is refused with a sentence."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tests import command_line
from tests.examples import tries
from tests.findings import short_forms
from tests.modules import documents, load_module, module_text
from tests.projects import Project, tool
from toolkit.codegen.package.models import check_module
from toolkit.errors import GenerationError, SpecError

CODE = "__import__('pathlib').Path('RAN').touch()"
TEXTS = [
    f'"""\n{CODE}\n"""',
    f"'''\n{CODE}\n'''",
    f'"; {CODE}; "',
    f'\\"""\n{CODE}',
    f"\n{CODE}",
    f"\r{CODE}",
    f"x\u2028{CODE}",
    f"x\x00{CODE}",
    f"x\x0c{CODE}",
    "ends in a backslash\\",
    'ends in a quote"',
    "ends in two\\\\",
    "{{ 7 * 7 }} {% raw %}",
    "# comment",
    f"]: {CODE}",
]


def hostile_tool(text: str) -> dict[str, Any]:
    """A spec with one text in every place that may hold text."""
    node = {
        "type": "string",
        "description": text,
        "title": text,
        "default": text,
        "examples": [text],
        "x-note": text,
        "$comment": text,
    }
    return {
        "name": "tool",
        "title": text,
        "description": text,
        "inputSchema": {
            "type": "object",
            "title": text,
            "description": text,
            "properties": {
                "plain": node,
                text: {"type": "string"},
                "choice": {"enum": [text, "other"], "default": text},
                "constant": {"const": text},
                "inner": {"type": "object", "description": text, "properties": {text: {"enum": [text]}}, "title": text},
                "by_reference": {"$ref": "#/$defs/" + text.replace("~", "~0").replace("/", "~1")},
            },
            "required": [text],
            "$defs": {text: {"type": "object", "properties": {"x": node}, "title": text}},
        },
        "outputSchema": {"type": "array", "description": text, "items": {"enum": [text]}, "title": text},
    }


@pytest.mark.sample
@pytest.mark.parametrize("text", TEXTS, ids=ascii)
@pytest.mark.slow
def test_text_stays_text(tmp_path: Path, text: str) -> None:
    spec = hostile_tool(text)
    project = Project(tmp_path, [spec])
    try:
        project.generate()
    except SpecError as error:
        # A percent sign in a reference is an escape; everything else must be served.
        assert "does not exist in this schema" in str(error)
        del spec["inputSchema"]["properties"]["by_reference"]
        project = Project(tmp_path, [spec])
        project.generate()
    code = f"""
import importlib, pkgutil, acme.generated as package
for found in pkgutil.walk_packages(package.__path__, "acme.generated."):
    importlib.import_module(found.name)
text = {text!r}
made = package.ToolInput.model_validate({{text: "v", "choice": text, "inner": {{text: text}}}})
assert made.choice == text and made.model_dump(by_alias=True, exclude_unset=True)[text] == "v"
assert package.ToolOutput.model_validate([text]).root == [text]
assert package.CATALOG.definitions["tool"]["description"] == text
"""
    command_line.python(project.root, code)
    assert not (tmp_path / "RAN").exists()


REFUSED = {
    "customBasePath": ({"customBasePath": "evil.Base", "type": "string"}, "'customBasePath' is not supported: it can name Python code"),
    "customTypePath": ({"customTypePath": "evilmod.Thing"}, "'customTypePath' is not supported: it can name Python code"),
    "x-python-type": ({"type": "string", "x-python-type": "evil.X"}, "'x-python-type' is not supported"),
    "x-python-import": ({"type": "string", "x-python-import": {"module": "evil"}}, "'x-python-import' is not supported"),
    "default_factory": ({"type": "string", "default_factory": "evil"}, "'default_factory' is not supported"),
    "reference to a file": ({"$ref": "file:///etc/passwd"}, "nothing is read from elsewhere"),
    "reference to a parent": ({"$ref": "../other.json#/x"}, "nothing is read from elsewhere"),
    "reference to the network": ({"$ref": "http://localhost:1/x.json"}, "nothing is read from elsewhere"),
    "reference to nothing": ({"$ref": "#/$defs/missing"}, "'/$defs/missing' does not exist in this schema"),
    "reference that is no text": ({"$ref": 5}, "only references"),
    "pattern that does not compile": ({"type": "string", "pattern": "("}, "'pattern' cannot be compiled: check its brackets and escapes; lookaround and back-references are not supported"),
    "pattern with look-around": ({"type": "string", "pattern": "(?=a)"}, "lookaround and back-references are not supported"),
    "pattern with back-reference": ({"type": "string", "pattern": r"(a)\1"}, "lookaround and back-references are not supported"),
    "pattern that is no text": ({"type": "string", "pattern": 5}, "'pattern' must be a string"),
    "unknown type": ({"type": "text"}, "'type' must be one of array, boolean"),
    "limit that is no number beside a default": ({"type": "number", "minimum": "3", "default": 4}, "'minimum' must be a number"),
    "length that is no number beside a default": ({"type": "string", "minLength": "x", "default": "b"}, "'minLength' must be an integer of at least 0"),
    "count that is no number beside a default": ({"type": "array", "minItems": "x", "default": []}, "'minItems' must be an integer of at least 0"),
    "steps of nothing beside a default": ({"type": "number", "multipleOf": 0, "default": 1}, "'multipleOf' must be greater than 0"),
    "wrong limit by reference": ({"$ref": "#/$defs/limited", "default": 4}, "'minimum' must be a number"),
    "enum that is no list beside a constant": ({"enum": 3, "const": 1}, "'enum' must be a list"),
    "length that is no number": ({"type": "string", "minLength": "x"}, "'minLength' must be an integer of at least 0"),
    "steps of nothing": ({"type": "integer", "multipleOf": 0}, "'multipleOf' must be greater than 0"),
    "empty union": ({"anyOf": []}, "'anyOf' must be a list with at least one schema"),
    "schema that is a list": ([], "a schema must be an object, true or false"),
    "empty conjunction": ({"allOf": []}, "'allOf' must be a list with at least one schema"),
    "pattern of names with look-around": ({"type": "object", "patternProperties": {"(?=a)": {}}}, "the validator refuses this schema"),
    "reference to an anchor that is not there": ({"$ref": "#missing"}, "nothing is read from elsewhere"),
    "what cannot hold beside what is not there": ({"not": {"$ref": "other.json"}}, "the validator refuses this schema"),
}  # fmt: skip
DEFINITIONS = {
    "limited": {"type": "number", "minimum": "3"},
}


@pytest.mark.every_row
@pytest.mark.parametrize("what", REFUSED)
def test_refused_with_a_sentence_at_its_place(what: str) -> None:
    schema, words = REFUSED[what]
    with pytest.raises(SpecError) as failure:
        documents({"type": "object", "properties": {"a/b": schema}, "$defs": DEFINITIONS})
    problem = short_forms(failure.value)[0]
    message, _, place = problem.rpartition(" @ ")
    assert words in message
    assert place.startswith(("x.json:/inputSchema/properties/a~1b", "x.json:/inputSchema/$defs/"))


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(SpecError) as failure:
        documents(
            {
                "type": "object",
                "properties": {"a": {"type": "text"}, "b": {"allOf": []}, "c": {"items": 5, "type": "array"}},
            },
            {"type": "object", "properties": {"d": {"$ref": "x"}}},
        )
    assert [problem.rpartition(":")[2] for problem in short_forms(failure.value)] == [
        "/inputSchema/properties/a/type",
        "/inputSchema/properties/b/allOf",
        "/inputSchema/properties/c/items",
        "/outputSchema/properties/d/$ref",
    ]


def test_names_of_python_and_pydantic_become_aliases() -> None:
    names = [
        "class", "self", "cls", "schema", "model_config", "model_fields", "copy", "json", "_id", "__dunder__", "$meta", "a-b",
        "a_b", "a.b", "3d", "", " ", "str", "list", "Field", "Any", "None", "größe", "ﬁ", "fi", "名前", "validate", "name", "args",
        "context", "builtins", "type",
    ]  # fmt: skip
    schema = {
        "type": "object",
        "additionalProperties": False,
        "properties": {name: {"type": "integer"} for name in names},
    }
    module = load_module(module_text(schema))
    arguments = {name: index for index, name in enumerate(names)}
    made = module.XInput.model_validate(arguments)
    assert made.model_dump(by_alias=True, exclude_unset=True) == arguments
    assert len(type(made).model_fields) == len(names)
    assert module.XArgs.__annotations__.keys() == arguments.keys()


POINT = {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "number"}}}
DEFAULTS: dict[str, tuple[Any, Any, Any]] = {
    "whole number": ({"type": "integer"}, 2.0, 2),
    "number": ({"type": "number"}, 2.0, 2.0),
    "whole numbers": ({"type": "array", "items": {"type": "integer"}}, [2.0, 3], [2, 3]),
    "enum": ({"enum": [1, 2]}, 1.0, 1),
    "object": (POINT, {"x": 1.0, "y": 2.0}, {"x": 1, "y": 2.0}),
    "object or null": ({"anyOf": [POINT, {"type": "null"}]}, {"x": 1}, {"x": 1}),
    "list of objects": ({"type": "array", "items": POINT}, [{"x": 1}, {}], [{"x": 1}, {}]),
    "map of lists of objects": (
        {"type": "object", "additionalProperties": {"type": "array", "items": POINT}},
        {"a": [{"x": 2.0}]},
        {"a": [{"x": 2}]},
    ),
}


@pytest.mark.parametrize("what", DEFAULTS)
def test_defaults_have_the_types_of_their_fields(what: str) -> None:
    schema, given, wanted = DEFAULTS[what]
    model = load_module(module_text({"type": "object", "properties": {"v": {**schema, "default": given}}})).XInput
    made = model.model_validate({})
    # What a validator would have made of it, and not the raw value.
    assert made.v == model.model_validate({"v": given}).v
    assert repr(made.model_dump(exclude_unset=False)["v"]) == repr(
        model.model_validate({"v": wanted}).model_dump()["v"]
    )


def test_required_properties_may_have_defaults() -> None:
    schema = {"type": "object", "required": ["v"], "properties": {"v": {**POINT, "default": {"x": 1}}}}
    assert load_module(module_text(schema)).XInput.model_validate({"v": {"x": 2}}).v.x == 2


OUTPUTS: dict[str, tuple[dict[str, Any], list[Any], list[Any]]] = {
    "object or null": ({**POINT, "type": ["object", "null"]}, [None, {"x": 1}], [1, {"x": "1"}]),
    "object in a list of types": ({**POINT, "type": ["object"]}, [{"x": 1}], [None, {"x": "1"}]),
    "limited or null": ({"type": ["integer", "null"], "minimum": 2}, [None, 2], [1, "2"]),
    "anything": ({}, [None, 1, "a", [1], {"a": 1}], []),
    "described anything": ({"description": "Whatever."}, [None, 1], []),
}


@pytest.mark.parametrize("what", OUTPUTS)
def test_outputs_whose_root_is_no_plain_object(what: str) -> None:
    schema, fitting, others = OUTPUTS[what]
    output = load_module(module_text({"type": "object"}, schema)).XOutput
    for value in fitting:
        assert output.model_validate(value).model_dump(exclude_unset=True) == value
    for value in others:
        with pytest.raises(ValidationError):
            output.model_validate(value)


@pytest.mark.slow
def test_a_spec_file_may_be_called_anything(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.write('acme/tools/a"""b\\\n.json', json.dumps(tool("alpha")))
    project.generate()
    command_line.python(project.root, "import acme.generated; acme.generated.AlphaInput")
    assert project.generate() == []
    (project.output / "manifest.json").unlink()
    assert project.generate() == ["manifest.json"]


UNSAFE = {
    "an import": "import os",
    "an import of a stranger": "from evilmod import Thing",
    "an import of another name": "from pydantic import validator",
    "an import under another name": "from typing import Any as x",
    "a call": "print('x')",
    "a function": "def f(): pass",
    "a decorated class": "from toolkit.schema.models import ToolModel\n@print\nclass X(ToolModel): pass",
    "a class of another base": "class X(Evil): pass",
    "a metaclass": "from toolkit.schema.models import ToolModel\nclass X(ToolModel, metaclass=print()): pass",
    "a method": "from toolkit.schema.models import ToolModel\nclass X(ToolModel):\n    def f(self): pass",
    "a default that runs": "from toolkit.schema.models import ToolModel\nclass X(ToolModel):\n    a: int = print(1)",
    "a type that runs": "from toolkit.schema.models import ToolModel\nclass X(ToolModel):\n    a: print(1)",
    "a factory": "from toolkit.schema.models import ToolModel\nclass X(ToolModel):\n    a: int = Field(default_factory=print)",
    "a lambda": "X: TypeAlias = lambda: 1",
    "a comprehension": "X: TypeAlias = [x for x in ()]",
    "an attribute": "X: TypeAlias = os.system",
    "an f-string": "from toolkit.schema.models import ToolModel\nclass X(ToolModel):\n    a: str = f'{print(1)}'",
    "another setting": "from toolkit.schema.models import ToolModel\nclass X(ToolModel):\n    __class__ = 1",
    "a loop": "while True: pass",
    "a broken text": "class (",
    "a null byte": "x = '\0'",
}


@pytest.mark.every_row
@pytest.mark.parametrize("what", UNSAFE)
def test_the_gate_behind_the_generator_stops(what: str) -> None:
    with pytest.raises(GenerationError, match=r"^spec\.yaml: the generated module "):
        check_module(UNSAFE[what], "spec.yaml")


def test_the_gate_lets_our_own_models_through() -> None:
    for file in (Path(__file__).parents[2] / "generated" / "models").glob("*.py"):
        if file.name != "__init__.py":
            check_module(file.read_text(), file.name)


def test_a_gate_that_fails_stops_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import datamodel_code_generator

    generate = datamodel_code_generator.generate

    def with_code(*given: Any, **options: Any) -> str:
        return f"{generate(*given, **options)}\n\nprint('ran')\n"

    monkeypatch.setattr(datamodel_code_generator, "generate", with_code)
    project = Project(tmp_path, [tool("tool")])
    with pytest.raises(GenerationError, match=r"acme/tools/tools.json: .* a statement that models do not need"):
        project.generate()
    assert not project.output.exists()


names = st.text(st.characters(codec="utf-8"), max_size=8)
leaves = st.sampled_from(
    [
        {"type": "string"},
        {"type": "integer", "minimum": 0},
        {"type": ["number", "null"]},
        {"enum": ["a", 1, None]},
        {},
        {"const": True},
    ]
)
schemas = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(lambda item: {"type": "array", "items": item}, inner),
        st.builds(lambda item: {"type": "object", "additionalProperties": item}, inner),
        st.builds(lambda items: {"anyOf": items}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(
            lambda fields, closed: {"type": "object", "properties": fields, "additionalProperties": not closed},
            st.dictionaries(names, inner, max_size=4),
            st.booleans(),
        ),
    ),
    max_leaves=8,
)


@tries(60)
@given(st.dictionaries(names, schemas, max_size=4))
@pytest.mark.slow
def test_random_schemas_with_random_names_give_modules_that_run(properties: dict[str, Any]) -> None:
    text = module_text({"type": "object", "properties": properties}, {"type": "object", "properties": properties})
    ast.parse(text)
    module = load_module(text)
    assert module.XInput.model_validate({}).model_dump(exclude_unset=True) == {}
    assert json.loads(json.dumps(sorted(module.XArgs.__annotations__))) == sorted(properties)
