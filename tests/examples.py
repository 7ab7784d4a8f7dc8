"""How many examples a property is tried with, and how often a race is run: all in ``make test-all``, a part in ``make test``."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings

PART = 4
TWINS = [pytest.param("sync", marks=pytest.mark.twin(0)), pytest.param("async", marks=pytest.mark.twin(1))]
"""For ``params=`` of a fixture. ``make test`` runs each test, and each of its rows, in one of the two flavours, chosen by name."""


def tries(count: int, **options: Any) -> settings:
    """``count`` new examples each time in ``make test-all``; in ``make test`` a fourth, always the same."""
    return settings(max_examples=max(repeats(count), min(count, 20)), deadline=None, **options)


def repeats(count: int) -> int:
    """``count`` in ``make test-all``, else a fourth. ``tests/conftest.py`` has chosen before it is asked."""
    in_make_test = settings.default is not None and settings.default.derandomize
    return count // PART if in_make_test else count
