"""What ``toolkit generate`` does. It needs no typer, so that it can start before typer is imported."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from toolkit.cli.report import count, print_json, print_line, print_warning, report_errors, show_progress


def write_package(project: Path, *, as_json: bool) -> None:
    """Generates the package of a project and says what changed."""
    from toolkit.codegen import find_settings, generate, list_missing_imports, read_form

    with report_errors(as_json):
        settings = find_settings(project)
        old_form = read_form(settings.output)
        with show_progress("generating") as progress:
            changed = generate(settings, progress, parallel=True)
        missing = list_missing_imports(settings)
    if as_json:
        print_json({"package": settings.package, "changed": changed, "notImported": missing})
        return
    print_line(f"{settings.output_name}: {count(len(changed), 'file') + ' changed' if changed else 'nothing to do'}")
    if (new_form := read_form(settings.output)) != old_form and old_form is not None:
        print_line(
            f"everything was regenerated: it had form {old_form}, and this version of typed-toolkit writes form {new_form}"
        )
    warn_not_imported(missing)


def warn_not_imported(names: Sequence[str]) -> None:
    if names:
        print_warning(f"not imported yet: {', '.join(names)}; run `toolkit import {' '.join(names)}`")
