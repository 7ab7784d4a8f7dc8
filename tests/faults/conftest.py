"""A directory in memory: thousands of small trees are made and removed."""

from __future__ import annotations

from tests.guard.conftest import memory as memory
