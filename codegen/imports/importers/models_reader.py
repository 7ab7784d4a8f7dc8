"""Run by ``models`` in a process of its own: imports pydantic models and writes down their JSON Schemas."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Sequence
from functools import reduce
from typing import Any, Literal

from pydantic import BaseModel
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUserError

from toolkit.codegen.imports.importers.project_process import answer_with, enter_project, why


def main(answer: str, root: str, package: str, entries: Sequence[str]) -> None:
    """Writes ``{"tools": [...], "problems": [...]}``, or ``{"failed": why}`` where a module cannot be imported."""
    enter_project(root, package)
    tools: list[dict[str, Any]] = []
    problems: list[str] = []
    told: dict[str, Any] = {"tools": tools, "problems": problems}
    for entry in entries:
        names = [name.strip() for name in entry.split("->")]
        try:
            found = [_loaded(name) for name in names]
        except BaseException as error:  # whatever a module raises when it is imported
            told = {"failed": why(entry, error, root)}
            break
        problems += [
            f"{name!r} is no pydantic model" for name, model in zip(names, found, strict=True) if not _is_model(model)
        ]
        if all(map(_is_model, found)):
            tools += _described(entry, found, problems)
    answer_with(told, answer)


def _loaded(name: str) -> Any:
    module, _, path = name.partition(":")
    return reduce(getattr, path.split("."), importlib.import_module(module))


def _is_model(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, BaseModel)


def _described(entry: str, models: Sequence[type[BaseModel]], problems: list[str]) -> list[dict[str, Any]]:
    try:
        taken = _schema(models[0], "validation")
        given = _schema(models[1], "serialization") if len(models) > 1 else None
    except (PydanticInvalidForJsonSchema, PydanticUserError) as error:
        problems.append(f"{entry!r} has no JSON Schema: {str(error).splitlines()[0].rstrip('.')}")
        return []
    described = inspect.cleandoc(vars(models[0]).get("__doc__") or "")
    return [
        {"class": models[0].__name__, "description": described, "inputSchema": taken, "outputSchema": given},
    ]


def _schema(model: type[BaseModel], mode: Literal["validation", "serialization"]) -> dict[str, Any]:
    """As pydantic tells it. A model that contains itself stands in ``$defs`` only; a tool's schema starts at the top."""
    schema = model.model_json_schema(mode=mode)
    if "$ref" not in schema:
        return schema
    definitions = schema["$defs"]
    return {**definitions[schema["$ref"].rpartition("/")[2]], "$defs": definitions}


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:])
