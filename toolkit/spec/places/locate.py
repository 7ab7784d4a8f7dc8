"""Findings with the line and the column of their places, and with paths that the reader's terminal can open."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Final

from toolkit.schema.places import PlaceTable
from toolkit.schema.problems import Finding, Unreadable
from toolkit.schema.spec_files import read_plain_file
from toolkit.spec.places.in_json import find_in_json
from toolkit.spec.places.in_toml import find_in_toml
from toolkit.spec.places.in_yaml import find_in_yaml

_FINDERS: Final[dict[str, Callable[[str, PlaceTable], None]]] = {
    ".json": find_in_json,
    ".toml": find_in_toml,
    ".yaml": find_in_yaml,
    ".yml": find_in_yaml,
}
_MAX_BYTES: Final = 32 * 1024 * 1024


def locate(findings: Iterable[Finding], base: Path) -> list[Finding]:
    """The same findings with line and column; ``base`` is the folder that their sources are relative to."""
    return _with_others(findings, lambda found: _locate_in_files(found, base))


def _locate_in_files(found: list[Finding], base: Path) -> list[Finding]:
    by_source: dict[str, list[int]] = {}
    for index, finding in enumerate(found):
        if not finding.file:
            by_source.setdefault(finding.source, []).append(index)
    for source, indexes in by_source.items():
        for index, located in zip(indexes, _locate_in_file([found[i] for i in indexes], base / source), strict=True):
            found[index] = located
    return found


def locate_in_text(findings: Iterable[Finding], text: str, suffix: str) -> list[Finding]:
    """The same findings with their line and column in ``text``, by the rules for files with this suffix."""
    return _with_others(findings, lambda found: _locate_in_text(found, text, suffix))


def _locate_in_text(found: list[Finding], text: str, suffix: str) -> list[Finding]:
    missing = [finding.pointer for finding in found if not finding.line]
    if not missing or suffix not in _FINDERS:
        return found
    places = PlaceTable(missing)
    _FINDERS[suffix](text, places)
    return [finding if finding.line else _at(finding, *places.find(finding.pointer)) for finding in found]


def show_path(path: str | Path) -> str:
    """The path relative to the current directory, or the absolute one where that is shorter.

    >>> show_path(Path.cwd() / "acme" / "tools.yaml")
    'acme/tools.yaml'
    """
    absolute = os.path.abspath(path)
    relative = os.path.relpath(absolute)
    shown = relative if len(relative) <= len(absolute) else absolute
    return os.fsencode(shown).decode("utf-8", "backslashreplace").replace(os.sep, "/")


def _with_others(findings: Iterable[Finding], find: Callable[[list[Finding]], list[Finding]]) -> list[Finding]:
    """The findings as ``find`` locates them; so are the other places that their messages name."""
    given = list(findings)
    found = find([*given, *(Finding("", one.other.source, one.other.pointer) for one in given if one.other)])
    others = iter(found[len(given) :])
    return [_name_other(finding, next(others)) if finding.other else finding for finding in found[: len(given)]]


def _name_other(finding: Finding, other: Finding) -> Finding:
    message = finding.message.replace(str(finding.other), other.place) if other.line else finding.message
    return replace(finding, message=message, other=None)


def _locate_in_file(findings: list[Finding], file: Path) -> list[Finding]:
    if not os.path.lexists(file):  # a module, or a file that is missing: that is the finding
        return findings
    shown = show_path(file)
    findings = [replace(finding, file=shown) for finding in findings]
    try:
        text = "" if file.is_dir() else read_plain_file(file, _MAX_BYTES)
    except Unreadable:
        return findings
    return _locate_in_text(findings, text, file.suffix)


def _at(finding: Finding, line: int, column: int) -> Finding:
    return replace(finding, line=line, column=column)
