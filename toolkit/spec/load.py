"""Spec files -> ToolSpecs. All mistakes of all files are raised at once, each as ``file:line:column: message (pointer)``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from toolkit.errors import SpecError
from toolkit.schema.problems import Finding, Problems, SpecPlace, Unreadable, below, quote
from toolkit.schema.spec import ToolSpec
from toolkit.schema.spec_files import find_spec_files, read_plain_file, refuse_bom
from toolkit.schema.spec_text import read_yaml
from toolkit.spec.check import check_document
from toolkit.spec.json_text import read_json

MAX_FILE_BYTES: Final = 32 * 1024 * 1024
"""Enough for the tools of a large API. ``text_limits`` bounds what such a text may cost."""


def load_specs(paths: Sequence[Path], *, base: Path) -> list[ToolSpec]:
    """The tools of all these files, and of all spec files in these directories and below, in that order.

    ``source`` of each spec is relative to ``base``, the file in each problem to the current directory.
    """
    specs, findings = read_specs(paths, base=base)
    if findings:
        raise SpecError(findings)
    return specs


def read_specs(paths: Sequence[Path], *, base: Path) -> tuple[list[ToolSpec], list[Finding]]:
    """As ``load_specs``, but returns the mistakes, and the specs that have mistakes, too."""
    findings: list[Finding] = []
    specs: list[ToolSpec] = []
    for path, source in find_spec_files(paths, base, findings):
        specs += _load_file(Path(path), source, findings)
    findings += _find_same_names(specs)
    return specs, _locate(findings, base) if findings else []


def _locate(findings: list[Finding], base: Path) -> list[Finding]:
    from toolkit.spec.places.locate import locate

    return locate(findings, base)


def load_spec_text(text: str, source: str, directory: Path | None) -> list[ToolSpec]:
    """The tools of one text: JSON when ``source`` ends in ``.json``, else YAML.

    ``directory`` holds the ``descriptionFile``; without a directory that key is a mistake.
    """
    specs, findings = read_spec_text(text, source, directory)
    if findings:
        from toolkit.spec.places.locate import locate_in_text

        raise SpecError(locate_in_text(findings, text, ".json" if source.endswith(".json") else ".yaml"))
    return specs


def read_spec_text(text: str, source: str, directory: Path | None) -> tuple[list[ToolSpec], list[Finding]]:
    """As ``load_spec_text``, but returns the mistakes, without line and column, and the specs that have mistakes, too."""
    findings: list[Finding] = []
    specs = _load_text(text, source, directory, findings)
    return specs, findings + _find_same_names(specs)


def _load_file(path: Path, source: str, findings: list[Finding]) -> list[ToolSpec]:
    try:
        text = read_plain_file(path, MAX_FILE_BYTES)
    except Unreadable as error:
        findings.append(Finding(str(error), source, "", error.line, error.column))
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


def _find_same_names(specs: Iterable[ToolSpec]) -> list[Finding]:
    findings: list[Finding] = []
    first: dict[str, tuple[SpecPlace, bool]] = {}
    for spec in specs:
        pointer = below(spec.pointer, "rename" if spec.rename else "name")
        place, imported = SpecPlace(spec.source, pointer), spec.origin is not None
        taken, was_imported = first.setdefault(spec.wire_name, (place, imported))
        # The name is empty here if it was a mistake.
        if spec.wire_name and taken != place:
            way_out = ", or a 'prefix' to its import" if imported or was_imported else ""
            message = f"the name {quote(spec.wire_name)} is taken by {taken}; add a 'rename' to one of the two{way_out}"
            findings.append(Finding(message, spec.source, pointer, other=taken))
    return findings
