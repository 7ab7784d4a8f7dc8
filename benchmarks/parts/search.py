"""``grep`` and ``glob`` over a tree of files, compared with ripgrep, ``re`` on bytes and a bare walk; late lines of a file.

The tree has code-like files of about 8 KB, about ten per directory; one in forty is ignored.
"""

from __future__ import annotations

import glob
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.results import Table, compared
from benchmarks.timing import least_cpu_with_children
from toolkit import SecurityPolicy, ToolkitContext, create_agent_toolkit
from toolkit.builtin.files.whole_file import LinePositionStore
from toolkit.generated import Toolkit

FILES: Final = 20_000
RIPGREP: Final = shutil.which("rg", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
BASE: Final = "rg"
GREP: Final = "toolkit.tools.grep"
WALK: Final = "os.scandir with a stack"
WALK_TIMES: Final = f"{WALK}, and times of what matches"
NEWEST: Final = "rg --files, the newest of what matches first"
PATHLIB: Final = "pathlib, sorted by time"
STANDARD_GLOB: Final = "glob.glob, sorted by time"
GLOB: Final = "glob"
COUNTED: Final = "counting line feeds in chunks of 256 KiB"
LINES: Final = 1_000_000
PATTERNS: Final = {
    "a text": "BufferError",
    "a literal first": r"class \w+Error\b",
    "a literal inside": r"\w+_error\b",
    "no literal": r"[A-Z]\w+\(",
}
IGNORED: Final = "*.py[cod]\n__pycache__/\nbuild/\n/dist/\n*.egg-info/\n.coverage\n*.log\n!keep.log\n.venv/\n"
SOME_WORDS: Final = (
    "self return value result config index handler request response total buffer encode decode parser token node "
    "left right cache stream reader writer options default import from raise assert lambda yield async"
)
WORDS: Final = SOME_WORDS.split()


def make_tree(root: Path, files: int, seed: int = 1) -> None:
    """Files with a few needles: an error class in one of fifty, a name that ends in ``_error`` in one of ten."""
    chance = random.Random(seed)
    lines = [
        "    " * chance.randrange(4) + " ".join(chance.choices(WORDS, k=chance.randrange(1, 10))) for _ in range(4000)
    ]
    folders = [root]
    (root / ".gitignore").write_text(IGNORED)
    for number in range(files):
        if number % 10 == 0:
            above = chance.choice(folders[-300:])
            folder = above / f"{chance.choice(WORDS)}{number}"
            folder.mkdir()
            folders.append(folder)
        text = chance.choices(lines, k=chance.randrange(20, 460))
        if number % 50 == 0:
            text.insert(chance.randrange(len(text)), f"class {chance.choice(WORDS).title()}Error(Exception):")
        if number % 10 == 0:
            text.insert(chance.randrange(len(text)), f"    raise_{chance.choice(WORDS)}_error = None")
        suffix = ".log" if number % 40 == 0 else chance.choice((".py", ".py", ".py", ".pyi", ".md", ".txt", ".json"))
        (folder / f"{chance.choice(WORDS)}_{number}{suffix}").write_text("\n".join(text) + "\n")


def walk(root: str) -> Iterator[str]:
    stack = [root]
    while stack:
        with os.scandir(stack.pop()) as scan:
            for entry in scan:
                if entry.is_dir(follow_symlinks=False):
                    stack.append(entry.path)
                else:
                    yield entry.path


def re_on_bytes(root: str, pattern: str) -> int:
    """A hand-written search: no limits, no ignored files, no sandbox; counts matching lines."""
    found, search = 0, re.compile(pattern.encode())
    for path in walk(root):
        with open(path, "rb") as file:
            data = file.read()
        end = -1
        for match in search.finditer(data):
            if match.start() > end:
                found += 1
                end = data.find(b"\n", match.start())
    return found


def measure(*, full: bool) -> Iterator[Table]:
    files, rounds = (FILES, 3) if full else (200, 0)
    with tempfile.TemporaryDirectory() as folder:
        make_tree(Path(folder), files)
        context = ToolkitContext(folder, SecurityPolicy(default="allow"))
        with create_agent_toolkit(context) as toolkit:
            for name, pattern in PATTERNS.items() if RIPGREP else ():
                best = least_cpu_with_children(_searches(toolkit, folder, pattern), rounds=rounds)
                rows = compared(best, BASE, "ms", others=set(best) - {GREP})
                yield Table(f"grep, {name}", f"grep {files:,} files, {name}: `{pattern}`", rows)
            best = least_cpu_with_children(_listings(toolkit, folder), rounds=rounds)
            rows = compared(best, WALK, "ms", others={WALK_TIMES, "rg --files", NEWEST, PATHLIB, STANDARD_GLOB})
            notes = () if RIPGREP else ("ripgrep is not installed, so grep is not measured",)
            yield Table("glob", f"Finding files among {files:,}", rows, notes=notes)
    yield _late_lines(LINES if full else LINES // 100, rounds)


def _late_lines(lines: int, rounds: int) -> Table:
    """200 lines after nine tenths of a large file, by a toolkit that never read it and by one that did."""
    start = lines * 9 // 10
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "lines.txt")
        with file.open("w") as written:
            written.writelines(f"{number:07}{'x' * 64}\n" for number in range(lines))

        def open_toolkit(clock: Callable[[], int]) -> Toolkit:
            overrides = {"line_positions": lambda: LinePositionStore(clock)}
            return create_agent_toolkit(ToolkitContext(folder, SecurityPolicy(default="allow"), overrides=overrides))

        # To the first, every file has just changed; to the second, none has changed for an hour.
        with open_toolkit(lambda: 0) as first, open_toolkit(lambda: time.time_ns() + 3600 * 10**9) as again:
            contenders: dict[str, Callable[[], object]] = {
                COUNTED: partial(count_line_feeds, file, start),
                "read_file, the first time": partial(_read_lines, first, start),
                "read_file, again": partial(_read_lines, again, start),
                "read_file, the last lines": partial(_read_lines, first, lines - 100),
            }
            best = least_cpu_with_children(contenders, rounds=rounds)
    rows = compared(best, COUNTED, "ms", others={COUNTED})
    notes = ("the hash of the whole file is promised where its last line is read",)
    return Table("late lines", f"200 lines from line {start:,} of {lines:,}", rows, notes=notes)


def count_line_feeds(file: Path, wanted: int) -> int:
    """Where this many lines end; a chunk is read at a time."""
    with file.open("rb", buffering=0) as opened:
        while wanted > 0 and (chunk := opened.read(256 * 1024)):
            wanted -= chunk.count(b"\n")
        return opened.tell()


def _read_lines(toolkit: Toolkit, start: int) -> object:
    return toolkit.tools.read_file(path="lines.txt", start_line=start, max_lines=200)


def _ripgrep(folder: str, *arguments: str) -> bytes:
    command = [RIPGREP or "rg", "--no-config", "--no-require-git", *arguments, "."]
    return subprocess.run(command, cwd=folder, capture_output=True, check=False).stdout


def _searches(toolkit: Toolkit, folder: str, pattern: str) -> dict[str, Callable[[], object]]:
    return {
        BASE: partial(_ripgrep, folder, "-n", "-e", pattern),
        "rg, one thread": partial(_ripgrep, folder, "-j1", "-n", "-e", pattern),
        "re on the bytes of each file": partial(re_on_bytes, folder, pattern),
        GREP: partial(toolkit.tools.grep, pattern=pattern, limit=1000),
    }


def _listings(toolkit: Toolkit, folder: str) -> dict[str, Callable[[], object]]:
    return {
        WALK: lambda: len(list(walk(folder))),
        WALK_TIMES: lambda: sorted(os.lstat(path).st_mtime_ns for path in walk(folder) if path.endswith(".pyi")),
        **(_ripgrep_listings(folder) if RIPGREP else {}),
        PATHLIB: lambda: sorted(Path(folder).glob("**/*.pyi"), key=lambda path: path.stat().st_mtime_ns),
        STANDARD_GLOB: lambda: sorted(glob.glob(f"{folder}/**/*.pyi", recursive=True), key=os.path.getmtime),
        "glob, nothing ignored": lambda: toolkit.tools.glob(pattern="**/*.pyi", respect_gitignore=False),
        GLOB: lambda: toolkit.tools.glob(pattern="**/*.pyi"),
        "glob, all files and their times": lambda: toolkit.tools.glob(pattern="**", limit=500),
        "tree, 2000 entries": lambda: toolkit.tools.tree(max_depth=12, max_entries=2000),
    }


def _ripgrep_listings(folder: str) -> dict[str, Callable[[], object]]:
    return {
        "rg --files": lambda: _ripgrep(folder, "--files"),
        NEWEST: lambda: _ripgrep(folder, "--files", "-g", "*.pyi", "--sortr", "modified"),
    }
