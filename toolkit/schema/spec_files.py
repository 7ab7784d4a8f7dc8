"""Spec files -> ToolSpecs: which files there are, and what they hold.

All mistakes of all files are raised at once, each as ``file:line:column: message (pointer)``.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

from toolkit.errors import SpecError
from toolkit.schema.checks import check_document
from toolkit.schema.problems import Finding, Problems, SpecPlace, Unreadable, below, quote
from toolkit.schema.spec import ToolSpec
from toolkit.schema.spec_text import read_json, read_yaml
from toolkit.visible import BOM

# ----------------------------------------------------------------------------------------------------------------------
# Spec files: which ones there are, and reading a text: regular files only, never through a link, bounded, UTF-8.
#
# Importing this costs little: a run that finds nothing to do needs no more of ``spec``.

# O_NONBLOCK: a named pipe in place of a file must not make the loader wait for a writer.
_FILE = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_DIRECTORY = os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY
SUFFIXES: Final = (".yaml", ".yml", ".json")


def spec_files(paths: Sequence[Path], *, base: Path) -> list[tuple[str, str]]:
    """The files that ``load_specs`` would read, each with its ``source``."""
    findings: list[Finding] = []
    files = list(find_spec_files(paths, base, findings))
    if findings:
        raise SpecError(findings)
    return files


def find_spec_files(paths: Sequence[Path], base: Path, findings: list[Finding]) -> Iterator[tuple[str, str]]:
    """As ``spec_files``; what is wrong with a path is added to the findings when it is its turn."""
    seen: set[str] = set()
    for given in paths:
        for absolute, path, source in _list_files(given, base, findings):
            if absolute not in seen:
                seen.add(absolute)
                yield path, source


def _list_files(given: Path, base: Path, findings: list[Finding]) -> list[tuple[str, str, str]]:
    """The file itself, or the spec files in and below the directory: absolute path, path, source."""
    if os.path.isdir(given):
        return list(_walk(str(given), base, findings))
    if given.suffix in SUFFIXES:
        return [(os.path.abspath(given), str(given), _source(given, base))]
    exists = os.path.lexists(given)
    message = "not a spec file: its name must end in .yaml, .yml or .json" if exists else "no such file or directory"
    findings.append(Finding(message, _source(given, base), ""))
    return []


def _walk(directory: str, base: Path, findings: list[Finding]) -> Iterator[tuple[str, str, str]]:
    def report_error(error: OSError) -> None:
        findings.append(Finding("the directory cannot be read", _source(error.filename, base), ""))

    files: list[tuple[str, str, str, str]] = []
    for folder, folders, names in os.walk(directory, onerror=report_error):
        folders.sort()
        # Once for each folder: thousands of files may be in one.
        absolute, source = os.path.abspath(folder), _source(folder, base)
        below = os.path.relpath(folder, directory)
        start, prefix = ("" if place == "." else f"{place}/" for place in (source, below))
        for name in names:
            if name.endswith(SUFFIXES):
                path = os.path.join(folder, name)
                files.append((prefix + name, os.path.join(absolute, name), path, start + _printable(name)))
        for linked in (path for name in folders if os.path.islink(path := os.path.join(folder, name))):
            # os.walk does not enter links. Without a finding it would look as if their specs were loaded.
            findings.append(Finding("a symbolic link: only real directories are searched", _source(linked, base), ""))
    return (found[1:] for found in sorted(files))


def _source(path: str | Path, base: Path) -> str:
    return _printable(os.path.relpath(path, base).replace(os.sep, "/"))


def _printable(name: str) -> str:
    """The name, also if it is not UTF-8."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def read_plain_file(path: str | Path, limit: int, *, dir_fd: int | None = None) -> str:
    """The text of the file ``path``, of at most ``limit`` bytes; ``Unreadable`` says what is wrong with it."""
    try:
        descriptor = os.open(path, _FILE, dir_fd=dir_fd)
    except OSError as error:
        raise Unreadable(_explain_os_error(error)) from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Unreadable("not a regular file")
        with open(descriptor, "rb", closefd=False) as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise Unreadable(_explain_os_error(error)) from None
    finally:
        os.close(descriptor)
    if len(data) > limit:
        raise Unreadable(f"the file has more than {limit} bytes")
    text = decode(data)
    refuse_bom(text)
    return text


def decode(data: bytes) -> str:
    """The text of a file; ``Unreadable`` says where it is not UTF-8."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        before = data[data.rfind(b"\n", 0, error.start) + 1 : error.start]
        message = "this is not UTF-8 text; save the file as UTF-8"
        raise Unreadable(message, line, len(before.decode("utf-8")) + 1) from None


def read_below(directory: Path, name: str, limit: int) -> str:
    """The text of the file ``name`` in or below ``directory``; no step on the way may be a link."""
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or ".." in parts or "\0" in name:
        raise Unreadable(f"{quote(name)} is not a relative file name without '..'")
    # Every step starts from the open directory before it, so nothing can be swapped in between.
    descriptor = -1
    try:
        descriptor = os.open(directory, _DIRECTORY)
        for part in parts[:-1]:
            outer, descriptor = descriptor, os.open(part, _DIRECTORY | os.O_NOFOLLOW, dir_fd=descriptor)
            os.close(outer)
        return read_plain_file(parts[-1], limit, dir_fd=descriptor)
    except OSError as error:
        raise Unreadable(_explain_os_error(error)) from None
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def refuse_bom(text: str) -> None:
    if text.startswith(BOM):
        raise Unreadable("the file starts with a byte order mark (BOM): save it as UTF-8 without one")


def _explain_os_error(error: OSError) -> str:
    if error.errno == errno.ENOENT:
        return "no such file"
    if error.errno == errno.ELOOP:
        return "a symbolic link: only regular files are read"
    if error.errno == errno.ENOTDIR:
        # The kernel also reports this for a link when O_NOFOLLOW opens a directory.
        return "a part of the path is a symbolic link or not a directory"
    return f"cannot be read: {os.strerror(error.errno) if error.errno else 'unknown error'}"


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
    """As ``load_specs``, but returns the mistakes, including the specs with mistakes."""
    findings: list[Finding] = []
    specs: list[ToolSpec] = []
    for path, source in find_spec_files(paths, base, findings):
        specs += _load_file(Path(path), source, findings)
    findings += _find_same_names(specs)
    return specs, _locate(findings, base) if findings else []


def _locate(findings: list[Finding], base: Path) -> list[Finding]:
    from toolkit.schema.places import locate

    return locate(findings, base)


def load_spec_text(text: str, source: str, directory: Path | None) -> list[ToolSpec]:
    """The tools of one text: JSON when ``source`` ends in ``.json``, else YAML.

    ``directory`` holds the ``descriptionFile``; without a directory that key is a mistake.
    """
    specs, findings = read_spec_text(text, source, directory)
    if findings:
        from toolkit.schema.places import locate_in_text

        raise SpecError(locate_in_text(findings, text, ".json" if source.endswith(".json") else ".yaml"))
    return specs


def read_spec_text(text: str, source: str, directory: Path | None) -> tuple[list[ToolSpec], list[Finding]]:
    """As ``load_spec_text``, but returns the mistakes, without line and column, including the specs with mistakes."""
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
