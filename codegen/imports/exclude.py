"""Tools of an origin that a project cannot use or does not want. One bad tool must not cost all the others."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from toolkit.codegen.imports.importers.result import ImportResult
from toolkit.codegen.imports.settings import ImportKind, ImportSettings
from toolkit.codegen.lint import schema_mistakes
from toolkit.errors import SetupError, SpecError, nearest
from toolkit.schema.problems import Finding, quote
from toolkit.schema.spec import ToolSpec
from toolkit.spec.load import read_spec_text

_MAX_NAMED: Final = 20
_MAX_NAME: Final = 200
_DUPLICATES: Final[dict[ImportKind, str]] = {
    "mcp": "the server lists",
    "tools": "the file has",
    "openapi": "the document has",
    "functions": "the functions define",
    "models": "the models define",
}


def exclude_unwanted(item: ImportSettings, imported: ImportResult) -> ImportResult:
    """The result without the tools that ``without`` names. Several tools with the same name are refused."""
    names = [tool["name"] for tool in imported.tools]
    unknown = [
        # Not an error: the server may have removed the tool itself.
        item.finding(f"'without' names the tool {quote(name)}, which does not exist{_suggest(name, names)}", "without")
        for name in item.without
        if name not in names
    ]
    left = [tool for tool in imported.tools if tool["name"] not in item.without]
    _refuse_duplicates(item, [tool["name"] for tool in left])
    return replace(imported, tools=left, notes=(*imported.notes, *unknown))


def _suggest(name: str, names: Sequence[str]) -> str:
    near = nearest(name, names)
    return near and f".{near}"


def _refuse_duplicates(item: ImportSettings, names: Iterable[str]) -> None:
    duplicates = [name for name, count in Counter(names).items() if count > 1]
    if duplicates:
        ways = {
            "functions": "give one of them name=..., or import them in two tables with different prefixes",
            "models": "import them in two tables with different prefixes",
        }
        way = ways.get(item.kind) or f"they cannot be told apart; {suggest_way_out(item, duplicates)}"
        named = ", ".join(map(quote, duplicates[:_MAX_NAMED]))
        raise SetupError([item.finding(f"{_DUPLICATES[item.kind]} more than one tool named {named}: {way}")])


def load_imported(item: ImportSettings, text: str, source: str, tools: Sequence[dict[str, Any]]) -> list[ToolSpec]:
    """The specs of an imported text. If some have mistakes, the error also says how to leave those tools out.

    The text is in no file yet, so the error is about the import's table in the settings.
    """
    specs, findings = read_spec_text(text, source, None)
    if not findings:
        return specs
    places = [re.match(r"/tools/(\d+)", finding.pointer) for finding in findings]
    names = [tools[int(place[1])]["name"] if place else None for place in places]
    mistakes = [_name_tool(item, *pair) for pair in zip(findings, names, strict=True)]
    bad = list(dict.fromkeys(name for name in names if name is not None))
    advice = [item.finding(f"nothing was imported: {suggest_way_out(item, bad)}")] if bad else []
    raise SpecError([*mistakes, *advice])


def _name_tool(item: ImportSettings, finding: Finding, name: str | None) -> Finding:
    if name is None:
        return item.finding(finding.message)
    place = re.sub(r"^/tools/\d+", "", finding.pointer)
    return item.finding(f"the tool {quote(name)}: {finding.message}" + (f" (at {place})" if place else ""))


def note_refused_tools(item: ImportSettings, specs: Iterable[ToolSpec]) -> tuple[Finding, ...]:
    """Notes on tools that ``toolkit generate`` will refuse, and how to use the others."""
    refused = {spec.name: mistakes for spec in specs if (mistakes := schema_mistakes(spec))}
    if not refused:
        return ()
    notes = (
        replace(
            mistakes[0],
            message=f"`toolkit generate` will refuse {quote(name)}: {mistakes[0].message}"
            + (f" (and {len(mistakes) - 1} more)" if len(mistakes) > 1 else ""),
        )
        for name, mistakes in refused.items()
    )
    # First, so that it is shown even if there are too many notes.
    return (item.finding(f"some tools cannot be generated: {suggest_way_out(item, list(refused))}"), *notes)


def suggest_way_out(item: ImportSettings, names: Sequence[str]) -> str:
    """How to import the other tools without these."""
    if item.kind == "openapi":
        return "list the operations you need in 'operations'"
    if item.kind in ("functions", "models"):
        return "change them in the source"
    wanted = [*item.without, *names]
    more = f" and {len(wanted) - _MAX_NAMED} more" if len(wanted) > _MAX_NAMED else ""
    listed = ", ".join(json.dumps(name[:_MAX_NAME]) for name in wanted[:_MAX_NAMED])
    return f"leave them out with without = [{listed}]{more}"
