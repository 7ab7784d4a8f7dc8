"""The tables of programs, and what a checker needs to read them: a prelude with some built-in tools and inputs."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from toolkit.generated import CATALOG, ToolName
from toolkit.runtime.programs.check import write_prelude
from toolkit.runtime.programs.gate import ALLOWED_IMPORTS, ParsedProgram, parse_program
from toolkit.runtime.programs.result import ProgramError
from toolkit.runtime.signatures import CatalogSignatures

FOLDER = Path(__file__).parent
TOOLS: tuple[ToolName, ...] = ("edit", "exec_command", "glob", "grep", "list", "read_file", "todoread")
INPUTS: dict[str, object] = {
    "paths": ["a.txt", "b.txt"],
    "limit": 3,
    "options": {"depth": 1},
    "verbose": True,
    "ratio": 0.5,
}


class Check(Protocol):
    """Checks the types of a program that passes the gate, after the previous ones of its session."""

    def __call__(self, source: str, *previous: str) -> tuple[ProgramError, ...]: ...


@dataclass(frozen=True)
class ProgramCase:
    """A program of a table; ``errors`` are the beginnings of its messages by line."""

    name: str
    source: str

    @property
    def errors(self) -> dict[int, str]:
        lines = enumerate(self.source.split("\n"), 1)
        return {number: found[1] for number, line in lines if (found := re.search("# error: (.+)$", line))}


def read_cases(file: str) -> list[ProgramCase]:
    blocks = (FOLDER / file).read_text().split("\n=== ")[1:]
    return [ProgramCase(name, source.strip("\n") + "\n") for name, _, source in (one.partition("\n") for one in blocks)]


def parse(source: str) -> ParsedProgram:
    return parse_program(source, {name: name for name in TOOLS}, ALLOWED_IMPORTS)


@functools.cache
def prelude() -> str:
    signatures = CatalogSignatures(CATALOG)
    return write_prelude([signatures.of(name) for name in TOOLS], INPUTS)
