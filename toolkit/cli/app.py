"""The start of the command line ``toolkit``, whose commands are in ``commands``; and ``toolkit generate`` without options.

Editors and watchers run ``generate`` after each change, and mostly there is nothing to do. So it starts before typer is
imported: typer imports pydantic, and both take longer than the whole answer.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from toolkit.cli.report import (
    count,
    print_json,
    print_line,
    print_warning,
    report_crash,
    report_errors,
    report_interrupt,
    show_progress,
    show_stderr_plainly,
)


def main() -> None:
    show_stderr_plainly()
    try:
        code = _run()
    except KeyboardInterrupt:
        code = report_interrupt()
    except BrokenPipeError:
        # The reader of the output has gone, as in `toolkit tools | head`. Python flushes what is left when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    except Exception as error:  # no traceback reaches a user who did not ask for it
        code = report_crash(error)
    sys.exit(code)


def _run() -> int:
    if sys.argv[1:] == ["--version"]:
        from toolkit import __version__

        print_line(__version__)
        return 0
    if sys.argv[1:] == ["generate"]:
        write_package(Path(), as_json=False)
        return 0
    from toolkit.cli.commands import app
    from toolkit.cli.usage import run

    return run(app)


def write_package(project: Path, *, as_json: bool) -> None:
    """Generates the package of a project and says what changed."""
    from toolkit.codegen import find_settings, generate, list_missing_imports, read_form

    with report_errors(as_json):
        settings = find_settings(project)
        old_form = read_form(settings.output)
        with show_progress("generating") as progress:
            changed = generate(settings, progress)
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
