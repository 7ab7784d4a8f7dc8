"""Docstrings of generated classes and fields: what an editor shows is about that class or field."""

from __future__ import annotations

import ast

from tests.modules import load_module, module_text

NOTE = {"type": "object", "properties": {"text": {"type": "string"}}}


def field_docs(text: str, name: str) -> dict[str, str]:
    """The docstring below each field of a class."""
    [node] = [node for node in ast.parse(text).body if isinstance(node, ast.ClassDef) and node.name == name]
    found = {}
    for field, doc in zip(node.body, node.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(doc, ast.Expr) and isinstance(doc.value, ast.Constant):
            found[ast.unparse(field.target)] = str(doc.value.value)
    return found


def test_an_input_has_its_tools_description() -> None:
    module = load_module(module_text({**NOTE, "description": "The arguments."}, NOTE))
    assert module.XInput.__doc__ == "A tool."


def test_without_one_an_input_has_its_schemas_description() -> None:
    assert load_module(module_text({**NOTE, "description": "The note."}, description="")).XInput.__doc__ == "The note."
    assert load_module(module_text(NOTE, description="")).XInput.__doc__ is None


def test_an_output_has_its_own_schemas_description() -> None:
    described = {**NOTE, "description": "The note that was added."}
    assert load_module(module_text(NOTE, described)).XOutput.__doc__ == "The note that was added."
    assert load_module(module_text(NOTE, NOTE)).XOutput.__doc__ is None
    root = {"type": "integer", "description": "How many notes there are."}
    assert load_module(module_text(NOTE, root)).XOutput.__doc__ == "How many notes there are."


def test_an_output_without_a_schema_does_not_repeat_what_the_tool_does() -> None:
    doc = load_module(module_text(NOTE)).XOutput.__doc__
    assert doc == "What the tool returned; its spec declares no output schema."
