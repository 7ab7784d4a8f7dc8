"""How many examples a property is tried with."""

from __future__ import annotations

from typing import Any

from hypothesis import settings

PART = 4


def tries(count: int, **options: Any) -> settings:
    """``count`` of them in ``make test-all``, new ones each time; in ``make test`` a fourth, always the same."""
    same = settings.default is not None and settings.default.derandomize
    return settings(max_examples=max(count // PART, 20) if same else count, deadline=None, **options)
