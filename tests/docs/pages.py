"""Runs a page: writes its files, runs its commands and its program, and says which files a type checker is to read."""

from __future__ import annotations

import re
import socket
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final

import yaml

from tests.docs.blocks import DATA, RUN, Block, read_blocks
from tests.docs.environment import Environment
from tests.projects import REPOSITORY
from toolkit import SecurityPolicy
from toolkit.codegen.settings import read_settings

PAGES: Final = {
    path.relative_to(REPOSITORY).as_posix(): path
    for path in (REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md")))
}

PORT: Final = "8765"
"""The port of services in examples."""


@dataclass
class PageRun:
    """One page in a folder of its own. ``problems`` are what went wrong, each with the line of the page."""

    name: str
    environment: Environment
    folder: Path
    blocks: list[Block]
    problems: list[str] = field(default_factory=list)
    place: Path = field(init=False)
    checked: dict[str, None] = field(default_factory=dict)
    """The files for type checkers, relative to the folder."""

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True)
        self.place = self.folder

    @cached_property
    def free_port(self) -> str:
        """Used where a page writes ``PORT``, so that runs at the same time do not meet."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            return str(server.getsockname()[1])

    @property
    def program(self) -> str:
        """The file of the page's program. Unique, so that a checker can read the programs of many pages at once."""
        return re.sub(r"\W", "_", self.name.removesuffix(".md").lower()) + "_page.py"

    def run(self) -> PageRun:
        """The program runs where its last part stands: commands below it find what it made."""
        parts = [block for block in self.blocks if block.language == "python" and not block.file]
        parts = [block for block in parts if block.exemption != "not used"]
        for block in self.blocks:
            if block.exemption == "not used":
                continue
            if block.language in RUN:
                if block.exemption != "not run":
                    self._run_commands(block)
            elif block.file:
                self._write(block)
            elif block.language in DATA:
                self._check_data(block)
            elif parts and block is parts[-1]:
                self._run_program(parts)
        return self

    def _report(self, block: Block, problem: str) -> None:
        self.problems.append(f"{self.name}:{block.line}: {problem}")

    def _write(self, block: Block) -> None:
        file = self.folder / block.file
        file.parent.mkdir(parents=True, exist_ok=True)
        before = file.read_text() + "\n" if block.continued else ""
        file.write_text(before + block.text.replace(PORT, self.free_port))
        if block.language == "python":
            self.checked.pop(block.file, None)
            if block.exemption != "not checked":
                self.checked[block.file] = None

    def _run_commands(self, block: Block) -> None:
        for command, shown in read_commands(block):
            done, printed = self._run_command(command if shown is not None else f"set -e\n{command}")
            if shown is None and done:
                self._report(block, f"`{command}` ended with {done}:\n{printed}")
            if shown is not None and not is_like(shown, printed):
                self._report(block, f"`{command}` printed:\n{printed}\nThe page shows:\n{shown}")

    def _run_command(self, command: str) -> tuple[int, str]:
        """Runs a command where the one before it ended: ``cd`` holds for the rest of the page."""
        note = self.folder.parent / f"{self.folder.name}.place"
        script = f"trap 'pwd > \"{note}\"' EXIT\n{command}"
        plugin = any("toolkit.mypy" in block.text for block in self.blocks if block.file == "pyproject.toml")
        done = self.environment.run(["bash", "-c", script], self.place, plugin=plugin)
        self.place = Path(note.read_text().strip()) if note.exists() else self.place
        return done.returncode, done.stdout

    def _check_data(self, block: Block) -> None:
        """Data without a file name is read by what would read it: settings, a policy, a spec, or only the parser."""
        try:
            if block.language == "toml":
                check_toml(block.text, self.folder)
            else:
                list(yaml.parse(block.text))
        except Exception as error:
            self._report(block, f"{type(error).__name__}: {error}")

    def _run_program(self, parts: list[Block]) -> None:
        """The parts of the program stand at the lines of the page, so that every error names the right line."""
        checked = [block for block in parts if block.exemption != "not checked"]
        run = [block for block in parts if block.exemption != "not run"]
        if run:
            (self.folder / self.program).write_text(join_at_lines(run))
            # Without files of its own, a program imports nothing from the folder, which tools may change.
            safe = [] if any(block.file.endswith(".py") for block in self.blocks) else ["-P"]
            done = self.environment.run([str(self.environment.python), *safe, self.program], self.folder)
            shown = re.findall(r"^ *# prints: (.*)$", "\n".join(block.text for block in run), re.MULTILINE)
            if done.returncode or done.stdout.split() != "\n".join(shown).split():
                said = "\n".join(shown)
                self._report(run[0], f"the program ended with {done.returncode}:\n{done.stdout}\nIt shows:\n{said}")
        if checked:
            (self.folder / self.program).write_text(join_at_lines(checked))
            self.checked[self.program] = None


def open_page(name: str, environment: Environment, root: Path) -> PageRun:
    folder = root / re.sub(r"\W", "_", name.removesuffix(".md").lower())
    return PageRun(name, environment, folder, read_blocks(PAGES[name]))


def join_at_lines(blocks: list[Block]) -> str:
    lines: list[str] = []
    for block in blocks:
        lines += [""] * (block.line - 1 - len(lines)) + block.text.splitlines()
    return "\n".join(lines) + "\n"


def read_commands(block: Block) -> Iterator[tuple[str, str | None]]:
    """Each command of a block, and what is shown of its output; None if nothing is to be compared."""
    if block.language == "sh":
        yield block.text, None
        return
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        while command.endswith("\\"):
            line, _, shown = shown.partition("\n")
            command = f"{command}\n{line.removeprefix('> ')}"
        yield command, shown


def is_like(shown: str, printed: str) -> bool:
    """Whether the output is as shown: ``...`` is any text, and space at the ends of lines does not count."""
    wanted = r"[\s\S]*".join(map(re.escape, _strip_lines(shown).split("...")))
    return re.fullmatch(wanted, _strip_lines(printed)) is not None


def _strip_lines(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def check_toml(text: str, folder: Path) -> None:
    """Settings are read as ``toolkit`` reads them, and policies are loaded."""
    data = tomllib.loads(text)
    settings = data.get("tool", {}).get("toolkit")
    if settings is not None:
        read_settings(folder, {"specs": "acme/tools", "package": "acme.generated", **settings})
    elif data.keys() <= {"default", "tools", "rules"}:
        file = folder.parent / "policy.toml"
        file.write_text(text)
        SecurityPolicy.load(file)
