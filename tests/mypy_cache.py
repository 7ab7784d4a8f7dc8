"""The caches of mypy in tests: one for each process of a run, because two must not write into the same.

To fill one takes mypy many seconds, and so does following a change of the toolkit. The first process that needs a cache
does either, and the others start with a copy of its cache.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

REPOSITORY = Path(__file__).parent.parent
CACHES = REPOSITORY / ".mypy_cache" / "tests"
CACHE_OF_TYPECHECK = REPOSITORY / ".mypy_cache" / "3.11"
"""Written with our plugin for Python 3.11, as ``pyproject.toml`` says."""
IMPORTS = """\
import toolkit.adapters.anthropic
import toolkit.adapters.openai_chat
import toolkit.loop
import toolkit.mypy
import toolkit.packs
from toolkit.generated import AsyncToolkit, Toolkit
"""
PLUGIN = "[mypy]\nplugins = toolkit.mypy\n"
READ = "read.txt"
"""In a cache: which source of the toolkit it knows."""


def cache_of_this_process(*, plugin: bool = False) -> Path:
    """The cache of runs with or without our plugin: mypy drops a cache that was written with other plugins."""
    own = CACHES / f"{os.environ.get('PYTEST_XDIST_WORKER', 'main')}{_suffix(plugin)}"
    if not is_up_to_date(own):
        copy_first_cache(own, plugin=plugin)
    return own


def is_up_to_date(folder: Path) -> bool:
    """Whether a copy of the first cache is there that knows the toolkit as it is."""
    read = folder / READ
    return read.is_file() and read.read_text() == _source_of_toolkit()


def copy_first_cache(target: Path, *, plugin: bool = False) -> None:
    """Make a cache that knows the toolkit and what it depends on, and nothing else."""
    CACHES.mkdir(parents=True, exist_ok=True)
    first = CACHES / f"first{_suffix(plugin)}"
    with (CACHES / f"lock{_suffix(plugin)}").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not is_up_to_date(first):
            _fill(first, plugin=plugin)
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(first, target)


@cache
def _source_of_toolkit() -> str:
    digest = hashlib.sha256(IMPORTS.encode())
    for file in sorted((REPOSITORY / "toolkit").rglob("*.py*")):
        if "__pycache__" not in file.parts:
            digest.update(f"{file.relative_to(REPOSITORY)}\0".encode() + hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def _suffix(plugin: bool) -> str:
    return "-plugin" if plugin else ""


def _fill(first: Path, *, plugin: bool) -> None:
    """Begins with what is there, of which mypy reads again only what changed: with the plugin, what ``make typecheck`` left."""
    new = first.with_suffix(".new")
    shutil.rmtree(new, ignore_errors=True)
    if first.is_dir():
        first.rename(new)
    elif plugin and CACHE_OF_TYPECHECK.is_dir():
        shutil.copytree(CACHE_OF_TYPECHECK, new / CACHE_OF_TYPECHECK.name)
    program, settings = CACHES / "imports.py", CACHES / "plugin.ini"
    program.write_text(IMPORTS)
    settings.write_text(PLUGIN)
    options = ["--strict", f"--config-file={settings if plugin else ''}", f"--cache-dir={new}"]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "MYPYPATH": str(REPOSITORY)}
    command = [str(Path(sys.executable).parent / "mypy"), *options, str(program)]
    subprocess.run(command, cwd=CACHES, env=environment, check=True, capture_output=True)
    (new / READ).write_text(_source_of_toolkit())
    new.rename(first)
