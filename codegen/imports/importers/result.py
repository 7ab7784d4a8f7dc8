"""What every importer gives, whatever it read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Imported:
    """Tools found elsewhere, as plain data.

    ``origin`` is what to remember of where they came from beside the import's kind and name, without anything secret or
    anything that differs from one run to the next; ``tools`` are as a spec file has them, in the order of the origin;
    ``notes`` are sentences for the person who imports.
    """

    origin: dict[str, Any]
    tools: list[dict[str, Any]]
    notes: tuple[str, ...] = ()
