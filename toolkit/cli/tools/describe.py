"""``toolkit describe``: one tool, as somebody who wants to call it needs it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolkit.cli.options import AsJson, Package, ToolNameArgument
from toolkit.cli.package import load_tool
from toolkit.cli.report import print_json, print_line, print_paragraphs, print_styled, print_table, report_errors
from toolkit.cli.style import Styled
from toolkit.cli.tools.listing import UNCONFINED


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
    from toolkit.guard.policy.hints import describe_hints

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
    from toolkit.jsonschema.outline import outline

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
