"""The model modules of many tools, rendered by several processes at once.

Each module is made from its own spec alone, so that the texts are the same however many processes share the work.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from toolkit.codegen.package.models import render_models
from toolkit.codegen.schema.document import Document
from toolkit.errors import GenerationError

WORTHWHILE: Final = 300
"""With fewer modules the processes would take longer to start than they save."""
MOST: Final = 8
_AT_ONCE: Final = 16


@dataclass(frozen=True, slots=True)
class Job:
    """One module to render."""

    source: str
    prefix: str
    description: str
    inputs: Document
    outputs: Document | None


def render_all(jobs: Sequence[Job], workers: int) -> Iterator[str]:
    """The texts, in the order of the jobs, each as soon as it and those before it are made."""
    if workers < 2:
        yield from map(_render, jobs)
        return
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    # Started afresh, not forked: whoever calls may have threads.
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield from pool.map(_render, jobs, chunksize=_AT_ONCE)


def workers_for(modules: int) -> int:
    """How many processes pay for so many modules on this machine."""
    return min(MOST, os.cpu_count() or 1) if modules >= WORTHWHILE else 1


def _render(job: Job) -> str:
    try:
        return render_models(job.source, job.prefix, job.description, job.inputs, job.outputs)
    except RecursionError:
        raise GenerationError(f"the types of {job.prefix!r} nest deeper than Python reads @ {job.source}") from None
