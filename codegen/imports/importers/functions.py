"""Code-first tools as specs: from the modules under ``functions`` in the settings, and from an import of functions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from toolkit.codegen.imports.importers.result import ImportResult
from toolkit.codegen.imports.python_modules import read_modules
from toolkit.codegen.imports.settings import ImportSettings
from toolkit.codegen.settings import Settings, find_settings
from toolkit.errors import SpecError
from toolkit.schema.problems import Finding, Problems
from toolkit.schema.spec import ToolSpec
from toolkit.spec.check import check_document
from toolkit.spec.text_limits import NOT_UNICODE, is_unicode

_READER: Final = "functions_reader.py"


def read_functions(settings: Settings) -> dict[str, list[ToolSpec]]:
    """The specs of each entry of ``functions``, in order; all mistakes are raised at once."""
    if not settings.functions:
        return {}
    answer = _read_entries(settings, settings.functions, "/tool/toolkit/functions")
    problems = _list_problems(answer)
    found: dict[str, list[ToolSpec]] = {}
    for entry, tools in answer["tools"].items():
        found[entry] = [spec for tool in tools for spec in _check_tool(entry, tool, problems)]
    if problems:
        raise SpecError(problems)
    return found


def import_functions(settings: ImportSettings, root: Path) -> ImportResult:
    """The tools of modules as in a spec file; each names the function that runs it."""
    answer = _read_entries(find_settings(root), settings.functions, settings.finding("", "functions").pointer)
    problems = _list_problems(answer)
    tools: list[dict[str, Any]] = []
    for entry, some in answer["tools"].items():
        for tool in some:
            if tool["longDescription"] is not None:
                message = (
                    f"{tool['spec']['name']!r} has a description file, which an import cannot keep;"
                    " list its module under 'functions' in [tool.toolkit] instead"
                )
                problems.append(Finding(message, entry, tool["place"]))
            tools.append({**tool["spec"], "function": tool["function"]})
    if problems:
        raise SpecError(problems)
    return ImportResult({}, tools)


def _read_entries(settings: Settings, entries: Sequence[str], pointer: str) -> dict[str, Any]:
    return read_modules(settings, _READER, entries, "functions", pointer)


def _list_problems(answer: dict[str, Any]) -> list[Finding]:
    return [Finding(message, entry, place) for message, entry, place in answer["problems"]]


def _check_tool(entry: str, tool: dict[str, Any], problems: list[Finding]) -> list[ToolSpec]:
    """One tool, checked like a spec in a file."""
    mistakes = Problems(entry)
    place = tool["place"]
    if not is_unicode(json.dumps(tool, ensure_ascii=False)):
        problems.append(Finding(NOT_UNICODE, entry, place))
        return []
    specs = check_document(tool["spec"], mistakes, None)
    problems += [Finding(finding.message, entry, place + finding.pointer) for finding in mistakes.found]
    long, own = tool["longDescription"], tool["ownOutput"]
    return [
        replace(spec, pointer=place, function=tool["function"], long_description=long, own_output=own) for spec in specs
    ]
