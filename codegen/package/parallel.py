"""Renders the model modules of many tools: in batches, and by several processes if there are many.

The text of a module depends only on its own spec, so the texts are the same for any batches and any number of processes.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Final, Literal

from toolkit.codegen.package.models import RenderJob, render_many

MIN_MODULES: Final = 100
"""Fewer modules take less time than starting the processes."""
MAX_WORKERS: Final = 8
_BATCH: Final = 16
_SAFE_PATH: Final = "PYTHONSAFEPATH"


def render_all(jobs: Sequence[RenderJob], workers: int) -> Iterator[str]:
    """The texts in the order of the jobs, each as soon as it and all before it are ready."""
    batches = [jobs[start : start + _BATCH] for start in range(0, len(jobs), _BATCH)]
    if workers < 2:
        for batch in batches:
            yield from render_many(batch)
        return
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    method = _start_method()
    if method == "fork":
        # Imported once, before the processes are forked, instead of once in each.
        import datamodel_code_generator.config
        import datamodel_code_generator.parser.jsonschema  # noqa: F401
    with ExitStack() as stack:
        with _without_current_directory():
            pool = stack.enter_context(ProcessPoolExecutor(workers, mp_context=get_context(method)))
            texts = pool.map(render_many, batches)  # starts the processes
        for some in texts:
            yield from some


def _start_method() -> Literal["fork", "spawn"]:
    """Forked processes need not import anything. But a lock that another thread holds stays locked in them for ever."""
    return "fork" if sys.platform == "linux" and threading.active_count() == 1 else "spawn"


@contextmanager
def _without_current_directory() -> Iterator[None]:
    """Python processes started here do not import from the current directory, where a tool may have written a module.

    They get this process's own ``sys.path`` once they run.
    """
    before = os.environ.get(_SAFE_PATH)
    os.environ[_SAFE_PATH] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_SAFE_PATH]
        else:
            os.environ[_SAFE_PATH] = before


def workers_for(modules: int) -> int:
    """How many processes are worth starting for this number of modules on this machine."""
    return min(MAX_WORKERS, os.cpu_count() or 1) if modules >= MIN_MODULES else 1
