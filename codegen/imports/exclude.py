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
from toolkit.spec.load import load_spec_text
from toolkit.spec.model import ToolSpec
from toolkit.spec.problems import quote

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
        f"'without' names the tool {quote(name)}, which does not exist.{nearest(name, names)} @ {item.pointer}/without"
        for name in item.without
        if name not in names
    ]
    left = [tool for tool in imported.tools if tool["name"] not in item.without]
    _refuse_duplicates(item, [tool["name"] for tool in left])
    return replace(imported, tools=left, notes=(*imported.notes, *unknown))


def _refuse_duplicates(item: ImportSettings, names: Iterable[str]) -> None:
    duplicates = [name for name, count in Counter(names).items() if count > 1]
    if duplicates:
        ways = {
            "functions": "give one of them name=..., or import them in two tables with different prefixes",
            "models": "import them in two tables with different prefixes",
        }
        way = ways.get(item.kind) or f"they cannot be told apart; {suggest_way_out(item, duplicates)}"
        named = ", ".join(map(quote, duplicates[:_MAX_NAMED]))
        raise SetupError(f"{_DUPLICATES[item.kind]} more than one tool named {named}: {way} @ {item.pointer}")


def load_imported(item: ImportSettings, text: str, source: str, tools: Sequence[dict[str, Any]]) -> list[ToolSpec]:
    """The specs of an imported text. If some have mistakes, the error also says how to leave those tools out."""
    try:
        return load_spec_text(text, source, None)
    except SpecError as error:
        places = [re.match(r"/tools/(\d+)", problem.rpartition(f" @ {source}:")[2]) for problem in error.problems]
        names = dict.fromkeys(tools[int(place[1])]["name"] for place in places if place)
        if not names:
            raise
        advice = f"nothing was imported: {suggest_way_out(item, list(names))} @ {item.pointer}"
        raise SpecError([*error.problems, advice]) from None


def note_refused_tools(item: ImportSettings, specs: Iterable[ToolSpec]) -> tuple[str, ...]:
    """Notes on tools that ``toolkit generate`` will refuse, and how to use the others."""
    refused = {spec.name: mistakes for spec in specs if (mistakes := schema_mistakes(spec))}
    if not refused:
        return ()
    notes = (
        f"`toolkit generate` will refuse {quote(name)}: {mistakes[0]}"
        + (f" (and {len(mistakes) - 1} more)" if len(mistakes) > 1 else "")
        for name, mistakes in refused.items()
    )
    # First, so that it is shown even if there are too many notes.
    return (f"some tools cannot be generated: {suggest_way_out(item, list(refused))} @ {item.pointer}", *notes)


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
