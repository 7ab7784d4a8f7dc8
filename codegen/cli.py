"""``python -m codegen``, and behind ``toolkit generate`` and ``toolkit check``."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias

import typer

from toolkit.codegen import run
from toolkit.codegen.imports.drift import KINDS
from toolkit.codegen.imports.freshness import not_imported
from toolkit.codegen.imports.run import live_changes, run_imports
from toolkit.codegen.package.plan import Progress
from toolkit.codegen.settings import find_settings
from toolkit.errors import GenerationError, SetupError, SpecError

Project = Annotated[Path, typer.Option(help="The project's folder; its pyproject.toml has the table tool.toolkit.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
Live = Annotated[bool, typer.Option("--live", help="Ask the origins of imports what they tell now.")]
Allowed: TypeAlias = Literal["compatible", "widening"]
Allow = Annotated[Allowed | None, typer.Option(help="Changes up to this class are no reason to fail.")]
ImportNames = Annotated[list[str] | None, typer.Argument(help="Imports of the settings; by default all of them.")]

_MAX_NOTES: Final = 10

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Make a typed package from tool specs.")


@app.command()
def generate(project: Project = Path(), as_json: AsJson = False) -> None:
    """Write the typed package of this project; only what changed is made anew."""
    with reported(as_json):
        settings = find_settings(project)
        with progress_bar() as progress:
            changed = run.generate(settings, progress, parallel=True)
        folder = run.shown(settings.output, settings.root)
        missing = not_imported(settings)
        if as_json:
            print_json({"package": settings.package, "changed": changed, "notImported": missing})
        elif changed:
            typer.echo(f"{folder}: {len(changed)} files changed")
        else:
            typer.echo(f"{folder}: nothing to do")
        if missing and not as_json:
            _tell_not_imported(missing)


@app.command()
def check(
    names: ImportNames = None,
    live: Live = False,
    allow: Allow = None,
    project: Project = Path(),
    as_json: AsJson = False,
) -> None:
    """Compare the committed package with what its specs give now; exit 1 with a diff if they differ.

    With --live: compare committed imports with what servers, documents and modules tell now; exit 1 if they changed.
    """
    if live:
        _check_live(names or [], allow, project, as_json)
        return
    if names or allow:
        raise typer.BadParameter("names of imports and --allow belong to --live")
    with reported(as_json):
        settings = find_settings(project)
        with progress_bar() as progress:
            difference = run.check(settings, progress, parallel=True)
        folder = run.shown(settings.output, settings.root)
        missing = not_imported(settings)
        if as_json:
            print_json(
                {"package": settings.package, "current": not difference, "diff": difference, "notImported": missing}
            )
        elif difference:
            typer.echo(f"{difference}\n{folder} is not what its specs give: run `toolkit generate`", nl=True)
        else:
            typer.echo(f"{folder}: up to date")
        if missing and not as_json:
            _tell_not_imported(missing)
        if difference or missing:
            raise typer.Exit(1)


def _tell_not_imported(names: list[str]) -> None:
    typer.echo(f"not imported yet: {', '.join(names)}; run `toolkit import {' '.join(names)}`", err=True)


def _check_live(names: list[str], allow: Allowed | None, project: Path, as_json: bool) -> None:
    with reported(as_json, mistakes=2):
        settings = find_settings(project)
        with progress_bar("asking") as progress:
            found = live_changes(settings, names, progress)
    allowed = KINDS[: KINDS.index(allow) + 1] if allow else ()
    refused = [item for item in found if item.change.kind not in allowed]
    if as_json:
        print_json(
            {"changes": [{"import": item.name, **asdict(item.change)} for item in found], "allowed": not refused}
        )
    else:
        for item in found:
            change = item.change
            place = f" @ {change.pointer}" if change.pointer else ""
            typer.echo(f"{item.name}: {change.tool or 'the origin'}: {change.kind}: {change.sentence}{place}")
        counts = [f"{sum(item.change.kind == kind for item in found)} {kind}" for kind in KINDS]
        typer.echo(", ".join(counts) if found else "nothing changed")
        if refused:
            again = " ".join(dict.fromkeys(item.name for item in found))
            typer.echo(f"to take them over: `toolkit import {again}`, then `toolkit generate`", err=True)
    if refused:
        raise typer.Exit(1)


@app.command(name="import")
def import_(names: ImportNames = None, project: Project = Path(), as_json: AsJson = False) -> None:
    """Read servers, documents and modules of the settings anew, and write their spec files."""
    with reported(as_json):
        settings = find_settings(project)
        with progress_bar("importing") as progress:
            reports = run_imports(settings, names or (), progress)
    if as_json:
        print_json([asdict(report) for report in reports])
        return
    for report in reports:
        typer.echo(f"{report.file}: {report.state}")
        for word, tools in (("added", report.added), ("removed", report.removed), ("changed", report.changed)):
            if tools:
                typer.echo(f"  {word}: {', '.join(tools)}")
        for note in report.notes[:_MAX_NOTES]:
            typer.echo(f"  note: {note}", err=True)
        if len(report.notes) > _MAX_NOTES:
            typer.echo(f"  and {len(report.notes) - _MAX_NOTES} more notes; --json has them all", err=True)


@contextmanager
def reported(as_json: bool, mistakes: int = 1) -> Iterator[None]:
    """Our errors as text on stderr, or as JSON for scripts: ``mistakes`` for those in specs, 2 for a wrong set-up."""
    try:
        yield
    except SetupError as error:
        if not as_json:
            typer.echo(str(error), err=True)
        elif isinstance(error, SpecError):
            print_json({"problems": list(error.problems)})
        else:
            print_json({"error": str(error)})
        raise typer.Exit(mistakes if isinstance(error, SpecError | GenerationError) else 2) from None


@contextmanager
def progress_bar(label: str = "generating") -> Iterator[Progress | None]:
    """A bar for people who wait on a terminal; nothing for scripts."""
    if not sys.stderr.isatty():
        yield None
        return
    with typer.progressbar(length=1, label=label, file=sys.stderr) as bar:

        def step(done: int, total: int) -> None:
            bar.length = total
            bar.update(done - bar.pos)

        yield step


def print_json(value: Any) -> None:
    typer.echo(json.dumps(value, ensure_ascii=False, indent=2))


def main() -> None:
    app()
