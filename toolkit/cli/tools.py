"""``toolkit tools | describe | invoke``: the tools of a generated package, listed, described and run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from toolkit.cli.package import load_package, load_tool
from toolkit.cli.report import (
    Styled,
    count,
    is_on_terminal,
    print_json,
    print_line,
    print_paragraphs,
    print_styled,
    print_table,
    print_text,
    print_warning,
    report_errors,
    show_waiting,
)
from toolkit.cli.tool_options import AsJson, GivenArguments, Package, ToolNameArgument, Workspace, parse_tool_arguments
from toolkit.cli.usage import show_help

UNCONFINED: Final = "without a sandbox"

_LISTED: Final = (
    "name", "title", "description", "annotations", "required", "optional", "parallel", "origin",
    "inputSchema", "outputSchema",
)  # fmt: skip
_BUILT_IN: Final = "toolkit.generated.models."


def list_tools(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="WORD",
            help="List only tools with all these words in their name or description.",
            show_default=False,
        ),
    ] = None,
    package: Package = None,
    as_json: AsJson = False,
) -> None:
    """List the tools of this project.

    Each line has the name, the required permissions and the description. On a terminal the tools are grouped by origin, and
    lines are cut to its width. In a pipe brackets hold the tool's own hints, and whether it runs without a sandbox.
    """
    with report_errors(as_json, spec_mistakes=2):
        every = list(load_package(package).CATALOG.definitions.values())
    rows = [row for row in every if _has_words(row, words or ())]
    if as_json:
        print_json([{key: row[key] for key in _LISTED} for row in rows])
    elif not rows and words:
        print_warning(
            f"no tool has {' and '.join(map(repr, words))} in its name or description; {count(len(every), 'tool')} searched"
        )
    elif is_on_terminal():
        _print_groups(rows, len(every))
    else:
        _print_lines(rows)
    if words and not rows:
        raise typer.Exit(1)


def _has_words(row: Mapping[str, Any], words: Sequence[str]) -> bool:
    text = " ".join(str(row[key] or "") for key in ("name", "title", "description")).lower()
    return all(word.lower() in text for word in words)


def _print_lines(rows: Sequence[Mapping[str, Any]]) -> None:
    from toolkit.guard.policy.rule import describe_hints

    width = max((len(row["name"]) for row in rows), default=0)
    for row in rows:
        hints = ", ".join([*describe_hints(row["annotations"]), *([UNCONFINED] if row.get("unconfined") else [])])
        description = " ".join(row["description"].split())
        print_line(f"{row['name']:<{width}}  {_permissions(row):<8}  {description}{f' [{hints}]' if hints else ''}")


def _print_groups(rows: Sequence[Mapping[str, Any]], total: int) -> None:
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault(_origin(row), []).append(row)
    columns = [_cells(row) for row in rows]
    widths = [max(len(cells[position].text) for cells in columns) for position in (0, 1)]  # the same in all groups
    for title, members in groups.items():
        print_styled(Styled(title, "bold"), Styled(f" ({len(members)})", "dim"))
        print_table(("", "", ""), map(_cells, members), cut=True, indent=2, widths=widths)
    shown = f"{len(rows)} of {count(total, 'tool')}" if len(rows) != total else count(total, "tool")
    print_styled(Styled(f"{shown}; `toolkit describe NAME` shows one of them", "dim"))


def _cells(row: Mapping[str, Any]) -> tuple[Styled, Styled, Styled]:
    return (
        Styled(row["name"], "cyan"),
        Styled(_permissions(row), "magenta"),
        Styled(_first_sentence(row["description"])),
    )


def _first_sentence(text: str) -> str:
    """
    >>> _first_sentence("Reads files, e.g. a.txt. Fast.")
    'Reads files, e.g. a.txt.'
    """
    line = " ".join(text.split())
    for end in (at for at in range(len(line)) if line.startswith(". ", at)):
        if line[end + 2].isupper() and not line[: end + 1].endswith(("e.g.", "i.e.")):
            return line[: end + 1]
    return line


def _permissions(row: Mapping[str, Any]) -> str:
    return ",".join(row["required"]) or "-"


def _origin(row: Mapping[str, Any]) -> str:
    """Where a tool comes from: an import, the built-in tools, or the specs of a package."""
    if origin := row.get("origin"):
        return f"imported from {origin['name']}"
    module = str(row["module"])
    return "built-in" if module.startswith(_BUILT_IN) else module.partition(".models.")[0]


# ----------------------------------------------------------------------------------------------------------------------
# ``toolkit describe``.


def describe(name: ToolNameArgument, package: Package = None, as_json: AsJson = False) -> None:
    """Show one tool: how to call it, what it does, input and output."""
    with report_errors(as_json, spec_mistakes=2):
        _, row = load_tool(package, name)
    if as_json:
        print_json(row)
        return
    _print_header(row)
    _print_fields("input", row["inputSchema"])
    _print_fields("output", row["outputSchema"])
    _print_examples(row)


def _print_header(row: Mapping[str, Any]) -> None:
    from toolkit.cli.signature import python_signature
    from toolkit.guard.policy.rule import describe_hints

    for line in python_signature(row).split("\n"):
        print_styled(Styled(line, "cyan"))
    if description := (row["longDescription"] or row["description"]).strip("\n"):
        print_line("")
        print_paragraphs(description)
    print_line("")
    _print_fact("tool", row["name"])
    _print_fact("permissions", ", ".join(row["required"]) or "none")
    if row["optional"]:
        _print_fact("if granted", ", ".join(row["optional"]))
    if hints := describe_hints(row["annotations"]):
        _print_fact("hints", ", ".join(hints))
    if origin := row.get("origin"):
        confined = f", {UNCONFINED}" if row.get("unconfined") else ""
        _print_fact("imported", f"{row['originalName']!r} from {origin['name']!r} ({origin['kind']}{confined})")
    if row["nested"]:
        _print_fact("types", ", ".join(row["nested"]))


def _print_fact(title: str, text: str) -> None:
    print_styled(Styled(f"{title}:", "bold"), f" {text}")


def _print_fields(title: str, schema: Any) -> None:
    from toolkit.schema.keywords import outline

    rows = outline(schema)
    print_line("")
    marked = " (* required)" if any(row.name.endswith("*") for row in rows) else ""
    print_styled(Styled(f"{title}{marked}:", "bold"))
    if rows[0].name:
        print_table(("", "", ""), ((Styled(row.name, "cyan"), row.type, row.description) for row in rows), indent=2)
    else:
        print_line(f"  {rows[0].type}")


def _print_examples(row: Mapping[str, Any]) -> None:
    from toolkit.cli.signature import example_call
    from toolkit.cli.tool_options import example_command

    print_line("")
    print_styled(Styled("example:", "bold"))
    for line in example_call(row).split("\n"):
        print_line(f"  {line}")
    print_line(f"  $ {example_command(row)}")


# ----------------------------------------------------------------------------------------------------------------------
# ``toolkit invoke``.


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
