"""Pydantic models as tools: one is a tool's input, ``"A -> B"`` names its output, too. Who runs them is up to the project."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from toolkit.codegen.imports.importers.result import Imported
from toolkit.codegen.imports.importers.subprocess_reader import read_modules
from toolkit.codegen.imports.settings import ImportSettings
from toolkit.codegen.settings import find_settings
from toolkit.errors import SpecError


def import_models(settings: ImportSettings, root: Path) -> Imported:
    """A tool for each entry, called as its input model in snake case; its docstring describes it."""
    where = f"{settings.pointer}/models"
    told = read_modules(find_settings(root), "models_reader.py", settings.models, "models", where)
    if told["problems"]:
        raise SpecError(f"{problem} @ {where}" for problem in told["problems"])
    return Imported({}, [_tool(model) for model in told["tools"]])


def _tool(model: dict[str, Any]) -> dict[str, Any]:
    # The tool's description is the model's own: twice it would only cost tokens.
    schema = {key: value for key, value in model["inputSchema"].items() if key not in ("title", "description")}
    tool = {"name": tool_name(model["class"]), "description": model["description"], "inputSchema": schema}
    return tool if model["outputSchema"] is None else {**tool, "outputSchema": model["outputSchema"]}


def tool_name(class_name: str) -> str:
    """A class name as a tool is called.

    >>> [tool_name(name) for name in ("Query", "HTTPQuery", "SendMail2")]
    ['query', 'http_query', 'send_mail2']
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", class_name).lower()
