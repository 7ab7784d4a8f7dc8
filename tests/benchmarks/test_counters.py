"""Instructions are counted by whichever program works here; where none does, that is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.counters import Counted, find_counter
from benchmarks.parts import PARTS

PERF = """#!/bin/sh
while [ "$1" != -o ]; do shift; done
echo '# started on some day
{found},,instructions:u,100,100.00,,' >"$2"
"""
VALGRIND = """#!/bin/sh
for word in "$@"; do case "$word" in --log-file=*) log="${word#--log-file=}";; esac; done
folder="${log%/*}"
echo '==7== I   refs:      1,234,567' >"$folder/7"
echo '==8== I   refs:      2,000,000' >"$folder/8"
echo printed
"""


def install(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(script)
    (folder / name).chmod(0o755)


def test_perf_is_preferred(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "perf", PERF.replace("{found}", "4711"))
    install(tmp_path, "valgrind", VALGRIND)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    counter = find_counter()
    assert counter is not None
    assert (counter.name, counter.run(["true"]).instructions) == ("perf stat", {0: 4711})


def test_valgrind_counts_each_process_where_the_kernel_counts_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "perf", PERF.replace("{found}", "<not supported>"))
    install(tmp_path, "valgrind", VALGRIND)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    counter = find_counter()
    assert counter is not None
    assert counter.name == "valgrind, cachegrind"
    assert counter.run(["true"]) == Counted("printed\n", {0: 2_000_000, 7: 1_234_567, 8: 2_000_000})


def test_without_either_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    [table] = PARTS["instructions"].measure(full=True)
    assert table.rows == ()
    assert table.notes == (
        "Neither `perf stat -e instructions:u` nor valgrind works here: instructions are not counted.",
    )
