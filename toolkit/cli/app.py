"""The start of the command line ``toolkit``. The commands are in ``commands``."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from signal import SIGINT

from toolkit.cli.report import show_stderr_plainly


def main() -> None:
    show_stderr_plainly()
    if sys.argv[1:] == ["generate"]:
        # The most frequent command. There are no options to read, and typer, which would read them, imports pydantic.
        _generate()
        return
    from toolkit.cli.commands import app

    app()


def _generate() -> None:
    """Ends as every command does: an interruption and a reader that went away are no errors of ours."""
    from toolkit.cli.write_package import write_package

    try:
        write_package(Path(), as_json=False)
    except KeyboardInterrupt:
        raise SystemExit(128 + SIGINT) from None
    except BrokenPipeError:
        # Python flushes what is left when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1) from None
