"""``toolkit tools``: one line for each tool of a generated package."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

import typer

from toolkit.cli.options import AsJson, Package
from toolkit.cli.package import load_package
from toolkit.cli.report import (
    count,
    is_on_terminal,
    print_json,
    print_line,
    print_styled,
    print_table,
    print_warning,
    report_errors,
)
from toolkit.cli.style import Styled

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
    from toolkit.guard.policy.hints import describe_hints

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
