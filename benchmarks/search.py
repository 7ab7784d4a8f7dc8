"""``grep`` and ``glob`` over a tree of files, compared with ripgrep, ``re`` on bytes and a bare walk.

The tree has code-like files of about 8 KB, about ten per directory; one in forty is ignored.
"""

from __future__ import annotations

import os
import random
import re
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from benchmarks.measure import table
from toolkit import SecurityPolicy, ToolkitContext, create_agent_toolkit

FILES = 20_000
RIPGREP = str(Path(sys.executable).with_name("rg"))
WALK = "os.scandir with a stack"
WALK_TIMES = f"{WALK}, and times of what matches"
IGNORED = "*.py[cod]\n__pycache__/\nbuild/\n/dist/\n*.egg-info/\n.coverage\n*.log\n!keep.log\n.venv/\n"
WORDS = [
    "self",
    "return",
    "value",
    "result",
    "config",
    "index",
    "handler",
    "request",
    "response",
    "total",
    "buffer",
    "encode",
    "decode",
    "parser",
    "token",
    "node",
    "left",
    "right",
    "cache",
    "stream",
    "reader",
    "writer",
    "options",
    "default",
    "import",
    "from",
    "raise",
    "assert",
    "lambda",
    "yield",
    "async",
]


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


def cpu_ms() -> float:
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return 1000 * (own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime)


def least(contenders: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(rounds + 1):
        for name, contender in contenders.items():
            before = cpu_ms()
            contender()
            best[name] = min(best[name], cpu_ms() - before)
    return best


def report(files: int = FILES, rounds: int = 3) -> str:
    with tempfile.TemporaryDirectory() as folder:
        make_tree(Path(folder), files)
        context = ToolkitContext(folder, SecurityPolicy(default="allow"))
        with create_agent_toolkit(context) as toolkit:

            def ripgrep(*arguments: str) -> object:
                flags = ["--no-config", "--no-require-git", *arguments, "."]
                return subprocess.run([RIPGREP, *flags], cwd=folder, capture_output=True, check=False).stdout

            parts: list[str] = []
            for title, pattern in (
                ("a text", "BufferError"),
                ("an expression that starts with a literal", r"class \w+Error\b"),
                ("an expression with a literal inside", r"\w+_error\b"),
                ("an expression without a literal", r"[A-Z]\w+\("),
            ):
                contenders: dict[str, Callable[[], object]] = {
                    "rg": partial(ripgrep, "-n", "-e", pattern),
                    "rg, one thread": partial(ripgrep, "-j1", "-n", "-e", pattern),
                    "re on the bytes of each file": partial(re_on_bytes, folder, pattern),
                    "toolkit.tools.grep": partial(toolkit.tools.grep, pattern=pattern, limit=1000),
                }
                parts.append(table(f"grep {files} files, {title}: {pattern}", least(contenders, rounds), "rg", "ms"))
            contenders = {
                WALK: lambda: len(list(walk(folder))),
                WALK_TIMES: lambda: sorted(
                    os.lstat(path).st_mtime_ns for path in walk(folder) if path.endswith(".pyi")
                ),
                "rg --files": lambda: ripgrep("--files"),
                "glob, nothing ignored": lambda: toolkit.tools.glob(pattern="**/*.pyi", respect_gitignore=False),
                "glob": lambda: toolkit.tools.glob(pattern="**/*.pyi"),
                "glob, all files and their times": lambda: toolkit.tools.glob(pattern="**", limit=500),
                "tree, 2000 entries": lambda: toolkit.tools.tree(max_depth=12, max_entries=2000),
            }
            parts.append(table(f"Finding files among {files}", least(contenders, rounds), WALK, "ms"))
    return "\n\n".join(parts)
