"""``toolkit generate | check | import | lint``: specs and the typed package. The functions import the generator."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypeAlias

import typer

from toolkit.cli.login import choose_browser
from toolkit.cli.options import AsJson, ImportNames, Project, Trust
from toolkit.cli.report import print_json, print_line, print_text, print_warning, report_errors, show_progress
from toolkit.cli.trust import choose_decision
from toolkit.cli.write_package import warn_not_imported, write_package
from toolkit.errors import SetupError

if TYPE_CHECKING:
    from toolkit.spec import Finding, ToolSpec

Target: TypeAlias = Literal["openai", "anthropic", "gemini", "ollama"]
AllowedChange: TypeAlias = Literal["compatible", "widening"]

_MAX_NOTES: Final = 10


def generate(project: Project = Path(), as_json: AsJson = False) -> None:
    """Write the typed package of this project. Only what changed is regenerated."""
    write_package(project, as_json=as_json)


def check(
    names: ImportNames = None,
    live: Annotated[bool, typer.Option("--live", help="Compare imports with their origins instead.")] = False,
    allow: Annotated[
        AllowedChange | None,
        typer.Option(help="With --live: changes up to this class do not fail.", show_default=False),
    ] = None,
    trust: Trust = False,
    project: Project = Path(),
    as_json: AsJson = False,
) -> None:
    """Compare the committed package with its specs. If they differ, print a diff and exit with code 1.

    With --live: read the servers, documents and modules of the imports again, and exit with code 1 if their tools changed.
    Nothing is written.
    """
    if live:
        _check_live(names or [], allow, trust, project, as_json)
        return
    if names or allow or trust:
        raise typer.BadParameter("names of imports, --allow and --trust need --live")
    from toolkit.codegen import FORM, check, find_settings, list_missing_imports, read_form

    with report_errors(as_json):
        settings = find_settings(project)
        with show_progress("generating") as progress:
            difference = check(settings, progress, parallel=True)
        missing = list_missing_imports(settings)
    if as_json:
        current = {"package": settings.package, "current": not difference, "diff": difference}
        print_json({**current, "notImported": missing})
    else:
        if difference:
            form = read_form(settings.output)
            other = (
                ""
                if form in (None, FORM)
                else f" (it has form {form}, and this version of typed-toolkit writes {FORM})"
            )
            print_text(difference)
            print_line(f"{settings.output_name} differs from its specs{other}: run `toolkit generate`")
        else:
            print_line(f"{settings.output_name}: up to date")
        warn_not_imported(missing)
    if difference or missing:
        raise typer.Exit(1)


def _check_live(names: list[str], allow: AllowedChange | None, trust: bool, project: Path, as_json: bool) -> None:
    from toolkit.codegen import CHANGE_KINDS, find_live_changes, find_settings

    with report_errors(as_json, spec_mistakes=2):
        settings = find_settings(project)
        with show_progress("comparing") as progress:
            found = find_live_changes(
                settings, names, progress, trust=choose_decision(trust, as_json), open_url=choose_browser(as_json)
            )
    allowed = CHANGE_KINDS[: CHANGE_KINDS.index(allow) + 1] if allow else ()
    refused = [item for item in found if item.change.kind not in allowed]
    if as_json:
        changes = [{"import": item.name, **asdict(item.change)} for item in found]
        print_json({"changes": changes, "allowed": not refused})
    else:
        for item in found:
            change = item.change
            place = f" @ {change.pointer}" if change.pointer else ""
            print_line(f"{item.name}: {change.tool or 'the origin'}: {change.kind}: {change.sentence}{place}")
        counts = [f"{sum(item.change.kind == kind for item in found)} {kind}" for kind in CHANGE_KINDS]
        print_line(", ".join(counts) if found else "nothing changed")
        if refused:
            changed = " ".join(dict.fromkeys(item.name for item in found))
            print_warning(f"to accept the changes: `toolkit import {changed}`, then `toolkit generate`")
    if refused:
        raise typer.Exit(1)


def import_specs(
    names: ImportNames = None, trust: Trust = False, project: Project = Path(), as_json: AsJson = False
) -> None:
    """Import tools of servers, documents and modules as spec files.

    The sources are the [tool.toolkit.imports.*] tables in pyproject.toml. If one of them fails, nothing is written.
    What they run or reach must be confirmed once on this machine, and again after each change.
    A server with 'oauth' asks you to log in once, in the browser; after that the stored token is used.
    """
    from toolkit.codegen import find_settings, run_imports

    with report_errors(as_json):
        settings = find_settings(project)
        with show_progress("importing") as progress:
            reports = run_imports(
                settings,
                names or (),
                progress,
                trust=choose_decision(trust, as_json),
                open_url=choose_browser(as_json),
            )
    if as_json:
        print_json([asdict(report) for report in reports])
        return
    for report in reports:
        print_line(f"{report.file}: {report.state}")
        for word, tools in (("added", report.added), ("removed", report.removed), ("changed", report.changed)):
            if tools:
                print_line(f"  {word}: {', '.join(tools)}")
        for note in report.notes[:_MAX_NOTES]:
            print_warning(f"  note: {note}")
        if len(report.notes) > _MAX_NOTES:
            print_warning(f"  and {len(report.notes) - _MAX_NOTES} more notes; --json prints all of them")


def lint(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="PATH", help="Spec files or folders. Default: the project's.", show_default=False),
    ] = None,
    project: Project = Path(),
    tokenizer: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:CALLABLE", help="Counts the tokens of a text. Default: bytes / 4.", show_default=False
        ),
    ] = None,
    target: Annotated[
        Target | None,
        typer.Option(help="List what this provider refuses, drops or changes.", show_default=False),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Find mistakes and weak points in specs. Exit with code 1 if there are any.

    Reports missing or long descriptions, properties without a description, and schemas that cannot be used or contradict
    themselves. With --target: what happens to each tool's name, description and parameters at that provider.
    """
    from toolkit.codegen import find_settings, read_functions, schema_findings
    from toolkit.spec import estimate_tokens, lint_spec, load_specs

    with report_errors(as_json):
        count = estimate_tokens if tokenizer is None else _load_tokenizer(tokenizer)
        settings = None if paths else find_settings(project)
        base = settings.root if settings else Path()
        specs = load_specs(settings.spec_paths if settings else paths or [], base=base)
        specs += [spec for some in read_functions(settings).values() for spec in some] if settings else []
        found: list[tuple[dict[str, str], Finding]]
        if target is None:
            found = [({}, finding) for spec in specs for finding in schema_findings(spec)]
            # The reader cannot change the descriptions of imported tools.
            found += [({}, finding) for spec in specs if spec.origin is None for finding in lint_spec(spec, count)]
        else:
            found = [row for spec in specs for row in _target_findings(spec, target)]
    if as_json:
        print_json([{**effect, "message": f.message, "source": f.source, "pointer": f.pointer} for effect, f in found])
    else:
        for effect, finding in found:
            print_line(f"{effect['tool']}: {effect['effect']}: {finding}" if effect else str(finding))
        print_line(f"{len(specs)} specs, {len(found)} findings")
    if found:
        raise typer.Exit(1)


def _target_findings(spec: ToolSpec, target: Target) -> Iterator[tuple[dict[str, str], Finding]]:
    """What a provider does to one tool: the tool's name and the effect, and where."""
    from toolkit.adapters.lint import lint_for
    from toolkit.jsonschema.pointer import split_pointer
    from toolkit.spec.problems import Finding, below
    from toolkit.wire.definition import ToolDefinition
    from toolkit.wire.json_types import JsonObject

    schema = JsonObject(dict[str, object](spec.input_schema))
    for remark in lint_for(target, ToolDefinition(spec.wire_name, spec.long_description or spec.description, schema)):
        # Pointers into the spec file: those are safe to print.
        pointer = reduce(below, split_pointer(remark.pointer), spec.pointer)
        yield {"tool": spec.wire_name, "effect": remark.effect}, Finding(remark.message, spec.source, pointer)


def _load_tokenizer(name: str) -> Callable[[str], int]:
    module, _, attribute = name.partition(":")
    try:
        found: Callable[[str], int] = getattr(importlib.import_module(module), attribute)
        counted: object = found("a text")
    except Exception as error:  # whatever the user's module or function raises
        raise SetupError(f"the tokenizer {name!r} cannot be used: {error}; write module:callable") from None
    if type(counted) is not int:
        raise SetupError(f"the tokenizer {name!r} must return the number of tokens of a text as an int")
    return found
