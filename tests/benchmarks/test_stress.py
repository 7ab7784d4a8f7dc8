"""``make stress`` in small."""

from __future__ import annotations

import pytest

from benchmarks.stress.__main__ import run, tables


@pytest.mark.whole
def test_a_little_stress_loses_and_leaks_nothing() -> None:
    loads, faults = run(0.001)
    assert [(row.name, row.unexpected, row.leaked) for row in loads if row.unexpected or row.leaked] == []
    assert [row for row in faults if row.lost or row.left] == []
    names = [*(row.name for row in loads), *(row.name for row in faults)]
    assert all(name in tables(loads, faults) for name in names)
