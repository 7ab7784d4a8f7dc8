"""Specs and settings -> ``{relative path: text}``. Pure: reads, and writes nothing.

An unchanged spec is not read again: its row comes from the manifest and its models from the disk, if their digests agree.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from toolkit.codegen.imports.freshness import refuse_stale_imports
from toolkit.codegen.imports.importers.functions import read_functions
from toolkit.codegen.lint import schema_mistakes
from toolkit.codegen.package import manifest as manifests
from toolkit.codegen.package.manifest import Manifest, digest
from toolkit.codegen.package.naming import ToolNames, name_tools
from toolkit.codegen.package.parallel import Job, render_all, workers_for
from toolkit.codegen.package.render import modules
from toolkit.codegen.package.render.facade import ASYNC, SYNC, render_facade
from toolkit.codegen.package.render.imported import imports_with_tools, packs_of, render_imported
from toolkit.codegen.package.rows import Row, make_row, name_pointer
from toolkit.codegen.schema.flatten import flatten
from toolkit.codegen.settings import Settings
from toolkit.errors import SpecError
from toolkit.spec.load import load_specs, read_specs, spec_files
from toolkit.spec.model import ToolSpec

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Plan:
    """Every file of the package, below ``folder``."""

    folder: Path
    files: dict[str, str]


@dataclass(frozen=True, slots=True)
class Inputs:
    """What is read, by digest; what an earlier run made of it, where that can be used again."""

    files: dict[str, Path]
    """The spec files, in the order of their tools."""
    functions: dict[str, list[ToolSpec]]
    """Modules of code-first tools, and what was read from each."""
    digests: dict[str, str]
    """Of the spec files, of the description files an earlier run read, and of what modules hold."""
    previous: Manifest | None
    """The package on disk, if the generator that runs now made it on this machine."""

    @property
    def sources(self) -> list[str]:
        """Everything that holds tools, in their order."""
        return [*self.files, *self.functions]

    def reusable(self) -> dict[str, list[Row]]:
        """Spec files whose rows of the previous run still hold."""
        if self.previous is None:
            return {}
        found: dict[str, list[Row]] = {}
        for row in self.previous.rows:
            found.setdefault(row.source, []).append(row)
        same = {source for source, value in self.digests.items() if self.previous.inputs.get(source) == value}
        return {
            source: rows
            for source, rows in found.items()
            if source in same and all(row.descriptionSource is None or row.descriptionSource in same for row in rows)
        }


def read_inputs(settings: Settings, previous: Manifest | None = None) -> Inputs:
    """The digests of all spec files (and of description files an earlier run knew of), and of functions."""
    files = {source: path for path, source in spec_files(settings.spec_paths, base=settings.root)}
    read = dict(files)
    for source in (row.descriptionSource for row in (previous.rows if previous else ())):
        if source is not None and (settings.root / source).is_file():
            read[source] = settings.root / source
    # A link is not read here; the loader refuses it by name.
    digests = {source: digest(b"" if path.is_symlink() else path.read_bytes()) for source, path in read.items()}
    functions = read_functions(settings)
    # Not of the modules' files: a function may change, and its types may stand elsewhere.
    digests |= {
        source: digest(json.dumps([asdict(spec) for spec in specs]).encode()) for source, specs in functions.items()
    }
    return Inputs(files, functions, digests, previous)


def is_current(settings: Settings, inputs: Inputs) -> bool:
    """Whether nothing changed since the last run, neither what it read nor what it wrote."""
    previous = inputs.previous
    if previous is None or dict(previous.inputs) != inputs.digests:
        return False
    folder = settings.output
    for path, value in previous.outputs.items():
        file = folder / path
        if not file.is_file() or digest(file.read_bytes()) != value:
            return False
    return True


def make_plan(settings: Settings, inputs: Inputs, progress: Progress | None = None, *, parallel: bool = False) -> Plan:
    """All files of the package; ``parallel`` as for ``run.generate``."""
    reusable = inputs.reusable()
    specs = _changed_specs(settings, inputs, reusable)
    included = manifests.included_rows(settings.include)
    own = _in_order(inputs, reusable, specs)
    names = _names(own, included)
    files: dict[str, str] = {}
    rows: list[Row] = []
    jobs: dict[str, Job] = {}
    problems: list[str] = []
    for item, name in zip(own, names, strict=True):
        path = f"models/{name.module}.py"
        kept = _kept(settings, inputs, item, name, path)
        if kept is not None:
            row, files[path] = kept
            rows.append(row)
        else:
            spec = item if isinstance(item, ToolSpec) else _reread(settings, inputs, item)
            _read(settings, spec, name, path, jobs, rows, problems)
    if problems:
        raise SpecError(problems)
    texts = render_all(list(jobs.values()), workers_for(len(jobs)) if parallel else 1)
    for path, text in zip(jobs, texts, strict=True):
        files[path] = text
        if progress is not None:
            progress(len(files), len(own))
    _refuse_class_of_a_model(settings, [*included, *rows])
    files |= _package_files(settings, rows, included)
    return Plan(settings.output, {**files, manifests.NAME: _manifest(settings, inputs, files, rows)})


def _changed_specs(settings: Settings, inputs: Inputs, reusable: dict[str, list[Row]]) -> dict[str, list[ToolSpec]]:
    paths = [path for source, path in inputs.files.items() if source not in reusable]
    specs, findings = read_specs(paths, base=settings.root)
    # First: whatever else is wrong with a file that is out of date may be gone with it.
    refuse_stale_imports(settings, specs)
    if findings:
        raise SpecError(_with_schema_mistakes(list(map(str, findings)), specs))
    found: dict[str, list[ToolSpec]] = {}
    for spec in specs:
        found.setdefault(spec.source, []).append(spec)
    return found | {source: specs for source, specs in inputs.functions.items() if source not in reusable}


def _with_schema_mistakes(problems: list[str], specs: list[ToolSpec]) -> list[str]:
    """What the loader found, and what the schemas hold besides, so that one run tells everything."""
    told = [f"{problem.rpartition(' @ ')[2]}/" for problem in problems if re.search("/(in|out)putSchema", problem)]
    more = [text for spec in specs for text in schema_mistakes(spec)]
    # At or below a place in a schema that the loader complained of, it would only be said again.
    return problems + [text for text in more if not f"{text.rpartition(' @ ')[2]}/".startswith(tuple(told))]


def _in_order(inputs: Inputs, reusable: dict[str, list[Row]], specs: dict[str, list[ToolSpec]]) -> list[Row | ToolSpec]:
    """Every tool in the order of the spec files, then of the functions, known from the manifest or newly read."""
    return [item for source in inputs.sources for item in (reusable.get(source) or specs.get(source) or ())]


def _names(own: list[Row | ToolSpec], included: list[Row]) -> list[ToolNames]:
    """Names over all tools, the included ones too, so that no two meet."""
    wires = [item.name if isinstance(item, Row) else item.wire_name for item in own]
    places = [f"{item.source}:{item.namePointer if isinstance(item, Row) else name_pointer(item)}" for item in own]
    problems = []
    seen = {row.name: f"included {row.module}" for row in included}
    for wire, place in zip(wires, places, strict=True):
        if wire in seen:
            problems.append(
                f"a tool named {wire!r} is there already: {seen[wire]};"
                f" give one of them another name with 'rename', a function with name=..., or an import a 'prefix' @ {place}"
            )
        seen[wire] = place
    if problems:
        raise SpecError(problems)
    owners = [*places, *(row.module for row in included)]
    return name_tools([*wires, *(row.name for row in included)], owners)[: len(own)]


def _kept(
    settings: Settings, inputs: Inputs, item: Row | ToolSpec, name: ToolNames, path: str
) -> tuple[Row, str] | None:
    """The row and models of an earlier run, if its names still hold and its file is untouched."""
    if not isinstance(item, Row) or inputs.previous is None:
        return None
    if (item.prefix, item.module) != (name.prefix, f"{settings.package}.models.{name.module}"):
        return None
    file = settings.output / path
    data = file.read_bytes() if file.is_file() else b""
    return (item, data.decode()) if digest(data) == inputs.previous.outputs.get(path) else None


def _reread(settings: Settings, inputs: Inputs, row: Row) -> ToolSpec:
    specs = inputs.functions.get(row.source) or load_specs([inputs.files[row.source]], base=settings.root)
    return next(spec for spec in specs if spec.wire_name == row.name)


def _read(
    settings: Settings,
    spec: ToolSpec,
    name: ToolNames,
    path: str,
    jobs: dict[str, Job],
    rows: list[Row],
    problems: list[str],
) -> None:
    """Adds what the facade needs to know of a tool, and what its module is to be made from; or its mistakes."""
    place = f"{spec.source}:{spec.pointer}"
    inputs, mistakes = flatten(spec.input_schema, f"{name.prefix}Input", f"{place}/inputSchema", is_input=True)
    outputs = None
    if spec.output_schema is not None:
        outputs, more = flatten(spec.output_schema, f"{name.prefix}Output", f"{place}/outputSchema")
        mistakes += more
    problems += mistakes
    if not problems:
        item = settings.import_named(spec.origin.name) if spec.origin else None
        unconfined = item is not None and not item.sandbox
        rows.append(make_row(spec, name, settings.package, inputs, unconfined=unconfined))
        jobs[path] = Job(spec.source, name.prefix, spec.description, inputs, outputs)


def _refuse_class_of_a_model(settings: Settings, rows: list[Row]) -> None:
    classes = (settings.class_name, f"Async{settings.class_name}")
    problems = [
        f"'class' gives {name!r}, which is a model of the tool {row.name!r}; set another"
        " @ pyproject.toml:/tool/toolkit/class"
        for row in rows
        for name in (*(f"{row.prefix}{suffix}" for suffix in ("Args", "Input", "Output")), *row.imports)
        if name in classes
    ]
    if problems:
        raise SpecError(problems)


def _package_files(settings: Settings, rows: list[Row], included: list[Row]) -> dict[str, str]:
    package, class_name = settings.package, settings.class_name
    everything = sorted([*included, *rows], key=lambda row: row.name)
    imports = imports_with_tools(settings.imports, rows)
    packs = tuple(dict.fromkeys([*settings.all_packs, *packs_of(imports, package)]))
    imported = render_imported(imports, rows)
    return {
        "models/__init__.py": modules.header("One module a tool, imported when it is used.", future=False),
        "names.py": modules.render_names(everything),
        "unions.py": modules.render_unions(everything, package),
        "context.py": modules.render_context(),
        "catalog.py": modules.render_catalog(everything, package),
        "bind.py": modules.render_bind(rows, package),
        **({} if imported is None else {"imported.py": imported}),
        "facade.py": render_facade(everything, package, class_name, packs, SYNC),
        "async_facade.py": render_facade(everything, package, class_name, packs, ASYNC),
        "__init__.py": modules.render_package(everything, package, class_name),
        "py.typed": "",
    }


def _manifest(settings: Settings, inputs: Inputs, files: dict[str, str], rows: list[Row]) -> str:
    used = {row.source for row in rows} | {row.descriptionSource for row in rows if row.descriptionSource}
    read = {source: digest((settings.root / source).read_bytes()) for source in used - inputs.functions.keys()}
    read |= {source: inputs.digests[source] for source in inputs.sources}
    written = {path: digest(text.encode()) for path, text in files.items()}
    return Manifest(read, written, tuple(sorted(rows, key=lambda row: row.name))).text(settings)
