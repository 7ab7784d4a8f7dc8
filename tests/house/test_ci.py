"""What CI does before the checks: bubblewrap is installed where that is possible, and its absence stops nothing. Chromium must
be there, or CI stops."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.projects import REPOSITORY

SCRIPT = REPOSITORY / ".ci" / "install-bubblewrap"
SKIPPED = "the cases of the bubblewrap carrier are skipped; the summary of the tests says how many"
INSTALLS = (
    'echo "$@" >>"$LOG"; case "$*" in *install*) printf "#!/bin/sh\\n" >"$BIN/bwrap"; chmod +x "$BIN/bwrap";; esac'
)
INSTALLS_AFTER_UPDATE = f'case "$*" in *update*) : >"$BIN/lists";; esac; [ -e "$BIN/lists" ] || exit 100; {INSTALLS}'
FAILS = 'echo "$@" >>"$LOG"; echo a long complaint; echo another >&2; exit 100'
SILENT = 'echo "$@" >>"$LOG"'

# The programs on the path besides the usual ones, what the script says, and how often apt-get is called.
CASES: dict[str, tuple[dict[str, str], str, int]] = {
    "it is there": ({"bwrap": "", "apt-get": FAILS, "id": "echo 0"}, "", 0),
    "no apt-get": (
        {"id": "echo 0"},
        f"bubblewrap is missing and could not be installed (there is no apt-get): {SKIPPED}",
        0,
    ),
    "root": ({"apt-get": INSTALLS, "id": "echo 0"}, "bubblewrap was missing and has been installed", 1),
    "root, old lists": (
        {"apt-get": INSTALLS_AFTER_UPDATE, "id": "echo 0"},
        "bubblewrap was missing and has been installed",
        2,
    ),
    "offline": (
        {"apt-get": FAILS, "id": "echo 0"},
        f"bubblewrap is missing and could not be installed (apt-get failed): {SKIPPED}",
        2,
    ),
    "nothing comes": (
        {"apt-get": SILENT, "id": "echo 0"},
        f"bubblewrap is missing and could not be installed (apt-get installed no bwrap): {SKIPPED}",
        1,
    ),
    "out of time": (
        {"apt-get": INSTALLS, "id": "echo 0", "timeout": "exit 124"},
        f"bubblewrap is missing and could not be installed (apt-get failed): {SKIPPED}",
        0,
    ),
    "a user with sudo": (
        {"apt-get": INSTALLS, "id": "echo 1000", "sudo": 'shift; exec "$@"'},
        "bubblewrap was missing and has been installed",
        1,
    ),
    "a user whose sudo asks": (
        {"apt-get": INSTALLS, "id": "echo 1000", "sudo": "exit 1"},
        f"bubblewrap is missing and could not be installed (it needs root, or sudo without a password): {SKIPPED}",
        0,
    ),
    "a user without sudo": (
        {"apt-get": INSTALLS, "id": "echo 1000"},
        f"bubblewrap is missing and could not be installed (it needs root, or sudo without a password): {SKIPPED}",
        0,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_bubblewrap_is_installed_or_its_absence_is_named(tmp_path: Path, case: str) -> None:
    programs, said, calls = CASES[case]
    done, called = run_script(tmp_path, SCRIPT, programs)
    assert (done.returncode, done.stdout.strip(), done.stderr, called) == (0, said, "", calls)


@pytest.mark.parametrize("case", CASES)
def test_chromium_is_installed_or_ci_stops(tmp_path: Path, case: str) -> None:
    programs, said, calls = CASES[case]
    programs = {
        {"bwrap": "chromium"}.get(name, name): text.replace("bwrap", "chromium") for name, text in programs.items()
    }
    said = said.replace("bubblewrap was", "Chromium was").replace("bubblewrap is", "Chromium is")
    said = said.replace("no bwrap", "no chromium").replace(SKIPPED, "the tests of the playground need it")
    done, called = run_script(tmp_path, REPOSITORY / ".ci" / "install-chromium", programs)
    fails = "could not be installed" in said
    assert (done.returncode, (done.stderr if fails else done.stdout).strip(), called) == (int(fails), said, calls)


def run_script(tmp_path: Path, script: Path, programs: dict[str, str]) -> tuple[subprocess.CompletedProcess[str], int]:
    """How the script ended, and how often it called apt-get."""
    log = tmp_path / "log"
    for name in ("timeout", "env", "chmod", "true"):
        os.symlink(shutil.which(name) or name, tmp_path / name)
    for name, text in programs.items():
        (tmp_path / name).unlink(missing_ok=True)
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    variables = {"PATH": str(tmp_path), "BIN": str(tmp_path), "LOG": str(log)}
    done = subprocess.run(["/bin/bash", script], env=variables, capture_output=True, text=True, check=False)
    return done, len(log.read_text().splitlines() if log.exists() else [])
