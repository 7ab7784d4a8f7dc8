"""Pydantic models as tools: ``"A"`` is a tool's input, ``"A -> B"`` also names its output. The project has the handlers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from toolkit.codegen.imports.importers.result import ImportResult
from toolkit.codegen.imports.python_modules import read_modules
from toolkit.codegen.imports.settings import ImportSettings
from toolkit.codegen.settings import find_settings
from toolkit.errors import SpecError


def import_models(settings: ImportSettings, root: Path) -> ImportResult:
    """A tool for each entry. Its name is the input model's in snake case, its description the model's docstring."""
    pointer = settings.finding("", "models").pointer
    answer = read_modules(find_settings(root), "models_reader.py", settings.models, "models", pointer)
    if answer["problems"]:
        raise SpecError(settings.finding(problem, "models") for problem in answer["problems"])
    return ImportResult({}, [_tool(model) for model in answer["tools"]])


def _tool(model: dict[str, Any]) -> dict[str, Any]:
    # The tool has the model's description already: repeating it would only cost tokens.
    schema = {key: value for key, value in model["inputSchema"].items() if key not in ("title", "description")}
    tool = {"name": tool_name(model["class"]), "description": model["description"], "inputSchema": schema}
    return tool if model["outputSchema"] is None else {**tool, "outputSchema": model["outputSchema"]}


def tool_name(class_name: str) -> str:
    """The tool name for a class name.

    >>> [tool_name(name) for name in ("Query", "HTTPQuery", "SendMail2")]
    ['query', 'http_query', 'send_mail2']
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", class_name).lower()
