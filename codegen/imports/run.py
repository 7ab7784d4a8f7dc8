"""``toolkit import``: reads the tools of servers, documents and modules, and writes them as spec files.

Everything is read before anything is written: if one import fails, no file changes.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from toolkit.codegen.imports.drift import DefinitionChange, find_changes
from toolkit.codegen.imports.exclude import exclude_unwanted, load_imported, note_refused_tools
from toolkit.codegen.imports.importers.registry import OpenUrl, load_importer
from toolkit.codegen.imports.importers.result import ImportResult
from toolkit.codegen.imports.settings import ImportSettings
from toolkit.codegen.imports.trust import TrustDecision, describe_effect, reads_files_only, require_trust
from toolkit.codegen.package.python_names import digest
from toolkit.codegen.settings import Settings
from toolkit.errors import GenerationError, SetupError, SpecError, nearest
from toolkit.spec.model import ToolSpec
from toolkit.spec.tool_names import is_wire_name

_MAX_NAME: Final = 128


@dataclass(frozen=True, slots=True)
class FileReport:
    """What an import did to its file; tools have their names in the generated package."""

    name: str
    file: str
    state: Literal["new", "changed", "unchanged"]
    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]
    notes: tuple[str, ...]
    """For the person who runs the import."""


@dataclass(frozen=True, slots=True)
class CurrentImport:
    """The current state of an origin: the file as it would be written, its specs, and notes."""

    document: dict[str, Any]
    specs: list[ToolSpec]
    notes: tuple[str, ...]


def choose_imports(settings: Settings, names: Sequence[str]) -> list[ImportSettings]:
    """The imports with these names; all imports if there are no names."""
    known = [item.name for item in settings.imports]
    if not known:
        raise SetupError(
            "the settings have no imports: add a table such as\n\n    [tool.toolkit.imports.time]\n"
            '    command = ["mcp-server-time"]\n\n'
            "@ pyproject.toml:/tool/toolkit/imports"
        )
    for name in names:
        if name not in known:
            raise SetupError(
                f"there is no import named {name!r}.{nearest(name, known)} @ pyproject.toml:/tool/toolkit/imports"
            )
    return [item for item in settings.imports if not names or item.name in names]


def run_imports(
    settings: Settings,
    names: Sequence[str] = (),
    progress: Callable[[int, int], None] | None = None,
    *,
    trust: TrustDecision,
    open_url: OpenUrl | None = None,
) -> list[FileReport]:
    """Reads the imports again, writes their files, and returns a report on each.

    ``trust`` decides about imports that nobody confirmed yet, before anything is run, reached or written. ``open_url``
    shows the page of a login to a person; without it, a server that needs a login uses the stored token.
    """
    chosen = choose_imports(settings, names)
    before = {item.name: read_committed(settings, item) for item in chosen}
    now = read_current_imports(settings, chosen, before, progress, trust=trust, open_url=open_url)
    texts = {name: _text(found.document) for name, found in now.items()}
    reports = [_report_file(settings, item, before[item.name], now[item.name], texts[item.name]) for item in chosen]
    _write_files({settings.import_file(r.name): texts[r.name] for r in reports if r.state != "unchanged"})
    return reports


@dataclass(frozen=True, slots=True)
class LiveChange:
    """One difference between a committed file and its origin."""

    name: str
    """The name of the import."""
    change: DefinitionChange


def find_live_changes(
    settings: Settings,
    names: Sequence[str] = (),
    progress: Callable[[int, int], None] | None = None,
    *,
    trust: TrustDecision,
    open_url: OpenUrl | None = None,
) -> list[LiveChange]:
    """What would change in the committed files if they were imported again. Nothing is written.

    ``trust`` decides about imports that nobody confirmed yet, before anything is run or reached. ``open_url`` is as in
    ``run_imports``.
    """
    chosen = choose_imports(settings, names)
    before = {item.name: read_committed(settings, item) for item in chosen}
    missing = [name for name, document in before.items() if document is None]
    if missing:
        raise SetupError(f"not imported yet: {', '.join(missing)}; run `toolkit import {' '.join(missing)}`")
    now = read_current_imports(settings, chosen, before, progress, trust=trust, open_url=open_url)
    return [
        LiveChange(item.name, change)
        for item in chosen
        for change in _find_import_changes(before[item.name] or {}, now[item.name].document)
    ]


def _find_import_changes(before: dict[str, Any], now: dict[str, Any]) -> list[DefinitionChange]:
    found = [
        DefinitionChange("", "compatible", f"/origin/{key}", f"{key!r} was {json.dumps(old)}, is now {json.dumps(new)}")
        for key in dict.fromkeys([*before["origin"], *now["origin"]])
        if (old := before["origin"].get(key)) != (new := now["origin"].get(key))
    ]
    return [*found, *find_changes(before["tools"], now["tools"])]


def read_current_imports(
    settings: Settings,
    chosen: Sequence[ImportSettings],
    before: dict[str, dict[str, Any] | None],
    progress: Callable[[int, int], None] | None = None,
    *,
    trust: TrustDecision,
    open_url: OpenUrl | None = None,
) -> dict[str, CurrentImport]:
    """The current state of the chosen imports; all failures are raised at once.

    Files are read first: the address in an OpenAPI document is part of what must be trusted, and the one that was judged is
    the one that is stored.
    """
    found: dict[str, CurrentImport] = {}
    failures: list[SetupError] = []

    def read(items: Sequence[ImportSettings]) -> None:
        for item in items:
            try:
                found[item.name] = _read_current(settings, item, before[item.name], open_url)
            except SetupError as error:
                failures.append(error)
            if progress is not None:
                progress(len(found) + len(failures), len(chosen))

    read([item for item in chosen if reads_files_only(item)])
    running = [item for item in chosen if not reads_files_only(item)]
    judged = [item for item in chosen if item in running or item.name in found]
    urls = {name: str(current.document["origin"].get("url", "")) for name, current in found.items()}
    effects = [describe_effect(item, settings.root, urls.get(item.name, "")) for item in judged]
    require_trust(settings.root, [effect for effect in effects if effect is not None], trust)
    read(running)
    if failures and all(isinstance(error, SpecError | GenerationError) for error in failures):
        raise SpecError(line for error in failures for line in getattr(error, "problems", [str(error)]))
    if failures:
        raise SetupError("\n".join(map(str, failures)))
    return found


def _read_current(
    settings: Settings, item: ImportSettings, before: dict[str, Any] | None, open_url: OpenUrl | None
) -> CurrentImport:
    imported = exclude_unwanted(item, load_importer(item.kind, open_url)(item, settings.root))
    document = _make_document(item, imported, before)
    specs = load_imported(item, _text(document), _file_name(settings, item), document["tools"])
    return CurrentImport(document, specs, imported.notes)


def read_committed(settings: Settings, item: ImportSettings) -> dict[str, Any] | None:
    """The file of an import on disk; None if there is none. A file that this import did not write is a mistake."""
    file = settings.import_file(item.name)
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SetupError(f"the file cannot be read: {error.strerror or error} @ {_file_name(settings, item)}") from None
    except (ValueError, RecursionError) as error:
        reason = f"{error.msg} (line {error.lineno})" if isinstance(error, json.JSONDecodeError) else "it is not text"
        raise SetupError(
            f"the file of [tool.toolkit.imports.{item.name}] is no longer valid JSON: {reason}; resolve a merge conflict in"
            f" it, or delete it and run `toolkit import {item.name}` again @ {_file_name(settings, item)}"
        ) from None
    origin = found.get("origin") if isinstance(found, dict) else None
    tools = found.get("tools") if isinstance(found, dict) else None
    ours = isinstance(origin, dict) and origin.get("name") == item.name
    if not ours or not isinstance(tools, list) or not all(isinstance(tool, dict) and "name" in tool for tool in tools):
        raise SetupError(
            f"[tool.toolkit.imports.{item.name}] stores its specs in this file, but did not import it;"
            f" move the file, or rename the import @ {_file_name(settings, item)}"
        )
    assert isinstance(found, dict)
    return found


def _make_document(item: ImportSettings, imported: ImportResult, before: dict[str, Any] | None) -> dict[str, Any]:
    """The content of the file. A ``rename`` that a person added to it stays: it resolves a clash of names."""
    renames = {tool["name"]: tool["rename"] for tool in (before or {}).get("tools", ()) if "rename" in tool}
    taken: set[str] = set(renames.values())
    tools = []
    for tool in imported.tools:
        rename = renames.get(tool["name"]) or tool.get("rename") or _usable_name(item.prefix, tool["name"], taken)
        tools.append(tool if rename is None else {**tool, "rename": rename})
    origin = {"kind": item.kind, "name": item.name, **imported.origin}
    prefix = {"prefix": item.prefix} if item.prefix else {}
    return {"origin": origin, **prefix, "tools": tools}


def _usable_name(prefix: str, name: str, taken: set[str]) -> str | None:
    """A replacement for a name that tools may not have; None if the name can stay."""
    whole = f"{prefix}{name}"
    if is_wire_name(whole):
        return None
    plain = re.sub(r"_{2,}|\.{2,}", "_", re.sub(r"[^A-Za-z0-9_./ :-]", "_", whole)).strip(" ./:-")[: _MAX_NAME - 7]
    # A digest of the name, not a number: it does not depend on the origin's other tools.
    usable = plain if is_wire_name(plain) and plain not in taken else f"{plain.strip('_') or 'tool'}_{digest(name)}"
    taken.add(usable)
    return usable


def _report_file(
    settings: Settings, item: ImportSettings, before: dict[str, Any] | None, now: CurrentImport, text: str
) -> FileReport:
    old, new = (
        {tool["name"]: tool for tool in (document or {}).get("tools", ())} for document in (before, now.document)
    )
    wire = {**_wire_names(before), **_wire_names(now.document)}
    file = settings.import_file(item.name)
    if before is None:
        state: Literal["new", "changed", "unchanged"] = "new"
    else:
        state = "unchanged" if file.read_bytes() == text.encode() else "changed"
    return FileReport(
        item.name,
        _file_name(settings, item),
        state,
        added=tuple(wire[name] for name in new if name not in old),
        removed=tuple(wire[name] for name in old if name not in new),
        changed=tuple(wire[name] for name in new if name in old and new[name] != old[name]),
        notes=(*now.notes, *note_refused_tools(item, now.specs)),
    )


def _wire_names(document: dict[str, Any] | None) -> dict[str, str]:
    """The names that models see, by the names at the origin."""
    if document is None:
        return {}
    prefix = document.get("prefix", "")
    return {tool["name"]: tool.get("rename") or f"{prefix}{tool['name']}" for tool in document["tools"]}


def _text(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _file_name(settings: Settings, item: ImportSettings) -> str:
    return settings.import_file(item.name).relative_to(settings.root).as_posix()


def _write_files(texts: dict[Path, str]) -> None:
    """Stages all files next to their places, then renames them."""
    staged: dict[Path, Path] = {}
    try:
        for file, text in texts.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            # Without a suffix of spec files.
            staged[file] = file.with_name(f".{file.name}.toolkit-staging")
            staged[file].write_text(text, encoding="utf-8", newline="\n")
        for file, stage in staged.items():
            os.replace(stage, file)
    except OSError as error:
        raise GenerationError(f"the imported specs could not be written: {error.strerror or error}") from error
    finally:
        for stage in staged.values():
            stage.unlink(missing_ok=True)
