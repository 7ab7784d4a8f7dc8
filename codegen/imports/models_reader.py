"""A program that ``models`` runs in its own process: imports pydantic models and writes their JSON Schemas to a file."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Sequence
from functools import reduce
from typing import Any, Literal

from pydantic import BaseModel
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticUserError

from toolkit.codegen.imports.project_process import enter_project, explain_failure, write_answer


def main(answer: str, root: str, package: str, entries: Sequence[str]) -> None:
    """Writes ``{"tools": [...], "problems": [...]}``, or ``{"failed": reason}`` if a module cannot be imported."""
    enter_project(root, package)
    tools: list[dict[str, Any]] = []
    problems: list[str] = []
    result: dict[str, Any] = {"tools": tools, "problems": problems}
    for entry in entries:
        names = [name.strip() for name in entry.split("->")]
        try:
            found = [_load_name(name) for name in names]
        except BaseException as error:  # whatever a module raises when it is imported
            result = {"failed": explain_failure(entry, error, root)}
            break
        problems += [
            f"{name!r} is not a pydantic model"
            for name, model in zip(names, found, strict=True)
            if not _is_model(model)
        ]
        if all(map(_is_model, found)):
            tools += _describe_models(entry, found, problems)
    write_answer(result, answer)


def _load_name(name: str) -> Any:
    module, _, path = name.partition(":")
    return reduce(getattr, path.split("."), importlib.import_module(module))


def _is_model(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, BaseModel)


def _describe_models(entry: str, models: Sequence[type[BaseModel]], problems: list[str]) -> list[dict[str, Any]]:
    try:
        inputs = _schema(models[0], "validation")
        outputs = _schema(models[1], "serialization") if len(models) > 1 else None
    except (PydanticInvalidForJsonSchema, PydanticUserError) as error:
        problems.append(f"{entry!r} has no JSON Schema: {str(error).splitlines()[0].rstrip('.')}")
        return []
    description = inspect.cleandoc(vars(models[0]).get("__doc__") or "")
    return [
        {"class": models[0].__name__, "description": description, "inputSchema": inputs, "outputSchema": outputs},
    ]


def _schema(model: type[BaseModel], mode: Literal["validation", "serialization"]) -> dict[str, Any]:
    """The schema from pydantic. A recursive model is only in ``$defs``, but a tool's schema must start at the top."""
    schema = model.model_json_schema(mode=mode)
    if "$ref" not in schema:
        return schema
    definitions = schema["$defs"]
    return {**definitions[schema["$ref"].rpartition("/")[2]], "$defs": definitions}


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:])
