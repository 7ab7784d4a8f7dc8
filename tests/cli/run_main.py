"""The command line in this process: the real entry point, without the time that a new interpreter takes."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from toolkit.cli.app import main


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str


def run_main(folder: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]) -> Ended:
    """Runs ``toolkit`` with these arguments in a folder. Not for projects: their modules would stay imported."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("NO_COLOR", "1")
        patch.setenv("COLUMNS", "100")
        patch.setattr(sys, "argv", ["toolkit", *arguments])
        patch.setattr(sys, "stderr", sys.stderr)  # `main` replaces it
        patch.setattr(sys, "path", [*sys.path])
        with pytest.raises(SystemExit) as ended:
            main()
    printed = capsys.readouterr()
    assert "Traceback" not in printed.err
    return Ended(int(ended.value.code or 0), printed.out, printed.err)
