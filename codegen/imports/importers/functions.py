"""Code-first tools as specs: of the modules a project names under ``functions``, and of an import of functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from toolkit.codegen.imports.importers.result import Imported
from toolkit.codegen.imports.importers.subprocess_reader import read_modules
from toolkit.codegen.imports.settings import ImportSettings
from toolkit.codegen.settings import Settings, find_settings
from toolkit.errors import SpecError
from toolkit.spec.check import check_document
from toolkit.spec.model import ToolSpec
from toolkit.spec.problems import Problems

_READER: Final = "functions_reader.py"


def read_functions(settings: Settings) -> dict[str, list[ToolSpec]]:
    """What each entry of ``functions`` holds, in order; all mistakes are raised at once."""
    if not settings.functions:
        return {}
    told = _told(settings, settings.functions, "pyproject.toml:/tool/toolkit/functions")
    problems: list[str] = list(told["problems"])
    found: dict[str, list[ToolSpec]] = {}
    for entry, tools in told["tools"].items():
        found[entry] = [spec for tool in tools for spec in _specs(entry, tool, problems)]
    if problems:
        raise SpecError(problems)
    return found


def import_functions(settings: ImportSettings, root: Path) -> Imported:
    """The tools of modules as a spec file has them; each says which function runs it."""
    told = _told(find_settings(root), settings.functions, f"{settings.pointer}/functions")
    problems: list[str] = list(told["problems"])
    tools: list[dict[str, Any]] = []
    for entry, some in told["tools"].items():
        for tool in some:
            if tool["longDescription"] is not None:
                problems.append(
                    f"{tool['spec']['name']!r} has a description file, which an imported file cannot hold;"
                    f" name its module under 'functions' of [tool.toolkit] instead @ {entry}:{tool['place']}"
                )
            tools.append({**tool["spec"], "function": tool["function"]})
    if problems:
        raise SpecError(problems)
    return Imported({}, tools)


def _told(settings: Settings, entries: Sequence[str], where: str) -> dict[str, Any]:
    return read_modules(settings, _READER, entries, "functions", where)


def _specs(entry: str, tool: dict[str, Any], problems: list[str]) -> list[ToolSpec]:
    """One tool, judged as a spec in a file would be."""
    mistakes = Problems(entry)
    specs = check_document(tool["spec"], mistakes, None)
    place = tool["place"]
    problems += [f"{finding.message} @ {entry}:{place}{finding.pointer}" for finding in mistakes.found]
    long = tool["longDescription"]
    return [replace(spec, pointer=place, function=tool["function"], long_description=long) for spec in specs]
