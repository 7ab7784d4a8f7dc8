"""Specs and settings -> ``{relative path: text}``. This module reads files and writes none.

An unchanged spec is not read again: its row comes from the manifest and its models from the disk, if the digests agree.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from toolkit.codegen.imports.settings import refuse_stale_imports
from toolkit.codegen.lint import schema_mistakes
from toolkit.codegen.package import manifest as manifests
from toolkit.codegen.package import modules
from toolkit.codegen.package.classes import WrittenTexts
from toolkit.codegen.package.facade import (
    ASYNC,
    SYNC,
    Facade,
    Surface,
    ToolkitSignatures,
    profile_signatures,
    render_profile,
    render_signatures,
)
from toolkit.codegen.package.inputs import Inputs, policy_files, read_file
from toolkit.codegen.package.manifest import digest
from toolkit.codegen.package.models import RenderJob, render_many
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

Progress = Callable[[int, int], None]
"""Called with the number of finished model modules, and of all."""

_BATCH: Final = 16
"""Model modules that are rendered between two reports of progress."""


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


def make_plan(
    settings: Settings, inputs: Inputs, progress: Progress | None = None, *, written: WrittenTexts | None = None
) -> PackagePlan:
    """All files of the package; ``written`` as in ``models.render_many``."""
    return _PackagePlanner(settings, inputs).make(progress, {} if written is None else written)


class _PackagePlanner:
    """Plans one package: which tools it has, what an earlier run wrote about them, and what must be rendered."""

    def __init__(self, settings: Settings, inputs: Inputs) -> None:
        self._settings = settings
        self._inputs = inputs
        self._earlier: Sequence[Row] = inputs.previous.read_rows() if inputs.previous else ()
        self._reusable = inputs.reusable(self._earlier)
        self._included: list[Row] = []
        """The tools of packages under ``include``."""
        self._rows: list[Row] = []
        """The package's own tools."""
        self._reused: set[str] = set()
        """Those whose models stay as they are, by name; ``kept`` has the digests of the models."""
        self._kept: dict[str, str] = {}
        self._jobs: dict[str, RenderJob] = {}
        self._problems: list[Finding] = []

    def make(self, progress: Progress | None, written: WrittenTexts) -> PackagePlan:
        settings = self._settings
        specs = self._read_changed_specs()
        self._included = manifests.read_included_rows(settings.include)
        self._plan_tools(self._list_tools(specs))
        files = self._render_models(progress, written)
        self._refuse_model_as_class()
        files |= self._render_package_files()
        files[manifests.NAME] = manifests.manifest_text(settings, self._rows, self._texts_of_reused())
        return PackagePlan(settings.output, files, self._kept, self._digest_sources())

    # -- the package's tools, in the order of the spec files and then of the functions -------------------------------

    def _read_changed_specs(self) -> dict[str, list[ToolSpec]]:
        reusable, settings = self._reusable, self._settings
        paths = [Path(path) for source, path in self._inputs.files.items() if source not in reusable]
        specs, findings = read_specs(paths, base=settings.root)
        # First, because other mistakes in a stale file may disappear when it is imported again.
        refuse_stale_imports(settings, specs)
        if findings:
            raise SpecError(_add_schema_mistakes(findings, specs))
        found: dict[str, list[ToolSpec]] = {}
        for spec in specs:
            found.setdefault(spec.source, []).append(spec)
        return found | {source: specs for source, specs in self._inputs.functions.items() if source not in reusable}

    def _list_tools(self, specs: dict[str, list[ToolSpec]]) -> list[Row | ToolSpec]:
        found: list[Row | ToolSpec] = []
        for source in self._inputs.sources:
            found += self._reusable[source] if source in self._reusable else specs.get(source, ())
        return found

    def _plan_tools(self, own: Sequence[Row | ToolSpec]) -> None:
        """Reuses the models of unchanged tools; reads the other specs and lists what to render."""
        for item, name in zip(own, self._name_tools(own), strict=True):
            path = f"models/{name.module}.py"
            if isinstance(item, Row) and (value := self._digest_reusable(item, name, path)):
                self._kept[path] = value
                self._reused.add(item.name)
                self._rows.append(item)
            else:
                self._add_tool(item if isinstance(item, ToolSpec) else self._read_spec(item), name, path)
        if self._problems:
            raise SpecError(self._problems)

    def _name_tools(self, own: Sequence[Row | ToolSpec]) -> list[ToolNames]:
        """Names for the package's own tools that clash with no other tool, included ones among them."""
        wires = [item.name if isinstance(item, Row) else item.wire_name for item in own]
        pointers = [item.namePointer if isinstance(item, Row) else name_pointer(item) for item in own]
        owners = [SpecPlace(item.source, pointer) for item, pointer in zip(own, pointers, strict=True)]
        problems = []
        seen = {row.name: SpecPlace(row.module) for row in self._included}
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
        owners += [SpecPlace(row.module) for row in self._included]
        return name_tools([*wires, *(row.name for row in self._included)], owners)[: len(own)]

    def _digest_reusable(self, row: Row, name: ToolNames, path: str) -> str | None:
        """The digest of the previous run's models of a tool, if the names are the same and the file is unchanged."""
        previous, settings = self._inputs.previous, self._settings
        if previous is None or (row.prefix, row.module) != (name.prefix, f"{settings.package}.models.{name.module}"):
            return None
        try:
            value = digest(read_file(os.path.join(settings.output, path)))
        except OSError:
            return None
        return value if value == previous.outputs.get(path) else None

    def _read_spec(self, row: Row) -> ToolSpec:
        specs = self._inputs.functions.get(row.source)
        specs = specs or load_specs([Path(self._inputs.files[row.source])], base=self._settings.root)
        return next(spec for spec in specs if spec.wire_name == row.name)

    def _add_tool(self, spec: ToolSpec, name: ToolNames, path: str) -> None:
        """Adds a tool's row and the job that renders its models, or its mistakes."""
        settings = self._settings
        rich = settings.rich_formats
        inputs, mistakes = flatten(spec.input_schema, f"{name.prefix}Input", is_input=True, rich_formats=rich)
        self._add_mistakes(spec, "inputSchema", mistakes)
        outputs = None
        if spec.output_schema is not None and spec.own_output is None:
            outputs, mistakes = flatten(spec.output_schema, f"{name.prefix}Output", rich_formats=rich)
            self._add_mistakes(spec, "outputSchema", mistakes)
        if not self._problems:
            item = settings.find_import(spec.origin.name) if spec.origin else None
            unconfined = item is not None and not item.sandbox
            self._rows.append(make_row(spec, name, settings.package, inputs, outputs, unconfined=unconfined))
            self._jobs[path] = RenderJob(spec.source, name.prefix, spec.description, inputs, outputs, spec.own_output)

    def _add_mistakes(self, spec: ToolSpec, key: str, mistakes: Sequence[tuple[str, str]]) -> None:
        place = f"{spec.pointer}/{key}"
        self._problems += [Finding(text, spec.source, extend_pointer(place, at)) for text, at in mistakes]

    # -- the files ---------------------------------------------------------------------------------------------------

    def _render_models(self, progress: Progress | None, written: WrittenTexts) -> dict[str, str]:
        files: dict[str, str] = {}
        paths, jobs = list(self._jobs), list(self._jobs.values())
        for start in range(0, len(jobs), _BATCH):
            texts = render_many(jobs[start : start + _BATCH], written)
            files |= zip(paths[start : start + _BATCH], texts, strict=True)
            if progress is not None:
                progress(len(self._kept) + len(files), len(self._rows))
        return files

    def _refuse_model_as_class(self) -> None:
        class_name = self._settings.class_name
        problems = [
            Finding(
                f"'class' makes {name!r}, which is already a model of the tool {row.name!r}; choose another name",
                "pyproject.toml",
                "/tool/toolkit/class",
            )
            for row in (*self._included, *self._rows)
            for name in (*modules.model_names(row), *row.imports)
            if name in (class_name, f"Async{class_name}")
        ]
        if problems:
            raise SpecError(problems)

    def _render_package_files(self) -> dict[str, str]:
        settings, package, class_name = self._settings, self._settings.package, self._settings.class_name
        # Reused rows come in another order than newly read ones.
        rows = sorted(self._rows, key=lambda row: row.name)
        everything = sorted([*self._included, *rows], key=lambda row: row.name)
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
            "facade.py": Facade(everything, package, surface, packs, SYNC).render(),
            "async_facade.py": Facade(everything, package, surface, packs, ASYNC).render(),
            **{path: text for profile in profiles for path, text in render_profile(profile, package, packs).items()},
            "_exports.py": modules.render_exports(everything, package, class_name, settings.profiles),
            "__init__.py": modules.render_package(class_name, settings.profiles),
            "py.typed": "",
        }

    def _texts_of_reused(self) -> dict[str, str]:
        """What the earlier manifest says about the tools whose models stay, by name."""
        if self._inputs.previous is None:
            return {}
        texts = zip(self._earlier, manifests.split_rows(self._inputs.previous.manifest), strict=True)
        return {row.name: text for row, text in texts if row.name in self._reused}

    def _digest_sources(self) -> dict[str, str]:
        """Of all sources, and of the description and policy files that this run used."""
        settings, known = self._settings, self._inputs.digests
        used = {source for row in self._rows for source in (row.source, row.descriptionSource) if source}
        used |= policy_files(settings).keys() | set(self._inputs.sources)
        new = {source: digest((settings.root / source).read_bytes()) for source in used - known.keys()}
        return new | {source: value for source, value in known.items() if source in used}


def _add_schema_mistakes(findings: list[Finding], specs: list[ToolSpec]) -> list[Finding]:
    """The loader's findings and the mistakes in schemas, so that one run reports everything."""
    places = tuple(f"{found.source}:{found.pointer}/" for found in findings if "putSchema" in found.pointer)
    more = [mistake for spec in specs for mistake in schema_mistakes(spec)]
    # Mistakes at or below a place that the loader reported would only be repetitions.
    return findings + [found for found in more if not f"{found.source}:{found.pointer}/".startswith(places)]


def _plan_profiles(settings: Settings, rows: list[Row]) -> list[PlannedProfile]:
    if not settings.profiles:
        return []
    from toolkit.codegen.package.profiles import plan_profiles  # it imports what reads policies

    return plan_profiles(settings, rows)
