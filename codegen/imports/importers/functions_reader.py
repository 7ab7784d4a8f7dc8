"""Run by ``functions`` in a process of its own: imports modules and writes down the tools they hold.

See ``beside_project`` for what they find there.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from toolkit.codegen.imports.importers.project_process import answer_with, enter_project, why
from toolkit.errors import SetupError
from toolkit.runtime.catalog.join_packs import ALL, load_pack
from toolkit.runtime.catalog.pack import CodeTool
from toolkit.runtime.functions.define import FunctionTool
from toolkit.runtime.functions.lazy import LazyTool


def main(answer: str, root: str, package: str, entries: Sequence[str]) -> None:
    """Writes ``{"tools": {entry: [...]}, "problems": [...]}``, or ``{"failed": why}`` where a module cannot be imported."""
    enter_project(root, package)
    tools: dict[str, list[dict[str, Any]]] = {}
    problems: list[str] = []
    told: dict[str, Any] = {"tools": tools, "problems": problems}
    for entry in entries:
        try:
            pack = load_pack(entry if ":" in entry else f"{entry}:{ALL}")
        except BaseException as error:
            told = {"failed": why(entry, error, root)}
            break
        tools[entry] = list(_described(entry, pack.tools, problems))
        if not pack.tools:
            problems.append(f"it holds no tool made of a function @ {entry}")
    answer_with(told, answer)


def _described(entry: str, tools: Sequence[CodeTool], problems: list[str]) -> Iterator[dict[str, Any]]:
    for tool in tools:
        try:
            yield _description(_made(tool))
        except SetupError as error:
            problems.append(f"{error} @ {entry}:{tool.name}")


def _made(tool: CodeTool) -> FunctionTool[..., Any]:
    if isinstance(tool, LazyTool) and tool.needs_context:
        raise SetupError(
            f"{tool.owner} makes it for a context, which only a toolkit has: keep it out of 'functions', and give it to the "
            f"toolkit among its packs"
        )
    if isinstance(tool, LazyTool):
        return tool.load(wait=lambda work: asyncio.run(_awaited(work)))
    assert isinstance(tool, FunctionTool)
    return tool


async def _awaited(work: Any) -> Any:
    return await work


def _description(tool: FunctionTool[..., Any]) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": tool.arguments.schema,
        "permissions": {"required": tool.permissions.required, "optional": tool.permissions.optional},
        "parallel": tool.parallel,
        "blocking": tool.blocking,
    }
    if tool.title is not None:
        spec["title"] = tool.title
    if tool.output.schema is not None:
        spec["outputSchema"] = tool.output.schema
    place = tool.origin.partition(":")[2]
    return {"spec": spec, "place": place, "function": tool.origin, "longDescription": tool.long_description}


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:])
