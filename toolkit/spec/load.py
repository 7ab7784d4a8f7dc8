"""Spec files -> ToolSpecs. All mistakes of all files are raised at once, each as ``message @ file:pointer``."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from toolkit.errors import SpecError
from toolkit.spec.check import check_document
from toolkit.spec.files import read_plain_file, refuse_bom
from toolkit.spec.json_text import read_json
from toolkit.spec.model import ToolSpec
from toolkit.spec.problems import Finding, Problems, Unreadable, below, quote
from toolkit.spec.yaml_text import read_yaml

MAX_FILE_BYTES: Final = 32 * 1024 * 1024
"""Enough for the tools of a large API. ``text_limits`` bounds what such a text may cost."""
SUFFIXES: Final = (".yaml", ".yml", ".json")


def load_specs(paths: Sequence[Path], *, base: Path) -> list[ToolSpec]:
    """The tools of all these files, and of all spec files in these directories and below, in that order.

    ``source`` of each spec, and the file in each problem, is relative to ``base``.
    """
    specs, findings = read_specs(paths, base=base)
    if findings:
        raise SpecError(map(str, findings))
    return specs


def read_specs(paths: Sequence[Path], *, base: Path) -> tuple[list[ToolSpec], list[Finding]]:
    """As ``load_specs``, but returns the mistakes, and the specs that have mistakes, too."""
    findings: list[Finding] = []
    specs: list[ToolSpec] = []
    for path, source in _unique_files(paths, base, findings):
        specs += _load_file(path, source, findings)
    return specs, findings + _find_same_names(specs)


def spec_files(paths: Sequence[Path], *, base: Path) -> list[tuple[Path, str]]:
    """The files that ``load_specs`` would read, each with its ``source``; nothing is read."""
    findings: list[Finding] = []
    files = list(_unique_files(paths, base, findings))
    if findings:
        raise SpecError(map(str, findings))
    return files


def load_spec_text(text: str, source: str, directory: Path | None) -> list[ToolSpec]:
    """The tools of one text: JSON when ``source`` ends in ``.json``, else YAML.

    ``directory`` holds the ``descriptionFile``; without a directory that key is a mistake.
    """
    findings: list[Finding] = []
    specs = _load_text(text, source, directory, findings)
    return _raise_findings(specs, findings)


def _unique_files(paths: Sequence[Path], base: Path, findings: list[Finding]) -> Iterator[tuple[Path, str]]:
    seen: set[str] = set()
    for path in (file for given in paths for file in _spec_files(given, base, findings)):
        absolute = os.path.abspath(path)
        if absolute not in seen:
            seen.add(absolute)
            yield path, _source(path, base)


def _spec_files(given: Path, base: Path, findings: list[Finding]) -> list[Path]:
    """The file itself, or the spec files in and below the directory."""
    if os.path.isdir(given):
        return _find_spec_files(given, base, findings)
    if given.suffix in SUFFIXES:
        return [given]
    exists = os.path.lexists(given)
    message = "not a spec file: its name must end in .yaml, .yml or .json" if exists else "no such file or directory"
    findings.append(Finding(message, _source(given, base), ""))
    return []


def _find_spec_files(directory: Path, base: Path, findings: list[Finding]) -> list[Path]:
    def report_error(error: OSError) -> None:
        findings.append(Finding("the directory cannot be read", _source(Path(error.filename), base), ""))

    files: list[Path] = []
    for folder, folders, names in os.walk(directory, onerror=report_error):
        folders.sort()
        files += (Path(folder, name) for name in names if name.endswith(SUFFIXES))
        for linked in (path for name in folders if (path := Path(folder, name)).is_symlink()):
            # os.walk does not enter links. Without a finding it would look as if their specs were loaded.
            findings.append(Finding("a symbolic link: only real directories are searched", _source(linked, base), ""))
    return sorted(files, key=lambda file: file.relative_to(directory).as_posix())


def _source(path: Path, base: Path) -> str:
    relative = os.path.relpath(path, base).replace(os.sep, "/")
    # A file name that is not UTF-8 could not be printed otherwise.
    return os.fsencode(relative).decode("utf-8", "backslashreplace")


def _load_file(path: Path, source: str, findings: list[Finding]) -> list[ToolSpec]:
    try:
        text = read_plain_file(path, MAX_FILE_BYTES)
    except Unreadable as error:
        findings.append(Finding(str(error), source, ""))
        return []
    return _load_text(text, source, path.parent, findings)


def _load_text(text: str, source: str, directory: Path | None, findings: list[Finding]) -> list[ToolSpec]:
    problems = Problems(source)
    read = read_json if source.endswith(".json") else read_yaml
    specs: list[ToolSpec] = []
    try:
        if len(text) > MAX_FILE_BYTES:
            raise Unreadable(f"the text has more than {MAX_FILE_BYTES} characters")
        refuse_bom(text)
        specs = check_document(read(text, problems), problems, directory)
    except Unreadable as reason:
        problems.add_unreadable(reason)
    findings += problems.found
    return specs


def _raise_findings(specs: list[ToolSpec], findings: list[Finding]) -> list[ToolSpec]:
    findings += _find_same_names(specs)
    if findings:
        raise SpecError(map(str, findings))
    return specs


def _find_same_names(specs: Iterable[ToolSpec]) -> list[Finding]:
    findings: list[Finding] = []
    first: dict[str, tuple[str, bool]] = {}
    for spec in specs:
        pointer = below(spec.pointer, "rename" if spec.rename else "name")
        place, imported = f"{spec.source}:{pointer}", spec.origin is not None
        taken, was_imported = first.setdefault(spec.wire_name, (place, imported))
        # The name is empty here if it was a mistake.
        if spec.wire_name and taken != place:
            way_out = ", or a 'prefix' to its import" if imported or was_imported else ""
            message = f"the name {quote(spec.wire_name)} is taken by {taken}: add a 'rename' to one of the two{way_out}"
            findings.append(Finding(message, spec.source, pointer))
    return findings
