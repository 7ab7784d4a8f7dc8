"""A program that ``functions`` runs in its own process: imports modules and writes the tools they hold to a file.

``project_process`` says what those modules see of the generated package.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from toolkit.codegen.imports.own_types import describe_own_type
from toolkit.codegen.imports.project_process import enter_project, explain_failure, write_answer
from toolkit.errors import SetupError
from toolkit.runtime.functions import FunctionTool, LazyTool
from toolkit.runtime.packs import ALL, CodeTool, load_pack


def main(answer: str, root: str, package: str, entries: Sequence[str]) -> None:
    """Writes ``{"tools": {entry: [...]}, "problems": [...]}``, or ``{"failed": reason}`` if a module cannot be imported.

    A problem is a message, an entry and a tool.
    """
    enter_project(root, package)
    tools: dict[str, list[dict[str, Any]]] = {}
    problems: list[tuple[str, str, str]] = []
    result: dict[str, Any] = {"tools": tools, "problems": problems}
    for entry in entries:
        try:
            pack = load_pack(entry if ":" in entry else f"{entry}:{ALL}")
        except BaseException as error:
            result = {"failed": explain_failure(entry, error, root)}
            break
        tools[entry] = list(_describe_tools(entry, pack.tools, problems))
        if not pack.tools:
            problems.append(("it holds no code-first tool", entry, ""))
    write_answer(result, answer)


def _describe_tools(
    entry: str, tools: Sequence[CodeTool], problems: list[tuple[str, str, str]]
) -> Iterator[dict[str, Any]]:
    for tool in tools:
        try:
            yield _describe_tool(_make_tool(tool))
        except SetupError as error:
            problems.append((str(error), entry, tool.name))


def _make_tool(tool: CodeTool) -> FunctionTool[..., Any]:
    if isinstance(tool, LazyTool) and tool.needs_context:
        raise SetupError(
            f"{tool.owner} needs a context, which only a toolkit has: remove it from 'functions', and pass it to the toolkit "
            f"in 'packs'"
        )
    if isinstance(tool, LazyTool):
        return tool.load(wait=lambda work: asyncio.run(_await_tool(work)))
    assert isinstance(tool, FunctionTool)
    return tool


async def _await_tool(work: Any) -> Any:
    return await work


def _describe_tool(tool: FunctionTool[..., Any]) -> dict[str, Any]:
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
    return {
        "spec": spec,
        "place": tool.origin.partition(":")[2],
        "function": tool.origin,
        "longDescription": tool.long_description,
        "ownOutput": None if tool.output.schema is None else describe_own_type(tool.signature.returns),
    }


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:])
