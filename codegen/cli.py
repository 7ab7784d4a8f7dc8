"""``python -m codegen``, and behind ``toolkit generate`` and ``toolkit check``."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from codegen import run
from codegen.plan import Progress
from codegen.settings import find_settings
from toolkit.errors import GenerationError, SetupError, SpecError

Project = Annotated[Path, typer.Option(help="The project's folder; its pyproject.toml holds [tool.toolkit].")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Make a typed package from tool specs.")


@app.command()
def generate(project: Project = Path(), as_json: AsJson = False) -> None:
    """Write the typed package of this project; only what changed is made anew."""
    with reported(as_json):
        settings = find_settings(project)
        with progress_bar() as progress:
            changed = run.generate(settings, progress, parallel=True)
        folder = run.shown(settings.output, settings.root)
        if as_json:
            print_json({"package": settings.package, "changed": changed})
        elif changed:
            typer.echo(f"{folder}: {len(changed)} files changed")
        else:
            typer.echo(f"{folder}: nothing to do")


@app.command()
def check(project: Project = Path(), as_json: AsJson = False) -> None:
    """Compare the committed package with what its specs give now; exit 1 with a diff if they differ."""
    with reported(as_json):
        settings = find_settings(project)
        with progress_bar() as progress:
            difference = run.check(settings, progress, parallel=True)
        folder = run.shown(settings.output, settings.root)
        if as_json:
            print_json({"package": settings.package, "current": not difference, "diff": difference})
        elif difference:
            typer.echo(f"{difference}\n{folder} is not what its specs give: run `toolkit generate`", nl=True)
        else:
            typer.echo(f"{folder}: up to date")
        if difference:
            raise typer.Exit(1)


@contextmanager
def reported(as_json: bool) -> Iterator[None]:
    """Our errors as text on stderr, or as JSON for scripts: 1 for mistakes in specs, 2 for a wrong set-up."""
    try:
        yield
    except SetupError as error:
        if not as_json:
            typer.echo(str(error), err=True)
        elif isinstance(error, SpecError):
            print_json({"problems": list(error.problems)})
        else:
            print_json({"error": str(error)})
        raise typer.Exit(1 if isinstance(error, SpecError | GenerationError) else 2) from None


@contextmanager
def progress_bar() -> Iterator[Progress | None]:
    """A bar for people who wait on a terminal; nothing for scripts."""
    if not sys.stderr.isatty():
        yield None
        return
    with typer.progressbar(length=1, label="generating", file=sys.stderr) as bar:

        def step(done: int, total: int) -> None:
            bar.length = total
            bar.update(done - bar.pos)

        yield step


def print_json(value: Any) -> None:
    typer.echo(json.dumps(value, ensure_ascii=False, indent=2))


def main() -> None:
    app()
