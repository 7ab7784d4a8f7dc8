"""The parts of the benchmarks. Each is a module with ``measure(full)``, which yields tables; not full is a quick try-out.

A part is imported when it runs, so that one part needs only what it measures.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Final, NamedTuple

from benchmarks.results import Table


class Part(NamedTuple):
    """``tolerance``: by how much a ratio may differ between two runs without meaning anything."""

    name: str
    about: str
    tolerance: float
    slow: bool = False

    def measure(self, *, full: bool) -> Iterator[Table]:
        tables: Iterator[Table] = import_module(f"benchmarks.parts.{self.name}").measure(full=full)
        return tables


PARTS: Final = {
    part.name: part
    for part in (
        Part("calls", "one call of a tool, beside the peers and bare pydantic-core", 0.2),
        Part("instructions", "the same calls and the import, in instructions of the processor", 0.03),
        Part("growth", "calls by size of arguments and outputs, and by how many run at once", 0.3),
        Part("dumps", "dumps and constructors of tool models, beside pydantic's", 0.2),
        Part("imports", "importing, and the first call, beside the peers", 0.2),
        Part("generation", "generating 1,000 tools; calls and imports by number of tools", 0.3),
        Part("commands", "one command in each sandbox, beside a plain subprocess", 0.5),
        Part("programs", "checked programs: check, start and one call, beside a subprocess, invoke and Monty", 0.5),
        Part("search", "grep and glob over 20,000 files, beside ripgrep and a bare walk; late lines of a file", 0.3),
        Part("pages", "HTML to Markdown, beside html.parser", 0.3),
        Part("prompts", "how much text tells a model about 18, 100 and 1,000 tools", 0.02),
        Part("adversarial", "hostile inputs: how time grows with size", 0.8),
        Part("checking", "mypy with 10 to 1,000 tools (minutes; only by name)", 0.2, slow=True),
        Part("pyright", "pyright with 10 to 1,000 tools (minutes; only by name)", 0.2, slow=True),
    )
}
