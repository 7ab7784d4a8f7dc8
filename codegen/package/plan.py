"""Specs and settings -> ``{relative path: text}``. This module reads files and writes none.

An unchanged spec is not read again: its row comes from the manifest and its models from the disk, if the digests agree.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from toolkit.codegen.imports.freshness import refuse_stale_imports
from toolkit.codegen.imports.importers.functions import read_functions
from toolkit.codegen.lint import schema_mistakes
from toolkit.codegen.package import manifest as manifests
from toolkit.codegen.package.local_cache import PreviousRun
from toolkit.codegen.package.manifest import digest
from toolkit.codegen.package.models import RenderJob
from toolkit.codegen.package.parallel import render_all, workers_for
from toolkit.codegen.package.profiles import plan_profiles
from toolkit.codegen.package.python_names import ToolNames, name_tools
from toolkit.codegen.package.render import modules
from toolkit.codegen.package.render.facade import ASYNC, SYNC, Surface, render_facade
from toolkit.codegen.package.render.imported import imports_with_tools, list_packs, render_imported
from toolkit.codegen.package.render.profile import profile_signatures, render_profile
from toolkit.codegen.package.render.signatures import ToolkitSignatures, render_signatures
from toolkit.codegen.package.rows import Row, make_row, name_pointer
from toolkit.codegen.schema.flatten import flatten
from toolkit.codegen.settings import Settings
from toolkit.errors import SpecError
from toolkit.spec.load import load_specs, read_specs, spec_files
from toolkit.spec.model import ToolSpec

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class PackagePlan:
    """Every file of the package, below ``folder``."""

    folder: Path
    files: dict[str, str]
    inputs: Mapping[str, str] = field(default_factory=dict)
    """Digests of what it was made from."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a run reads, with digests, and the previous run's result if it can be reused."""

    files: dict[str, Path]
    """The spec files, in the order of their tools."""
    functions: dict[str, list[ToolSpec]]
    """Modules of code-first tools, and the specs read from each."""
    digests: dict[str, str]
    """Of the spec files, of the description files an earlier run read, of the functions' specs and of policy files."""
    previous: PreviousRun | None
    """The package on disk, if the generator that runs now wrote it on this machine."""

    @property
    def sources(self) -> list[str]:
        """Every file and module that holds tools, in order."""
        return [*self.files, *self.functions]

    def reusable(self) -> dict[str, list[Row]]:
        """The previous rows of sources that did not change."""
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


def read_inputs(settings: Settings, previous: PreviousRun | None = None) -> Inputs:
    """The digests of spec files, of description files that an earlier run used, of functions and of policy files."""
    files = {source: path for path, source in spec_files(settings.spec_paths, base=settings.root)}
    read = dict(files)
    for source in (row.descriptionSource for row in (previous.rows if previous else ())):
        if source is not None and (settings.root / source).is_file():
            read[source] = settings.root / source
    read |= _policy_files(settings)
    # A link is not read here; the loader refuses it and names it.
    digests = {source: digest(b"" if path.is_symlink() else path.read_bytes()) for source, path in read.items()}
    functions = read_functions(settings)
    # Digests of the specs, not of the modules' files: the types of a function may be defined elsewhere.
    digests |= {
        source: digest(json.dumps([asdict(spec) for spec in specs]).encode()) for source, specs in functions.items()
    }
    return Inputs(files, functions, digests, previous)


def _policy_files(settings: Settings) -> dict[str, Path]:
    """The policy files of profiles; one that is missing is reported when the profiles are planned."""
    files = {profile.policy: settings.root / profile.policy for profile in settings.profiles if profile.policy}
    return {source: path for source, path in files.items() if path.is_file()}


def is_current(settings: Settings, inputs: Inputs) -> bool:
    """Whether neither inputs nor outputs changed since the last run."""
    previous = inputs.previous
    if previous is None or dict(previous.inputs) != inputs.digests:
        return False
    folder = settings.output
    for path, value in previous.outputs.items():
        file = folder / path
        if not file.is_file() or digest(file.read_bytes()) != value:
            return False
    return True


def make_plan(
    settings: Settings, inputs: Inputs, progress: Progress | None = None, *, parallel: bool = False
) -> PackagePlan:
    """All files of the package; ``parallel`` as in ``run.generate``."""
    reusable = inputs.reusable()
    specs = _read_changed_specs(settings, inputs, reusable)
    included = manifests.read_included_rows(settings.include)
    own = _list_tools(inputs, reusable, specs)
    names = _name_own_tools(own, included)
    files: dict[str, str] = {}
    rows: list[Row] = []
    jobs: dict[str, RenderJob] = {}
    problems: list[str] = []
    for item, name in zip(own, names, strict=True):
        path = f"models/{name.module}.py"
        reused = _reuse_models(settings, inputs, item, name, path)
        if reused is not None:
            row, files[path] = reused
            rows.append(row)
        else:
            spec = item if isinstance(item, ToolSpec) else _read_spec(settings, inputs, item)
            _add_tool(settings, spec, name, path, jobs, rows, problems)
    if problems:
        raise SpecError(problems)
    texts = render_all(list(jobs.values()), workers_for(len(jobs)) if parallel else 1)
    for path, text in zip(jobs, texts, strict=True):
        files[path] = text
        if progress is not None:
            progress(len(files), len(own))
    _refuse_model_as_class(settings, [*included, *rows])
    files |= _render_package_files(settings, rows, included)
    files[manifests.NAME] = manifests.manifest_text(settings, rows)
    return PackagePlan(settings.output, files, _digest_sources(settings, inputs, rows))


def _read_changed_specs(
    settings: Settings, inputs: Inputs, reusable: dict[str, list[Row]]
) -> dict[str, list[ToolSpec]]:
    paths = [path for source, path in inputs.files.items() if source not in reusable]
    specs, findings = read_specs(paths, base=settings.root)
    # First, because other mistakes in a stale file may disappear when it is imported again.
    refuse_stale_imports(settings, specs)
    if findings:
        raise SpecError(_add_schema_mistakes(list(map(str, findings)), specs))
    found: dict[str, list[ToolSpec]] = {}
    for spec in specs:
        found.setdefault(spec.source, []).append(spec)
    return found | {source: specs for source, specs in inputs.functions.items() if source not in reusable}


def _add_schema_mistakes(problems: list[str], specs: list[ToolSpec]) -> list[str]:
    """The loader's findings and the mistakes in schemas, so that one run reports everything."""
    places = [f"{problem.rpartition(' @ ')[2]}/" for problem in problems if re.search("/(in|out)putSchema", problem)]
    more = [text for spec in specs for text in schema_mistakes(spec)]
    # Mistakes at or below a place that the loader reported would only be repetitions.
    return problems + [text for text in more if not f"{text.rpartition(' @ ')[2]}/".startswith(tuple(places))]


def _list_tools(
    inputs: Inputs, reusable: dict[str, list[Row]], specs: dict[str, list[ToolSpec]]
) -> list[Row | ToolSpec]:
    """Every tool, reused or newly read, in the order of the spec files and then of the functions."""
    return [item for source in inputs.sources for item in (reusable.get(source) or specs.get(source) or ())]


def _name_own_tools(own: list[Row | ToolSpec], included: list[Row]) -> list[ToolNames]:
    """Names for the package's own tools that clash with no other tool, included ones too."""
    wires = [item.name if isinstance(item, Row) else item.wire_name for item in own]
    places = [f"{item.source}:{item.namePointer if isinstance(item, Row) else name_pointer(item)}" for item in own]
    problems = []
    seen = {row.name: f"the included {row.module}" for row in included}
    for wire, place in zip(wires, places, strict=True):
        if wire in seen:
            problems.append(
                f"the tool name {wire!r} is taken by {seen[wire]};"
                f" rename one of them with 'rename', or a function with name=..., or give its import a 'prefix' @ {place}"
            )
        seen[wire] = place
    if problems:
        raise SpecError(problems)
    owners = [*places, *(row.module for row in included)]
    return name_tools([*wires, *(row.name for row in included)], owners)[: len(own)]


def _reuse_models(
    settings: Settings, inputs: Inputs, item: Row | ToolSpec, name: ToolNames, path: str
) -> tuple[Row, str] | None:
    """The row and models of the previous run, if the names are the same and the file is unchanged."""
    if not isinstance(item, Row) or inputs.previous is None:
        return None
    if (item.prefix, item.module) != (name.prefix, f"{settings.package}.models.{name.module}"):
        return None
    file = settings.output / path
    data = file.read_bytes() if file.is_file() else b""
    return (item, data.decode()) if digest(data) == inputs.previous.outputs.get(path) else None


def _read_spec(settings: Settings, inputs: Inputs, row: Row) -> ToolSpec:
    specs = inputs.functions.get(row.source) or load_specs([inputs.files[row.source]], base=settings.root)
    return next(spec for spec in specs if spec.wire_name == row.name)


def _add_tool(
    settings: Settings,
    spec: ToolSpec,
    name: ToolNames,
    path: str,
    jobs: dict[str, RenderJob],
    rows: list[Row],
    problems: list[str],
) -> None:
    """Adds a tool's row and the job that renders its models, or its mistakes."""
    place = f"{spec.source}:{spec.pointer}"
    rich = settings.rich_formats
    inputs, mistakes = flatten(
        spec.input_schema, f"{name.prefix}Input", f"{place}/inputSchema", is_input=True, rich_formats=rich
    )
    outputs = None
    if spec.output_schema is not None:
        outputs, more = flatten(spec.output_schema, f"{name.prefix}Output", f"{place}/outputSchema", rich_formats=rich)
        mistakes += more
    problems += mistakes
    if not problems:
        item = settings.find_import(spec.origin.name) if spec.origin else None
        unconfined = item is not None and not item.sandbox
        rows.append(make_row(spec, name, settings.package, inputs, outputs, unconfined=unconfined))
        jobs[path] = RenderJob(spec.source, name.prefix, spec.description, inputs, outputs)


def _refuse_model_as_class(settings: Settings, rows: list[Row]) -> None:
    classes = (settings.class_name, f"Async{settings.class_name}")
    problems = [
        f"'class' makes {name!r}, which is already a model of the tool {row.name!r}; choose another name"
        " @ pyproject.toml:/tool/toolkit/class"
        for row in rows
        for name in (*modules.model_names(row), *row.imports)
        if name in classes
    ]
    if problems:
        raise SpecError(problems)


def _render_package_files(settings: Settings, rows: list[Row], included: list[Row]) -> dict[str, str]:
    package, class_name = settings.package, settings.class_name
    # Reused rows come in another order than newly read ones.
    rows = sorted(rows, key=lambda row: row.name)
    everything = sorted([*included, *rows], key=lambda row: row.name)
    imports = imports_with_tools(settings.imports, rows)
    packs = tuple(dict.fromkeys([*settings.all_packs, *list_packs(imports, package)]))
    imported = render_imported(imports, rows)
    profiles = plan_profiles(settings, everything)
    surface = Surface(class_name)
    return {
        "models/__init__.py": modules.header("One module per tool, imported when it is used.", future=False),
        "names.py": modules.render_names(everything),
        "unions.py": modules.render_unions(everything, package),
        "signatures.py": render_signatures(
            [
                ToolkitSignatures(class_name, everything, "unions", "AnyToolMessage"),
                *map(profile_signatures, profiles),
            ],
            package,
        ),
        "context.py": modules.render_context(),
        "catalog.py": modules.render_catalog(everything, package),
        "bind.py": modules.render_bind(rows, package),
        **({} if imported is None else {"imported.py": imported}),
        "facade.py": render_facade(everything, package, surface, packs, SYNC),
        "async_facade.py": render_facade(everything, package, surface, packs, ASYNC),
        **{path: text for profile in profiles for path, text in render_profile(profile, package, packs).items()},
        "_exports.py": modules.render_exports(everything, package, class_name, settings.profiles),
        "__init__.py": modules.render_package(class_name, settings.profiles),
        "py.typed": "",
    }


def _digest_sources(settings: Settings, inputs: Inputs, rows: list[Row]) -> dict[str, str]:
    """Of all sources, and of the description and policy files that this run used."""
    used = {row.source for row in rows} | {row.descriptionSource for row in rows if row.descriptionSource}
    used |= _policy_files(settings).keys()
    read = {source: digest((settings.root / source).read_bytes()) for source in used - inputs.functions.keys()}
    return read | {source: inputs.digests[source] for source in inputs.sources}
