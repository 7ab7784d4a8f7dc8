"""The caches of mypy in tests: one for each process of a run, because two must not write into the same.

To fill one takes mypy many seconds. The first process that needs one fills it, and the others start with a copy of that.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parent.parent
CACHES = REPOSITORY / ".mypy_cache" / "tests"
IMPORTS = "import toolkit.loop\nimport toolkit.mypy\nimport toolkit.packs\nfrom toolkit.generated import AsyncToolkit, Toolkit\n"
PLUGIN = "[mypy]\nplugins = toolkit.mypy\n"


def cache_of_this_process(*, plugin: bool = False) -> Path:
    """The cache of runs with or without our plugin: mypy drops a cache that was written with other plugins."""
    own = CACHES / f"{os.environ.get('PYTEST_XDIST_WORKER', 'main')}{_suffix(plugin)}"
    if not own.is_dir():
        copy_first_cache(own, plugin=plugin)
    return own


def copy_first_cache(target: Path, *, plugin: bool = False) -> None:
    """Make a cache that knows the toolkit and what it depends on, and nothing else."""
    CACHES.mkdir(parents=True, exist_ok=True)
    first = CACHES / f"first{_suffix(plugin)}"
    with (CACHES / f"lock{_suffix(plugin)}").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not first.is_dir():
            _fill(first.with_suffix(".new"), plugin=plugin)
            first.with_suffix(".new").rename(first)
    shutil.copytree(first, target)


def _suffix(plugin: bool) -> str:
    return "-plugin" if plugin else ""


def _fill(cache: Path, *, plugin: bool) -> None:
    shutil.rmtree(cache, ignore_errors=True)
    program, settings = CACHES / "imports.py", CACHES / "plugin.ini"
    program.write_text(IMPORTS)
    settings.write_text(PLUGIN)
    options = ["--strict", f"--config-file={settings if plugin else ''}", f"--cache-dir={cache}"]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), "MYPYPATH": str(REPOSITORY)}
    command = [str(Path(sys.executable).parent / "mypy"), *options, str(program)]
    subprocess.run(command, cwd=CACHES, env=environment, check=True, capture_output=True)
