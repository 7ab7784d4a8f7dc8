"""The start of the command line ``toolkit``. The commands are in ``commands``.

What answers at once is answered here, before typer is imported: it imports pydantic, which takes longer than the answer.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from toolkit.cli.report import print_line, report_crash, report_interrupt, show_stderr_plainly


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
        # The most frequent command, without options to read.
        from toolkit.cli.generate import write_package

        write_package(Path(), as_json=False)
        return 0
    from toolkit.cli.commands import app
    from toolkit.cli.usage import run

    return run(app)
