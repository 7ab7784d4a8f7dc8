"""Generated model modules without a project around them: schemas in, classes out."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from pydantic import BaseModel

from toolkit.codegen.package.models import render_models
from toolkit.codegen.schema.document import Document
from toolkit.codegen.schema.flatten import flatten
from toolkit.errors import SpecError
from toolkit.schema.problems import Finding


def documents(
    inputs: dict[str, Any], outputs: dict[str, Any] | None = None, *, rich_formats: bool = False
) -> tuple[Document, Document | None]:
    """The flat documents of a tool ``X``; its mistakes raise."""
    flat, problems = flatten(inputs, "XInput", is_input=True, rich_formats=rich_formats)
    findings = [Finding(text, "x.json", f"/inputSchema{pointer}") for text, pointer in problems]
    answer = None
    if outputs is not None:
        answer, problems = flatten(outputs, "XOutput", rich_formats=rich_formats)
        findings += [Finding(text, "x.json", f"/outputSchema{pointer}") for text, pointer in problems]
    if findings:
        raise SpecError(findings)
    return flat, answer


def module_text(inputs: dict[str, Any], outputs: dict[str, Any] | None = None, description: str = "A tool.") -> str:
    return render_models("x.json", "X", description, *documents(inputs, outputs))


def load_module(text: str, name: str = "generated_for_a_test") -> ModuleType:
    """The text as a module; forward references find it under its name."""
    module = ModuleType(name)
    sys.modules[name] = module
    exec(compile(text, f"<{name}>", "exec"), module.__dict__)
    return module


def input_model(schema: dict[str, Any], name: str = "generated_for_a_test") -> type[BaseModel]:
    model: type[BaseModel] = load_module(module_text(schema), name).XInput
    return model
