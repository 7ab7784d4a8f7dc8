"""Types that lead back to themselves, and unions with a tag, under four type checkers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.projects import Project
from tests.typing.checkers import CHECKERS, MYPY_AND_REST

NODE = {"$ref": "#/$defs/Node"}
DEFINITIONS: dict[str, Any] = {
    "Node": {"oneOf": [{"$ref": "#/$defs/Frame"}, {"$ref": "#/$defs/Text"}]},
    "Frame": {
        "type": "object",
        "properties": {"kind": {"const": "frame"}, "children": {"type": "array", "items": NODE}},
        "required": ["kind", "children"],
    },
    "Text": {
        "type": "object",
        "properties": {"kind": {"const": "text"}, "chars": {"type": "string"}},
        "required": ["kind", "chars"],
    },
    "Tree": {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"$ref": "#/$defs/Tree"}}]},
}
SCHEMA = {
    "type": "object",
    "properties": {"node": NODE, "tree": {"$ref": "#/$defs/Tree"}},
    "required": ["node", "tree"],
    "$defs": DEFINITIONS,
}
PROGRAM = """
from acme.generated import AcmeToolkit
from acme.generated.models.draw import DrawInput, DrawInputFrame, DrawInputNode, DrawInputText, DrawOutput


def call(toolkit: AcmeToolkit) -> None:
    toolkit.tools.draw(node={"kind": "text", "chars": "x"}, tree=[1, [2, [3]]])
    toolkit.tools.draw(node={"kind": "frame", "children": [{"kind": "text", "chars": "x"}]}, tree=1)
    toolkit.tools.draw(node={"kind": "frame", "children": [{"kind": "text", "chars": 7}]}, tree=1)  # error
    toolkit.tools.draw(node={"kind": "frame", "children": ["x"]}, tree=1)  # error
    toolkit.tools.draw(node={"kind": "text", "chars": "x"}, tree=[["no"]])  # error
    toolkit.invoke("draw", {"node": {"kind": "frame", "children": []}, "tree": [[1]]})
    toolkit.invoke("draw", {"node": {"kind": "frame", "children": [7]}, "tree": [[1]]})  # error


def build() -> DrawInput:
    text = DrawInputText(kind="text", chars="x")
    DrawInput(node=text, tree={"no": 1})  # error in mypy, mypy with plugin and pyright; the others do not check the arguments of this class
    return DrawInput(node=DrawInputFrame(kind="frame", children=[text]), tree=[1, [2]])


def depth(node: DrawInputNode) -> int:
    if isinstance(node, DrawInputText):
        return len(node.chars)
    node.chars  # error
    return 1 + max(map(depth, node.children), default=0)


def first(output: DrawOutput) -> str:
    node = output.node
    if node.kind == "frame":
        return first_text(node.children[0])
    return node.chars


def first_text(node: object) -> str:
    return str(node)
"""


@pytest.mark.slow
@pytest.mark.parametrize("checker", MYPY_AND_REST)
def test_recursion_and_tags_are_understood(tmp_path: Path, checker: str) -> None:
    project = Project(
        tmp_path, [{"name": "draw", "description": "Draws.", "inputSchema": SCHEMA, "outputSchema": SCHEMA}]
    )
    project.generate()
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    models = tmp_path / "acme" / "generated" / "models" / "draw.py"
    errors = CHECKERS[checker]([program, models], tmp_path).errors
    expected = {
        number
        for number, line in enumerate(PROGRAM.splitlines(), start=1)
        if line.endswith("# error") or "# error in" in line and checker in line
    }
    assert {(file, line) for file, line in errors} == {("program.py", number) for number in expected}, errors
