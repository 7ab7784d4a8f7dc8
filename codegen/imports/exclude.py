"""What an origin offers and a project cannot have, or does not want: one tool of a server must not cost all the others."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from toolkit.codegen.imports.importers.result import Imported
from toolkit.codegen.imports.settings import ImportKind, ImportSettings
from toolkit.codegen.lint import schema_mistakes
from toolkit.errors import SetupError, SpecError, nearest
from toolkit.spec.load import load_spec_text
from toolkit.spec.model import ToolSpec
from toolkit.spec.problems import shown

_MAX_NAMED: Final = 20
_MAX_NAME: Final = 200
_TWINS: Final[dict[ImportKind, str]] = {
    "mcp": "the server itself lists",
    "tools": "the file itself has",
    "openapi": "the document itself has",
    "functions": "the functions themselves make",
    "models": "the models themselves make",
}


def without_unwanted(item: ImportSettings, imported: Imported) -> Imported:
    """What is left when the settings' ``without`` is taken out; tools that nothing can tell apart are refused."""
    names = [tool["name"] for tool in imported.tools]
    unknown = [
        # No error: a server that dropped the tool by itself has done what was asked for.
        f"there is no tool {shown(name)} that 'without' could leave out.{nearest(name, names)} @ {item.pointer}/without"
        for name in item.without
        if name not in names
    ]
    left = [tool for tool in imported.tools if tool["name"] not in item.without]
    _refuse_twins(item, [tool["name"] for tool in left])
    return replace(imported, tools=left, notes=(*imported.notes, *unknown))


def _refuse_twins(item: ImportSettings, names: Iterable[str]) -> None:
    twins = [name for name, count in Counter(names).items() if count > 1]
    if twins:
        ways = {
            "functions": "give one of them name=..., or import them in two tables, each with its 'prefix'",
            "models": "import them in two tables, each with its 'prefix'",
        }
        way = ways.get(item.kind) or f"only it can tell them apart; {way_out(item, twins)}"
        told = ", ".join(map(shown, twins[:_MAX_NAMED]))
        raise SetupError(f"{_TWINS[item.kind]} more than one tool named {told}: {way} @ {item.pointer}")


def loaded(item: ImportSettings, text: str, source: str, tools: Sequence[dict[str, Any]]) -> list[ToolSpec]:
    """The specs of an imported text; where it has mistakes, their tools are named with the way to do without them."""
    try:
        return load_spec_text(text, source, None)
    except SpecError as error:
        places = [re.match(r"/tools/(\d+)", problem.rpartition(f" @ {source}:")[2]) for problem in error.problems]
        names = dict.fromkeys(tools[int(place[1])]["name"] for place in places if place)
        if not names:
            raise
        told = f"nothing was imported: {way_out(item, list(names))} @ {item.pointer}"
        raise SpecError([*error.problems, told]) from None


def refusals(item: ImportSettings, specs: Iterable[ToolSpec]) -> tuple[str, ...]:
    """Notes on tools that ``toolkit generate`` is going to refuse, and how to have the others."""
    refused = {spec.name: mistakes for spec in specs if (mistakes := schema_mistakes(spec))}
    if not refused:
        return ()
    notes = (
        f"`toolkit generate` will refuse {shown(name)}: {mistakes[0]}"
        + (f" (and {len(mistakes) - 1} more)" if len(mistakes) > 1 else "")
        for name, mistakes in refused.items()
    )
    # First, and so never among the notes that are too many to be shown.
    return (f"not every tool can be generated: {way_out(item, list(refused))} @ {item.pointer}", *notes)


def way_out(item: ImportSettings, names: Sequence[str]) -> str:
    """How to have an import without these tools."""
    if item.kind == "openapi":
        return "name the operations you need in 'operations'"
    if item.kind in ("functions", "models"):
        return "change them where they are written"
    wanted = [*item.without, *names]
    more = f" and {len(wanted) - _MAX_NAMED} more" if len(wanted) > _MAX_NAMED else ""
    listed = ", ".join(json.dumps(name[:_MAX_NAME]) for name in wanted[:_MAX_NAMED])
    return f"leave out what you cannot have with without = [{listed}]{more}"
