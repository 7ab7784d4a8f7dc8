"""Committed text forms: each is in ``snapshots/<tool>/<case>.txt`` and has a budget in bytes.

``pytest --update-snapshots`` rewrites them; the diff shows what models will see from now on.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

SNAPSHOTS: Final = Path(__file__).parent / "snapshots"


class Snapshots:
    """Compares texts with the committed ones, or writes them."""

    def __init__(self, *, update: bool) -> None:
        self._update = update

    def check(self, name: str, text: str, *, budget: int) -> None:
        """``name`` is ``<tool>/<case>``; ``budget`` is how many bytes of a model's window the text may take."""
        size = len(text.encode())
        assert size <= budget, f"{name} takes {size} bytes of {budget}"
        file = SNAPSHOTS / f"{name}.txt"
        if self._update:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(f"{text}\n".encode())
        assert file.is_file(), f"{file} is missing; run pytest --update-snapshots and look at it"
        assert f"{text}\n" == file.read_bytes().decode()
