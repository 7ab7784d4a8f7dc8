"""What every importer returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from toolkit.schema.problems import Finding


@dataclass(frozen=True, slots=True)
class ImportResult:
    """Imported tools as plain data.

    ``origin`` describes the source besides the import's kind and name, without secrets and without anything that differs
    between runs. ``tools`` are as in a spec file, in the order of the origin. ``notes`` are for the person who imports,
    with a place where there is one.
    """

    origin: dict[str, Any]
    tools: list[dict[str, Any]]
    notes: tuple[Finding | str, ...] = ()
