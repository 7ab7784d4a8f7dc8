"""The start of the command line ``toolkit``. The commands are in ``commands``.

What answers at once is answered here, before typer is imported: it imports pydantic, which takes longer than the answer.
"""

from __future__ import annotations

import sys
from pathlib import Path

from toolkit.cli.report import print_line, report_crash, report_interrupt, show_stderr_plainly
from toolkit.errors import SetupError


def main() -> None:
    show_stderr_plainly()
    try:
        code = _run()
    except KeyboardInterrupt:
        code = report_interrupt()
    except Exception as error:  # no traceback reaches a user who did not ask for it
        code = report_crash(error)
    sys.exit(code)


def _run() -> int:
    if sys.argv[1:] == ["--version"]:
        from toolkit import __version__

        print_line(__version__)
        return 0
    if sys.argv[1:] == ["generate"] and _has_reported_nothing_to_do():
        return 0
    from toolkit.cli.commands import app
    from toolkit.cli.usage import run

    return run(app)


def _has_reported_nothing_to_do() -> bool:
    """The answer of ``toolkit generate`` if the package is up to date. Anything else is left to the command."""
    from toolkit.codegen.run import has_nothing_to_do
    from toolkit.codegen.settings import find_settings, list_missing_imports

    try:
        settings = find_settings(Path())
        if list_missing_imports(settings) or not has_nothing_to_do(settings):
            return False
        print_line(f"{settings.output_name}: nothing to do")
    except (SetupError, OSError):
        return False
    return True
