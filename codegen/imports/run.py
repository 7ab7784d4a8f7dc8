"""``toolkit import``: what servers, documents and modules tell now, as committed spec files.

Everything is read before anything is written: where one import fails, no file is touched.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from toolkit.codegen.imports.drift import Change, changes
from toolkit.codegen.imports.exclude import loaded, refusals, without_unwanted
from toolkit.codegen.imports.importers.registry import importer_of
from toolkit.codegen.imports.importers.result import Imported
from toolkit.codegen.imports.settings import ImportSettings
from toolkit.codegen.package.naming import digest
from toolkit.codegen.settings import Settings
from toolkit.errors import GenerationError, SetupError, SpecError, nearest
from toolkit.spec.model import ToolSpec
from toolkit.spec.names import is_wire_name

_MAX_NAME: Final = 128


@dataclass(frozen=True, slots=True)
class FileReport:
    """What an import made of its file; tools are called as in the generated package."""

    name: str
    file: str
    state: Literal["new", "changed", "unchanged"]
    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]
    notes: tuple[str, ...]
    """What the person who imports should know."""


@dataclass(frozen=True, slots=True)
class Now:
    """What an import gives now: the file as it would be written, and what is to be said of it."""

    document: dict[str, Any]
    specs: list[ToolSpec]
    notes: tuple[str, ...]


def chosen_imports(settings: Settings, names: Sequence[str]) -> list[ImportSettings]:
    """The imports of these names; all of them where none is named."""
    known = [item.name for item in settings.imports]
    if not known:
        raise SetupError(
            "the settings import nothing: add a table such as\n\n    [tool.toolkit.imports.time]\n"
            '    command = ["mcp-server-time"]\n\n'
            "@ pyproject.toml:/tool/toolkit/imports"
        )
    for name in names:
        if name not in known:
            raise SetupError(
                f"no import is called {name!r}.{nearest(name, known)} @ pyproject.toml:/tool/toolkit/imports"
            )
    return [item for item in settings.imports if not names or item.name in names]


def run_imports(
    settings: Settings, names: Sequence[str] = (), progress: Callable[[int, int], None] | None = None
) -> list[FileReport]:
    """Reads the imports anew and writes their files; gives what became of each."""
    chosen = chosen_imports(settings, names)
    before = {item.name: committed(settings, item) for item in chosen}
    now = read_imports_now(settings, chosen, before, progress)
    texts = {name: _text(found.document) for name, found in now.items()}
    reports = [_report(settings, item, before[item.name], now[item.name], texts[item.name]) for item in chosen]
    _write({settings.import_file(r.name): texts[r.name] for r in reports if r.state != "unchanged"})
    return reports


@dataclass(frozen=True, slots=True)
class LiveChange:
    """One difference between a committed file and what its origin tells now."""

    name: str
    """The import's."""
    change: Change


def live_changes(
    settings: Settings, names: Sequence[str] = (), progress: Callable[[int, int], None] | None = None
) -> list[LiveChange]:
    """What would change in the committed files if they were imported now; nothing is written."""
    chosen = chosen_imports(settings, names)
    before = {item.name: committed(settings, item) for item in chosen}
    missing = [name for name, document in before.items() if document is None]
    if missing:
        raise SetupError(f"not imported yet: {', '.join(missing)}; run `toolkit import {' '.join(missing)}`")
    now = read_imports_now(settings, chosen, before, progress)
    return [
        LiveChange(item.name, change)
        for item in chosen
        for change in _changes(before[item.name] or {}, now[item.name].document)
    ]


def _changes(before: dict[str, Any], now: dict[str, Any]) -> list[Change]:
    told = [
        Change("", "compatible", f"/origin/{key}", f"the origin's {key!r} was {json.dumps(old)}, is {json.dumps(new)}")
        for key in dict.fromkeys([*before["origin"], *now["origin"]])
        if (old := before["origin"].get(key)) != (new := now["origin"].get(key))
    ]
    return [*told, *changes(before["tools"], now["tools"])]


def read_imports_now(
    settings: Settings,
    chosen: Sequence[ImportSettings],
    before: dict[str, dict[str, Any] | None],
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Now]:
    """The documents as they would be written now; every import that fails is told at once."""
    found: dict[str, Now] = {}
    failures: list[SetupError] = []
    for done, item in enumerate(chosen):
        try:
            imported = without_unwanted(item, importer_of(item.kind)(item, settings.root))
            document = _document(item, imported, before[item.name])
            specs = loaded(item, _text(document), _shown(settings, item), document["tools"])
            found[item.name] = Now(document, specs, imported.notes)
        except SetupError as error:
            failures.append(error)
        if progress is not None:
            progress(done + 1, len(chosen))
    if failures and all(isinstance(error, SpecError | GenerationError) for error in failures):
        raise SpecError(line for error in failures for line in getattr(error, "problems", [str(error)]))
    if failures:
        raise SetupError("\n".join(map(str, failures)))
    return found


def committed(settings: Settings, item: ImportSettings) -> dict[str, Any] | None:
    """The file of an import as it is on the disk; None if there is none. A file of somebody else's is a mistake."""
    file = settings.import_file(item.name)
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SetupError(f"the file cannot be read: {error.strerror or error} @ {_shown(settings, item)}") from None
    except (ValueError, RecursionError) as error:
        reason = f"{error.msg} (line {error.lineno})" if isinstance(error, json.JSONDecodeError) else "it is no text"
        raise SetupError(
            f"the file of [tool.toolkit.imports.{item.name}] is no JSON any more: {reason}; resolve the conflict if a merge"
            f" left one in it, else delete it and run `toolkit import {item.name}` again @ {_shown(settings, item)}"
        ) from None
    origin = found.get("origin") if isinstance(found, dict) else None
    tools = found.get("tools") if isinstance(found, dict) else None
    ours = isinstance(origin, dict) and origin.get("name") == item.name
    if not ours or not isinstance(tools, list) or not all(isinstance(tool, dict) and "name" in tool for tool in tools):
        raise SetupError(
            f"the file stands where [tool.toolkit.imports.{item.name}] keeps its specs, and was not imported by it;"
            f" move the file, or call the import otherwise @ {_shown(settings, item)}"
        )
    assert isinstance(found, dict)
    return found


def _document(item: ImportSettings, imported: Imported, before: dict[str, Any] | None) -> dict[str, Any]:
    """The file's content. A ``rename`` somebody wrote into it stays: it is how clashing names are told apart."""
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
    """A name in place of one that no tool may have here; None where it can stay."""
    whole = f"{prefix}{name}"
    if is_wire_name(whole):
        return None
    plain = re.sub(r"_{2,}|\.{2,}", "_", re.sub(r"[^A-Za-z0-9_./ :-]", "_", whole)).strip(" ./:-")[: _MAX_NAME - 7]
    # A digest of the name, not a number: it stays the same whatever else the origin offers.
    usable = plain if is_wire_name(plain) and plain not in taken else f"{plain.strip('_') or 'tool'}_{digest(name)}"
    taken.add(usable)
    return usable


def _report(settings: Settings, item: ImportSettings, before: dict[str, Any] | None, now: Now, text: str) -> FileReport:
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
        _shown(settings, item),
        state,
        added=tuple(wire[name] for name in new if name not in old),
        removed=tuple(wire[name] for name in old if name not in new),
        changed=tuple(wire[name] for name in new if name in old and new[name] != old[name]),
        notes=(*now.notes, *refusals(item, now.specs)),
    )


def _wire_names(document: dict[str, Any] | None) -> dict[str, str]:
    """What the tools of a file are called by models, by their names at the origin."""
    if document is None:
        return {}
    prefix = document.get("prefix", "")
    return {tool["name"]: tool.get("rename") or f"{prefix}{tool['name']}" for tool in document["tools"]}


def _text(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _shown(settings: Settings, item: ImportSettings) -> str:
    return settings.import_file(item.name).relative_to(settings.root).as_posix()


def _write(texts: dict[Path, str]) -> None:
    """All files staged beside their places first, then renamed into them."""
    staged: dict[Path, Path] = {}
    try:
        for file, text in texts.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            # Not with a suffix that would make it a spec.
            staged[file] = file.with_name(f".{file.name}.toolkit-staging")
            staged[file].write_text(text, encoding="utf-8", newline="\n")
        for file, stage in staged.items():
            os.replace(stage, file)
    except OSError as error:
        raise GenerationError(f"imported specs cannot be written: {error.strerror or error}") from error
    finally:
        for stage in staged.values():
            stage.unlink(missing_ok=True)
