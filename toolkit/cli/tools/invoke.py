"""``toolkit invoke``: run one tool."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from toolkit.cli.options import AsJson, Package, ToolNameArgument, Workspace
from toolkit.cli.package import load_tool
from toolkit.cli.report import print_json, print_text, report_errors, show_waiting
from toolkit.cli.tools.arguments import GivenArguments, parse_tool_arguments
from toolkit.cli.usage import show_help


def invoke(
    context: typer.Context,
    name: ToolNameArgument,
    arguments: GivenArguments = None,
    workspace: Workspace = Path(),
    package: Package = None,
    as_json: AsJson = False,
) -> None:
    """Run one tool and print what a model would read. The policy allows this tool and no other.

    The arguments of the tool are options (`toolkit invoke TOOL --help` lists them), or one JSON object. An option replaces
    the same key of the object. An argument named like an option below has the prefix --tool-, as in --tool-json.
    """
    if name in ("--help", "-h"):
        show_help(context)
        return
    with report_errors(as_json, spec_mistakes=2):
        module, row = load_tool(package, name)
        given = parse_tool_arguments(row, arguments or (), context)
        policy = module.SecurityPolicy(default="deny", tools={name: "allow"})
        with module.create_agent_toolkit(module.ToolkitContext(workspace=workspace, policy=policy)) as toolkit:
            with show_waiting(f"running {name}"):
                message = toolkit.invoke(name, given)
            if as_json:
                print_json(_as_data(message))
            else:
                print_text(message.text())


def _as_data(message: Any) -> dict[str, Any]:
    from pydantic import BaseModel
    from pydantic_core import to_jsonable_python

    content = message.content
    if isinstance(content, BaseModel):
        content = content.model_dump(mode="json", by_alias=True, exclude_unset=True)
    else:  # what a function of the project returned: any type
        content = to_jsonable_python(content, by_alias=True)
    return {"name": message.name, "title": message.title, "metadata": dict(message.metadata), "content": content}
