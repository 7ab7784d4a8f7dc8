"""Renders the model modules of many tools in several processes.

Each module depends only on its own spec, so the texts are the same for any number of processes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Final

from toolkit.codegen.package.models import render_models
from toolkit.codegen.schema.document import Document
from toolkit.errors import GenerationError

MIN_MODULES: Final = 300
"""Fewer modules take less time than starting the processes."""
MAX_WORKERS: Final = 8
_CHUNK: Final = 16
_SAFE_PATH: Final = "PYTHONSAFEPATH"


@dataclass(frozen=True, slots=True)
class RenderJob:
    """One model module to render."""

    source: str
    prefix: str
    description: str
    inputs: Document
    outputs: Document | None


def render_all(jobs: Sequence[RenderJob], workers: int) -> Iterator[str]:
    """The texts in the order of the jobs, each as soon as it and all before it are ready."""
    if workers < 2:
        yield from map(_render, jobs)
        return
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    # Spawned, not forked: the caller may have threads.
    with ExitStack() as stack:
        with _without_current_directory():
            pool = stack.enter_context(ProcessPoolExecutor(workers, mp_context=get_context("spawn")))
            texts = pool.map(_render, jobs, chunksize=_CHUNK)  # starts the processes
        yield from texts


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


def _render(job: RenderJob) -> str:
    try:
        return render_models(job.source, job.prefix, job.description, job.inputs, job.outputs)
    except RecursionError:
        raise GenerationError(f"the types of {job.prefix!r} are nested too deeply for Python @ {job.source}") from None
