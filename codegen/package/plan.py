"""Specs and settings -> ``{relative path: text}``. This module reads files and writes none.

An unchanged spec is not read again: its row comes from the manifest and its models from the disk, if the digests agree.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from toolkit.codegen.imports.drift import refuse_stale_imports
from toolkit.codegen.lint import schema_mistakes
from toolkit.codegen.package import manifest as manifests
from toolkit.codegen.package import modules
from toolkit.codegen.package.classes import WrittenTexts
from toolkit.codegen.package.facade import (
    ASYNC,
    SYNC,
    Surface,
    ToolkitSignatures,
    profile_signatures,
    render_facade,
    render_profile,
    render_signatures,
)
from toolkit.codegen.package.inputs import Inputs, policy_files, read_file
from toolkit.codegen.package.manifest import digest
from toolkit.codegen.package.models import RenderJob, render_many, tool_types
from toolkit.codegen.package.modules import imports_with_tools, list_packs, render_imported
from toolkit.codegen.package.python_names import ToolNames, name_tools
from toolkit.codegen.package.rows import Row, make_row, name_pointer
from toolkit.codegen.schema.flatten import flatten
from toolkit.codegen.settings import Settings
from toolkit.errors import SpecError
from toolkit.schema.problems import Finding, SpecPlace, extend_pointer
from toolkit.schema.spec import ToolSpec
from toolkit.schema.spec_files import load_specs, read_specs

if TYPE_CHECKING:
    from toolkit.codegen.package.profiles import PlannedProfile


# ----------------------------------------------------------------------------------------------------------------------
# Renders the model modules of many tools: in batches, and by several processes if there are many.
#
# The text of a module depends only on its own spec, so the texts are the same for any batches and any number of processes.

MIN_MODULES: Final = 100
"""Fewer modules take less time than starting the processes."""
MAX_WORKERS: Final = 8
_BATCH: Final = 16
_SAFE_PATH: Final = "PYTHONSAFEPATH"


def render_all(jobs: Sequence[RenderJob], workers: int, written: WrittenTexts | None = None) -> Iterator[str]:
    """The texts in the order of the jobs, each as soon as it and all before it are ready; ``written`` as in ``render_many``.

    Processes are started only if much is not written yet.
    """
    written = {} if written is None else written
    batches = [jobs[start : start + _BATCH] for start in range(0, len(jobs), _BATCH)]
    if workers < 2 or (known := _find_known(batches, written)) is None:
        for batch in batches:
            yield from _render_batch(batch, written)
        return
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    method = _start_method()
    if method == "fork":
        # Imported once, before the processes are forked, instead of once in each.
        import datamodel_code_generator.config
        import datamodel_code_generator.parser.jsonschema  # noqa: F401
    with ExitStack() as stack:
        with _without_current_directory():
            pool = stack.enter_context(ProcessPoolExecutor(workers, mp_context=get_context(method)))
            rendered = pool.map(_render_elsewhere, batches, known)  # starts the processes
        for texts, added in rendered:
            written.update(added)
            yield from texts


def _find_known(batches: Sequence[Sequence[RenderJob]], written: WrittenTexts) -> list[dict[str, str]] | None:
    """For each batch, what is written already; None if so much is that no processes are worth starting."""
    if not written:
        return [{} for _ in batches]
    keys = [[tool_types(job).digest() for job in batch] for batch in batches]
    known = [{key: written[key] for key in some if key in written} for some in keys]
    return known if sum(map(len, keys)) - sum(map(len, known)) >= MIN_MODULES else None


def _render_elsewhere(jobs: Sequence[RenderJob], known: dict[str, str]) -> tuple[list[str], dict[str, str]]:
    """The texts, and what datamodel-code-generator wrote for them."""
    written = dict(known)
    texts = _render_batch(jobs, written)
    return texts, {key: text for key, text in written.items() if key not in known}


def _render_batch(jobs: Sequence[RenderJob], written: WrittenTexts) -> list[str]:
    """Without looking for cycles in between, and then only among the new objects: it takes 5 to 10 % otherwise."""
    if not gc.isenabled():
        return render_many(jobs, written)
    gc.disable()
    try:
        return render_many(jobs, written)
    finally:
        gc.collect(0)
        gc.enable()


def _start_method() -> Literal["fork", "spawn"]:
    """Forked processes need not import anything. But a lock that another thread holds stays locked in them for ever."""
    return "fork" if sys.platform == "linux" and threading.active_count() == 1 else "spawn"


@contextmanager
def _without_current_directory() -> Iterator[None]:
    """Python processes started here do not import from the current directory, where a tool may have written a module.

    They get this process's own ``sys.path`` once they run.
    """
    before = os.environ.get(_SAFE_PATH)
    os.environ[_SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_SAFE_PATH]
        else:
            os.environ[_SAFE_PATH] = before


def workers_for(modules: int) -> int:
    """How many processes are worth starting for this number of modules on this machine."""
    return min(MAX_WORKERS, os.cpu_count() or 1) if modules >= MIN_MODULES else 1


Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class PackagePlan:
    """Every file of the package, below ``folder``."""

    folder: Path
    files: dict[str, str]
    kept: Mapping[str, str] = field(default_factory=dict)
    """Digests of the files that are on disk as they must be."""
    inputs: Mapping[str, str] = field(default_factory=dict)
    """Digests of what it was made from."""

    def digests(self) -> dict[str, str]:
        """Of all files."""
        return {**self.kept, **{path: digest(text.encode()) for path, text in self.files.items()}}


@dataclass(slots=True)
class _ModelPlan:
    """The tools of the package: what an earlier run wrote about them, and what must be rendered."""

    rows: list[Row] = field(default_factory=list)
    kept: dict[str, str] = field(default_factory=dict)
    """Digests of model modules that stay as they are."""
    reused: set[str] = field(default_factory=set)
    """The names of their tools."""
    jobs: dict[str, RenderJob] = field(default_factory=dict)
    problems: list[Finding] = field(default_factory=list)

    def add_mistakes(self, spec: ToolSpec, key: str, mistakes: Sequence[tuple[str, str]]) -> None:
        place = f"{spec.pointer}/{key}"
        self.problems += [Finding(text, spec.source, extend_pointer(place, at)) for text, at in mistakes]


def make_plan(
    settings: Settings,
    inputs: Inputs,
    progress: Progress | None = None,
    *,
    parallel: bool = False,
    written: WrittenTexts | None = None,
) -> PackagePlan:
    """All files of the package; ``parallel`` as in ``run.generate``, ``written`` as in ``models.render_many``."""
    earlier = inputs.previous.read_rows() if inputs.previous else ()
    reusable = inputs.reusable(earlier)
    specs = _read_changed_specs(settings, inputs, reusable)
    included = manifests.read_included_rows(settings.include)
    models = _plan_models(settings, inputs, _list_tools(inputs, reusable, specs), included)
    rows, jobs = models.rows, models.jobs
    files: dict[str, str] = {}
    texts = render_all(list(jobs.values()), workers_for(len(jobs)) if parallel else 1, written)
    for path, text in zip(jobs, texts, strict=True):
        files[path] = text
        if progress is not None:
            progress(len(models.kept) + len(files), len(rows))
    _refuse_model_as_class(settings, [*included, *rows])
    files |= _render_package_files(settings, rows, included)
    files[manifests.NAME] = manifests.manifest_text(settings, rows, _texts_of(models.reused, earlier, inputs))
    return PackagePlan(settings.output, files, models.kept, _digest_sources(settings, inputs, rows))


def _plan_models(settings: Settings, inputs: Inputs, own: list[Row | ToolSpec], included: Sequence[Row]) -> _ModelPlan:
    models = _ModelPlan()
    folder = str(settings.output)
    for item, name in zip(own, _name_own_tools(own, included), strict=True):
        path = f"models/{name.module}.py"
        if isinstance(item, Row) and (value := _digest_reusable(item, name, path, settings.package, folder, inputs)):
            models.kept[path] = value
            models.reused.add(item.name)
            models.rows.append(item)
        else:
            spec = item if isinstance(item, ToolSpec) else _read_spec(settings, inputs, item)
            _add_tool(settings, spec, name, path, models)
    if models.problems:
        raise SpecError(models.problems)
    return models


def _read_changed_specs(
    settings: Settings, inputs: Inputs, reusable: dict[str, list[Row]]
) -> dict[str, list[ToolSpec]]:
    paths = [Path(path) for source, path in inputs.files.items() if source not in reusable]
    specs, findings = read_specs(paths, base=settings.root)
    # First, because other mistakes in a stale file may disappear when it is imported again.
    refuse_stale_imports(settings, specs)
    if findings:
        raise SpecError(_add_schema_mistakes(findings, specs))
    found: dict[str, list[ToolSpec]] = {}
    for spec in specs:
        found.setdefault(spec.source, []).append(spec)
    return found | {source: specs for source, specs in inputs.functions.items() if source not in reusable}


def _add_schema_mistakes(findings: list[Finding], specs: list[ToolSpec]) -> list[Finding]:
    """The loader's findings and the mistakes in schemas, so that one run reports everything."""
    places = tuple(f"{found.source}:{found.pointer}/" for found in findings if "putSchema" in found.pointer)
    more = [mistake for spec in specs for mistake in schema_mistakes(spec)]
    # Mistakes at or below a place that the loader reported would only be repetitions.
    return findings + [found for found in more if not f"{found.source}:{found.pointer}/".startswith(places)]


def _list_tools(
    inputs: Inputs, reusable: dict[str, list[Row]], specs: dict[str, list[ToolSpec]]
) -> list[Row | ToolSpec]:
    """Every tool, reused or newly read, in the order of the spec files and then of the functions."""
    return [item for source in inputs.sources for item in (reusable.get(source) or specs.get(source) or ())]


def _name_own_tools(own: list[Row | ToolSpec], included: Sequence[Row]) -> list[ToolNames]:
    """Names for the package's own tools that clash with no other tool, included ones too."""
    wires = [item.name if isinstance(item, Row) else item.wire_name for item in own]
    pointers = [item.namePointer if isinstance(item, Row) else name_pointer(item) for item in own]
    owners = [SpecPlace(item.source, pointer) for item, pointer in zip(own, pointers, strict=True)]
    problems = []
    seen = {row.name: SpecPlace(row.module) for row in included}
    for wire, owner in zip(wires, owners, strict=True):
        if wire in seen:
            taken = seen[wire]
            message = (
                f"the tool name {wire!r} is taken by {'' if taken.pointer else 'the included '}{taken};"
                " rename one of them with 'rename', or a function with name=..., or give its import a 'prefix'"
            )
            problems.append(Finding(message, owner.source, owner.pointer, other=taken))
        seen[wire] = owner
    if problems:
        raise SpecError(problems)
    owners += [SpecPlace(row.module) for row in included]
    return name_tools([*wires, *(row.name for row in included)], owners)[: len(own)]


def _digest_reusable(row: Row, name: ToolNames, path: str, package: str, folder: str, inputs: Inputs) -> str | None:
    """The digest of the previous run's models of a tool, if the names are the same and the file is unchanged."""
    if inputs.previous is None or (row.prefix, row.module) != (name.prefix, f"{package}.models.{name.module}"):
        return None
    try:
        value = digest(read_file(os.path.join(folder, path)))
    except OSError:
        return None
    return value if value == inputs.previous.outputs.get(path) else None


def _read_spec(settings: Settings, inputs: Inputs, row: Row) -> ToolSpec:
    specs = inputs.functions.get(row.source) or load_specs([Path(inputs.files[row.source])], base=settings.root)
    return next(spec for spec in specs if spec.wire_name == row.name)


def _add_tool(settings: Settings, spec: ToolSpec, name: ToolNames, path: str, models: _ModelPlan) -> None:
    """Adds a tool's row and the job that renders its models, or its mistakes."""
    rich = settings.rich_formats
    inputs, mistakes = flatten(spec.input_schema, f"{name.prefix}Input", is_input=True, rich_formats=rich)
    models.add_mistakes(spec, "inputSchema", mistakes)
    outputs = None
    if spec.output_schema is not None and spec.own_output is None:
        outputs, mistakes = flatten(spec.output_schema, f"{name.prefix}Output", rich_formats=rich)
        models.add_mistakes(spec, "outputSchema", mistakes)
    if not models.problems:
        item = settings.find_import(spec.origin.name) if spec.origin else None
        unconfined = item is not None and not item.sandbox
        models.rows.append(make_row(spec, name, settings.package, inputs, outputs, unconfined=unconfined))
        models.jobs[path] = RenderJob(spec.source, name.prefix, spec.description, inputs, outputs, spec.own_output)


def _texts_of(names: set[str], earlier: Sequence[Row], inputs: Inputs) -> dict[str, str]:
    """The texts of some rows of the previous run, by name."""
    if inputs.previous is None:
        return {}
    texts = zip(earlier, manifests.split_rows(inputs.previous.manifest), strict=True)
    return {row.name: text for row, text in texts if row.name in names}


def _refuse_model_as_class(settings: Settings, rows: list[Row]) -> None:
    classes = (settings.class_name, f"Async{settings.class_name}")
    problems = [
        Finding(
            f"'class' makes {name!r}, which is already a model of the tool {row.name!r}; choose another name",
            "pyproject.toml",
            "/tool/toolkit/class",
        )
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
    profiles = _plan_profiles(settings, everything)
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


def _plan_profiles(settings: Settings, rows: list[Row]) -> list[PlannedProfile]:
    if not settings.profiles:
        return []
    from toolkit.codegen.package.profiles import plan_profiles  # it imports what reads policies

    return plan_profiles(settings, rows)


def _digest_sources(settings: Settings, inputs: Inputs, rows: list[Row]) -> dict[str, str]:
    """Of all sources, and of the description and policy files that this run used."""
    used = {row.source for row in rows} | {row.descriptionSource for row in rows if row.descriptionSource}
    used |= policy_files(settings).keys() | set(inputs.sources)
    new = {source: digest((settings.root / source).read_bytes()) for source in used - inputs.digests.keys()}
    return new | {source: value for source, value in inputs.digests.items() if source in used}
