"""``toolkit tools | describe | invoke``: look at the tools of a generated package, or run one of them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from toolkit.cli.generated_package import load_package, load_tool, read_arguments
from toolkit.cli.options import Arguments, AsJson, Package, ToolNameArgument, Workspace
from toolkit.cli.report import print_json, print_line, print_text, report_errors

_UNCONFINED: Final = "without a sandbox"
_LISTED: Final = (
    "name", "title", "description", "annotations", "required", "optional", "parallel", "inputSchema", "outputSchema",
)  # fmt: skip


def list_tools(package: Package = None, as_json: AsJson = False) -> None:
    """List the tools of a generated package.

    Each line has the name, the required permissions and the description. Brackets hold the tool's own hints, and whether it
    runs without a sandbox.
    """
    from toolkit.guard.policy.hints import describe_hints

    with report_errors(as_json, spec_mistakes=2):
        rows = load_package(package).CATALOG.definitions.values()
    if as_json:
        print_json([{key: row[key] for key in _LISTED} for row in rows])
        return
    width = max((len(row["name"]) for row in rows), default=0)
    for row in rows:
        permissions = ",".join(row["required"]) or "-"
        hints = ", ".join([*describe_hints(row["annotations"]), *([_UNCONFINED] if row.get("unconfined") else [])])
        description = " ".join(row["description"].split())
        print_line(f"{row['name']:<{width}}  {permissions:<8}  {description}{f' [{hints}]' if hints else ''}")


def describe(name: ToolNameArgument, package: Package = None, as_json: AsJson = False) -> None:
    """Show what one tool does, its input and its output."""
    from toolkit.guard.policy.hints import describe_hints
    from toolkit.jsonschema.outline import outline

    with report_errors(as_json, spec_mistakes=2):
        _, row = load_tool(package, name)
    if as_json:
        print_json(row)
        return
    description = row["longDescription"] or row["description"]
    # Indented, so that no line of a description can pass for one of the lines below.
    print_text(f"{row['name']}: {description}".replace("\n", "\n  "))
    print_line(f"permissions: {', '.join(row['required']) or 'none'}")
    if hints := describe_hints(row["annotations"]):
        print_line(f"hints: {', '.join(hints)}")
    if origin := row.get("origin"):
        confined = f", {_UNCONFINED}" if row.get("unconfined") else ""
        print_line(f"imported: {row['originalName']!r} from {origin['name']!r} ({origin['kind']}{confined})")
    for title, schema in (("input", row["inputSchema"]), ("output", row["outputSchema"])):
        print_text(f"\n{title}:")
        for line in outline(schema):
            print_line(f"  {line}")


def invoke(
    name: ToolNameArgument,
    arguments: Arguments = "{}",
    workspace: Workspace = Path(),
    package: Package = None,
    as_json: AsJson = False,
) -> None:
    """Run one tool and print what a model would read. The policy allows this tool and no other."""
    with report_errors(as_json, spec_mistakes=2):
        module, _ = load_tool(package, name)
        text = read_arguments(arguments)
        policy = module.SecurityPolicy(default="deny", tools={name: "allow"})
        with module.create_agent_toolkit(module.ToolkitContext(workspace=workspace, policy=policy)) as toolkit:
            message = toolkit.execute_raw(name, text)
            data = {"name": message.name, "title": message.title, "metadata": dict(message.metadata)}
            content = message.content.model_dump(mode="json", by_alias=True, exclude_unset=True)
            output = message.text()
    if as_json:
        print_json({**data, "content": content})
    else:
        print_text(output)
