"""``toolkit generate | check | import | lint``: specs and the typed package. The functions import the generator."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from toolkit.cli.app import warn_not_imported, write_package
from toolkit.cli.imports import (
    ImportLines,
    choose_browser,
    choose_decision,
    failure_as_json,
    print_failures,
    print_reports,
)
from toolkit.cli.report import (
    count,
    print_json,
    print_line,
    print_text,
    print_warning,
    report_errors,
    show_progress,
    show_waiting,
)
from toolkit.cli.tool_options import AsJson, ImportNames, Project, Trust
from toolkit.errors import SetupError

Target: TypeAlias = Literal["openai", "anthropic", "gemini", "ollama"]
AllowedChange: TypeAlias = Literal["compatible", "widening"]


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
            difference = check(settings, progress)
        missing = list_missing_imports(settings)
    if as_json:
        current = {"package": settings.package, "current": not difference, "diff": difference}
        print_json({**current, "notImported": missing})
    else:
        if not difference:
            print_line(f"{settings.output_name}: up to date")
        elif not settings.output.exists():
            print_line(f"{settings.output_name} does not exist yet: run `toolkit generate`")
        else:
            form = read_form(settings.output)
            is_other = form not in (None, FORM)
            other = f" (it has form {form}, and this version of typed-toolkit writes {FORM})" if is_other else ""
            print_text(difference)
            print_line(f"{settings.output_name} differs from its specs{other}: run `toolkit generate`")
        warn_not_imported(missing)
    if difference or missing:
        raise typer.Exit(1)


def _check_live(names: list[str], allow: AllowedChange | None, trust: bool, project: Path, as_json: bool) -> None:
    from toolkit.codegen import CHANGE_KINDS, find_live_changes, find_settings

    with report_errors(as_json, spec_mistakes=2):
        settings = find_settings(project)
        found = find_live_changes(
            settings, names, ImportLines(), trust=choose_decision(trust, as_json), open_url=choose_browser(as_json)
        )
    allowed = CHANGE_KINDS[: CHANGE_KINDS.index(allow) + 1] if allow else ()
    refused = [item for item in found if item.change.kind not in allowed]
    if as_json:
        changes = [{"import": item.name, **asdict(item.change)} for item in found]
        print_json({"changes": changes, "allowed": not refused})
    else:
        for item in found:
            change = item.change
            place = f" ({change.pointer})" if change.pointer else ""
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

    The sources are the [tool.toolkit.imports.*] tables in pyproject.toml. If some of them fail, the files of the others are
    written, the failures are listed at the end, and the exit code is 1.
    What they run or reach must be confirmed once on this machine, and again after each change.
    A server with 'oauth' asks you to log in once, in the browser; after that the stored token is used.
    """
    from toolkit.codegen import ImportsFailed, find_settings, run_imports

    failures: dict[str, SetupError] = {}
    with report_errors(as_json):
        settings = find_settings(project)
        try:
            reports = run_imports(
                settings,
                names or (),
                ImportLines(),
                trust=choose_decision(trust, as_json),
                open_url=choose_browser(as_json),
            )
        except ImportsFailed as error:
            reports, failures = error.reports, error.failures
    if as_json:
        print_json([*map(asdict, reports), *(failure_as_json(*failure) for failure in failures.items())])
    else:
        print_reports(reports)
        print_failures(failures, len(reports) + len(failures))
    if failures:
        raise typer.Exit(1)


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
    imported: Annotated[
        bool, typer.Option("--imported", help="Also list what the authors of imported tools can improve.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Find mistakes and weak points in specs. Exit with code 1 if there are any.

    Reports misspelt keywords, missing or long descriptions, properties without a description, and schemas that cannot be used
    or contradict themselves. With --target: what happens to each tool's name, description and parameters at that provider.
    """
    from toolkit.codegen import find_settings, read_functions
    from toolkit.codegen import lint as lint_rows
    from toolkit.schema.checks import estimate_tokens
    from toolkit.schema.places import located_errors
    from toolkit.schema.spec_files import load_specs

    with report_errors(as_json), show_waiting("reading specs"):
        count_tokens = estimate_tokens if tokenizer is None else _load_tokenizer(tokenizer)
        settings = None if paths else find_settings(project)
        base = settings.root if settings else Path()
        with located_errors(base):
            specs = load_specs(settings.list_spec_paths() if settings else paths or [], base=base)
            specs += [spec for some in read_functions(settings).values() for spec in some] if settings else []
        foreign = {} if target else lint_rows.find_in_imported(specs, count_tokens)
        rows = lint_rows.find_for(specs, target) if target else lint_rows.find_in_own(specs, count_tokens)
        if imported:
            rows += [row for some in foreign.values() for row in some]
        rows = lint_rows.locate_rows(rows, base)
    if as_json:
        print_json([row.as_json() for row in rows])
    else:
        for row in rows:
            print_line(str(row))
        print_line(f"{count(len(specs), 'spec')}, {count(len(rows), 'finding')}")
        if not imported:
            _print_imported({name: len(found) for name, found in foreign.items() if found})
    if rows:
        raise typer.Exit(1)


def _print_imported(findings: dict[str, int]) -> None:
    """Says that there are findings in imported tools, of which the reader can change nothing but whether to import them."""
    for name, number in findings.items():
        print_line(f"imported from {name!r}: {count(number, 'finding')} for its author; --imported lists them")


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
