"""``toolkit import``: reads the tools of servers, documents and modules, and writes them as spec files.

Each import has a file of its own, which is replaced at once when its tools are known. One import that fails does not cost
the others.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final, Literal, Protocol, TypeAlias

from toolkit.codegen.imports.drift import DefinitionChange, find_changes
from toolkit.codegen.imports.settings import ImportKind, ImportSettings
from toolkit.codegen.imports.trust import TrustDecision, describe_effect, reads_files_only, require_trust
from toolkit.codegen.lint import schema_mistakes
from toolkit.codegen.package.python_names import digest
from toolkit.codegen.settings import Settings
from toolkit.errors import GenerationError, SetupError, SpecError, nearest
from toolkit.schema.places import locate, located_errors, show_path
from toolkit.schema.problems import Finding, quote
from toolkit.schema.spec import ToolSpec, is_wire_name
from toolkit.schema.spec_files import read_spec_text

_MAX_NAME: Final = 128


@dataclass(frozen=True, slots=True)
class ImportResult:
    """Imported tools as plain data.

    ``origin`` describes the source besides the import's kind and name, without secrets and without anything that differs
    between runs. ``tools`` are as in a spec file, in the order of the origin. ``notes`` are for the person who imports,
    with a place where there is one.
    """

    origin: dict[str, Any]
    tools: list[dict[str, Any]]
    notes: tuple[Finding | str, ...] = ()


Importer: TypeAlias = Callable[[ImportSettings, Path], ImportResult]
"""Takes the settings of one import and the project's folder, returns the tools. Raises ``SetupError``."""

OpenUrl: TypeAlias = Callable[[str], object]
"""Shows an address to the person, or opens it in a browser, and returns at once."""

IMPORTERS: Final[Mapping[ImportKind, str]] = {
    "mcp": "toolkit.codegen.imports.mcp:import_mcp",
    "openapi": "toolkit.codegen.imports.openapi:import_openapi",
    "tools": "toolkit.codegen.imports.provider_json:import_provider_json",
    "functions": "toolkit.codegen.imports.python_modules:import_functions",
    "models": "toolkit.codegen.imports.python_modules:import_models",
}
"""The importer of each kind. Each is loaded when it is needed, because some load large libraries."""


def load_importer(kind: ImportKind, open_url: OpenUrl | None = None) -> Importer:
    """The importer of this kind; ``open_url`` is for servers that need a login."""
    module, _, name = IMPORTERS[kind].partition(":")
    found: Callable[..., ImportResult] = getattr(import_module(module), name)
    return partial(found, open_url=open_url) if kind == "mcp" else found


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
    notes: tuple[Finding | str, ...]


def choose_imports(settings: Settings, names: Sequence[str]) -> list[ImportSettings]:
    """The imports with these names; all imports if there are no names."""
    known = [item.name for item in settings.imports]
    if not known:
        raise SetupError(
            "the settings have no imports; add a table to pyproject.toml, such as\n\n    [tool.toolkit.imports.time]\n"
            '    command = ["mcp-server-time"]'
        )
    for name in names:
        if name not in known:
            near = nearest(name, known)
            raise SetupError(
                f"there is no import named {name!r}" + (f".{near}" if near else f"; the imports are {', '.join(known)}")
            )
    return [item for item in settings.imports if not names or item.name in names]


class ImportsFailed(SetupError):
    """Some imports failed. The files of the others were written: ``reports`` is about those, ``failures`` has the errors."""

    def __init__(self, failures: Mapping[str, SetupError], reports: Sequence[FileReport] = ()) -> None:
        self.failures = dict(failures)
        self.reports = list(reports)
        super().__init__("\n".join(map(str, failures.values())))


class ImportObserver(Protocol):
    """Receives the progress of imports. ``tools`` is None if it failed."""

    def start(self, item: ImportSettings, /) -> object: ...

    def finish(self, item: ImportSettings, tools: int | None, /) -> object: ...


def run_imports(
    settings: Settings,
    names: Sequence[str] = (),
    observer: ImportObserver | None = None,
    *,
    trust: TrustDecision,
    open_url: OpenUrl | None = None,
) -> list[FileReport]:
    """Reads the imports again, writes their files, and returns a report on each; ``ImportsFailed`` if some fail.

    ``trust`` decides about imports that nobody confirmed yet, before anything is run, reached or written. ``open_url``
    shows the page of a login to a person; without it, a server that needs a login uses the stored token.
    """
    reports: dict[str, FileReport] = {}
    with located_errors(settings.root):
        run = _ImportRun(settings, names, observer, open_url)

        def write(item: ImportSettings, now: CurrentImport) -> None:
            reports[item.name] = _write_import(settings, item, run.before[item.name], now)

        run.read_all(write, trust)
    done = [reports[item.name] for item in run.chosen if item.name in reports]
    if run.failures:
        raise ImportsFailed(run.failures, done)
    return done


def _write_import(
    settings: Settings, item: ImportSettings, before: dict[str, Any] | None, now: CurrentImport
) -> FileReport:
    text = _text(now.document)
    report = _report_file(settings, item, before, now, text)
    if report.state != "unchanged":
        _write_file(settings.import_file(item.name), text)
    notes = [*now.notes, *note_refused_tools(item, now.specs)]
    return replace(report, notes=tuple(_show_note(note, settings.root) for note in notes))


def _show_note(note: Finding | str, root: Path) -> str:
    return note if isinstance(note, str) else str(locate([note], root)[0])


@dataclass(frozen=True, slots=True)
class LiveChange:
    """One difference between a committed file and its origin."""

    name: str
    """The name of the import."""
    change: DefinitionChange


def find_live_changes(
    settings: Settings,
    names: Sequence[str] = (),
    observer: ImportObserver | None = None,
    *,
    trust: TrustDecision,
    open_url: OpenUrl | None = None,
) -> list[LiveChange]:
    """What would change in the committed files if they were imported again. Nothing is written.

    ``trust`` decides about imports that nobody confirmed yet, before anything is run or reached. ``open_url`` is as in
    ``run_imports``.
    """
    now: dict[str, CurrentImport] = {}
    with located_errors(settings.root):
        run = _ImportRun(settings, names, observer, open_url)
        missing = [name for name, document in run.before.items() if document is None]
        if missing:
            raise SetupError(f"not imported yet: {', '.join(missing)}; run `toolkit import {' '.join(missing)}`")

        def keep(item: ImportSettings, current: CurrentImport) -> None:
            now[item.name] = current

        run.read_all(keep, trust)
    if run.failures:
        raise ImportsFailed(run.failures)
    return [
        LiveChange(item.name, change)
        for item in run.chosen
        for change in _find_import_changes(run.before[item.name] or {}, now[item.name].document)
    ]


def _find_import_changes(before: dict[str, Any], now: dict[str, Any]) -> list[DefinitionChange]:
    found = [
        DefinitionChange("", "compatible", f"/origin/{key}", f"{key!r} was {json.dumps(old)}, is now {json.dumps(new)}")
        for key in dict.fromkeys([*before["origin"], *now["origin"]])
        if (old := before["origin"].get(key)) != (new := now["origin"].get(key))
    ]
    return [*found, *find_changes(before["tools"], now["tools"])]


class _ImportRun:
    """Reads the current state of some imports."""

    def __init__(
        self, settings: Settings, names: Sequence[str], observer: ImportObserver | None, open_url: OpenUrl | None
    ) -> None:
        self._settings = settings
        self._observer = observer
        self._open_url = open_url
        self.chosen = choose_imports(settings, names)
        self.before = {item.name: read_committed(settings, item) for item in self.chosen}
        """The committed files."""
        self.failures: dict[str, SetupError] = {}

    def read_all(self, take: Callable[[ImportSettings, CurrentImport], None], trust: TrustDecision) -> None:
        """Hands the current state of each import to ``take`` as soon as it is known; notes those that fail.

        Files are read first: the address in an OpenAPI document is part of what must be trusted, and the one that was
        judged is the one that is stored.
        """
        root = self._settings.root
        files = {
            item.name: found
            for item in self.chosen
            if reads_files_only(item) and (found := self._read(item)) is not None
        }
        judged = [item for item in self.chosen if not reads_files_only(item) or item.name in files]
        urls = {name: str(current.document["origin"].get("url", "")) for name, current in files.items()}
        effects = [describe_effect(item, root, urls.get(item.name, "")) for item in judged]
        require_trust(root, [effect for effect in effects if effect is not None], trust)
        for item in judged:
            found = files[item.name] if item.name in files else self._read(item)
            if found is not None:
                try:
                    take(item, found)
                except SetupError as error:
                    self.failures[item.name] = error

    def _read(self, item: ImportSettings) -> CurrentImport | None:
        settings, found = self._settings, None
        if self._observer is not None:
            self._observer.start(item)
        try:
            with located_errors(settings.root):
                imported = exclude_unwanted(item, load_importer(item.kind, self._open_url)(item, settings.root))
                imported = mark_resources(item, imported)
                document = _make_document(item, imported, self.before[item.name])
                specs = load_imported(item, _text(document), _file_name(settings, item), document["tools"])
                found = CurrentImport(document, specs, imported.notes)
        except SetupError as error:
            self.failures[item.name] = error
        if self._observer is not None:
            self._observer.finish(item, None if found is None else len(found.specs))
        return found


def read_committed(settings: Settings, item: ImportSettings) -> dict[str, Any] | None:
    """The file of an import on disk; None if there is none. A file that this import did not write is a mistake."""
    file = settings.import_file(item.name)
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except OSError as error:
        message = f"the file cannot be read: {error.strerror or error}"
        raise SetupError([Finding(message, _file_name(settings, item))]) from None
    except (ValueError, RecursionError) as error:
        reason, line, column = (
            (error.msg, error.lineno, error.colno)
            if isinstance(error, json.JSONDecodeError)
            else ("it is not text", 0, 0)
        )
        message = (
            f"the file of [tool.toolkit.imports.{item.name}] is no longer valid JSON: {reason}; resolve a merge conflict in"
            f" it, or delete it and run `toolkit import {item.name}` again"
        )
        raise SetupError([Finding(message, _file_name(settings, item), "", line, column)]) from None
    origin = found.get("origin") if isinstance(found, dict) else None
    tools = found.get("tools") if isinstance(found, dict) else None
    ours = isinstance(origin, dict) and origin.get("name") == item.name
    if not ours or not isinstance(tools, list) or not all(isinstance(tool, dict) and "name" in tool for tool in tools):
        message = (
            f"[tool.toolkit.imports.{item.name}] stores its specs in this file, but did not import it;"
            " move the file, or rename the import"
        )
        raise SetupError([Finding(message, _file_name(settings, item))])
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
        notes=(),
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


def _write_file(file: Path, text: str) -> None:
    """Stages the file next to its place, without a suffix of spec files, then renames it."""
    stage = file.with_name(f".{file.name}.toolkit-staging")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        stage.write_text(text, encoding="utf-8", newline="\n")
        os.replace(stage, file)
    except OSError as error:
        raise GenerationError(
            f"{show_path(file)}: the imported specs could not be written: {error.strerror}"
        ) from error
    finally:
        with suppress(OSError):
            stage.unlink(missing_ok=True)


# ----------------------------------------------------------------------------------------------------------------------
# Tools that a project cannot use or does not want. One bad tool must not cost all the others.

_MAX_NAMED: Final = 20
_MAX_SHOWN_NAME: Final = 200
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
        item.finding(f"'without' names the tool {quote(name)}, which does not exist{_suggest(name, names)}", "without")
        for name in item.without
        if name not in names
    ]
    left = [tool for tool in imported.tools if tool["name"] not in item.without]
    _refuse_duplicates(item, [tool["name"] for tool in left])
    return replace(imported, tools=left, notes=(*imported.notes, *unknown))


def mark_resources(item: ImportSettings, imported: ImportResult) -> ImportResult:
    """The result with the marks of ``resources`` in the input schemas. What they name may be gone at the origin."""
    tools = {tool["name"]: tool for tool in imported.tools}
    notes: list[Finding | str] = []
    for name, marks in item.resources.items():
        if name not in tools:
            what = f"the tool {quote(name)}, which does not exist{_suggest(name, list(tools))}"
            notes.append(item.finding(f"'resources' names {what}", "resources"))
            continue
        schema = tools[name].get("inputSchema") or {}
        properties = dict(schema.get("properties") or {})
        for argument, kind in marks.items():
            if not isinstance(properties.get(argument), dict):
                near = _suggest(argument, list(properties))
                what = f"the argument {quote(argument)}, which {quote(name)} does not have{near}"
                notes.append(item.finding(f"'resources' names {what}", "resources"))
                continue
            properties[argument] = {**properties[argument], "x-resource": kind}
        if properties:
            tools[name] = {**tools[name], "inputSchema": {**schema, "properties": properties}}
    return replace(imported, tools=list(tools.values()), notes=(*imported.notes, *notes))


def _suggest(name: str, names: Sequence[str]) -> str:
    near = nearest(name, names)
    return near and f".{near}"


def _refuse_duplicates(item: ImportSettings, names: Iterable[str]) -> None:
    duplicates = [name for name, count in Counter(names).items() if count > 1]
    if duplicates:
        ways = {
            "functions": "give one of them name=..., or import them in two tables with different prefixes",
            "models": "import them in two tables with different prefixes",
        }
        way = ways.get(item.kind) or f"they cannot be told apart; {suggest_way_out(item, duplicates)}"
        named = ", ".join(map(quote, duplicates[:_MAX_NAMED]))
        raise SetupError([item.finding(f"{_DUPLICATES[item.kind]} more than one tool named {named}: {way}")])


def load_imported(item: ImportSettings, text: str, source: str, tools: Sequence[dict[str, Any]]) -> list[ToolSpec]:
    """The specs of an imported text. If some have mistakes, the error also says how to leave those tools out.

    The text is in no file yet, so the error is about the import's table in the settings.
    """
    specs, findings = read_spec_text(text, source, None)
    if not findings:
        return specs
    places = [re.match(r"/tools/(\d+)", finding.pointer) for finding in findings]
    names = [tools[int(place[1])]["name"] if place else None for place in places]
    mistakes = [_name_tool(item, *pair) for pair in zip(findings, names, strict=True)]
    bad = list(dict.fromkeys(name for name in names if name is not None))
    advice = [item.finding(f"nothing was imported: {suggest_way_out(item, bad)}")] if bad else []
    raise SpecError([*mistakes, *advice])


def _name_tool(item: ImportSettings, finding: Finding, name: str | None) -> Finding:
    if name is None:
        return item.finding(finding.message)
    place = re.sub(r"^/tools/\d+", "", finding.pointer)
    return item.finding(f"the tool {quote(name)}: {finding.message}" + (f" (at {place})" if place else ""))


def note_refused_tools(item: ImportSettings, specs: Iterable[ToolSpec]) -> tuple[Finding, ...]:
    """Notes on tools that ``toolkit generate`` will refuse, and how to use the others."""
    refused = {spec.name: mistakes for spec in specs if (mistakes := schema_mistakes(spec))}
    if not refused:
        return ()
    notes = (
        replace(
            mistakes[0],
            message=f"`toolkit generate` will refuse {quote(name)}: {mistakes[0].message}"
            + (f" (and {len(mistakes) - 1} more)" if len(mistakes) > 1 else ""),
        )
        for name, mistakes in refused.items()
    )
    # First, so that it is shown even if there are too many notes.
    return (item.finding(f"some tools cannot be generated: {suggest_way_out(item, list(refused))}"), *notes)


def suggest_way_out(item: ImportSettings, names: Sequence[str]) -> str:
    """How to import the other tools without these."""
    if item.kind == "openapi":
        return "list the operations you need in 'operations'"
    if item.kind in ("functions", "models"):
        return "change them in the source"
    wanted = [*item.without, *names]
    more = f" and {len(wanted) - _MAX_NAMED} more" if len(wanted) > _MAX_NAMED else ""
    listed = ", ".join(json.dumps(name[:_MAX_SHOWN_NAME]) for name in wanted[:_MAX_NAMED])
    return f"leave them out with without = [{listed}]{more}"
