"""The start of the command line ``toolkit``. The commands are in ``commands``."""

from __future__ import annotations

import sys
from pathlib import Path

from toolkit.cli.report import print_line, show_stderr_plainly
from toolkit.errors import SetupError


def main() -> None:
    show_stderr_plainly()
    if sys.argv[1:] == ["generate"] and _has_reported_nothing_to_do():
        return
    from toolkit.cli.commands import app

    app()


def _has_reported_nothing_to_do() -> bool:
    """The answer of ``toolkit generate`` if the package is up to date. Anything else is left to the command.

    It is the most frequent answer, and reading the options would take longer than the answer: typer imports pydantic.
    """
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
