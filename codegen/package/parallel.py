"""Renders the model modules of many tools: in batches, and by several processes if there are many.

The text of a module depends only on its own spec, so the texts are the same for any batches and any number of processes.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Final, Literal

from toolkit.codegen.package.classes.generator import WrittenTexts
from toolkit.codegen.package.models import RenderJob, render_many, tool_types

MIN_MODULES: Final = 100
"""Fewer modules take less time than starting the processes."""
MAX_WORKERS: Final = 8
_BATCH: Final = 16
_SAFE_PATH: Final = "PYTHONSAFEPATH"


def render_all(jobs: Sequence[RenderJob], workers: int, written: WrittenTexts | None = None) -> Iterator[str]:
    """The texts in the order of the jobs, each as soon as it and all before it are ready; ``written`` as in ``render_many``.

    Processes are started only if much is not written yet.
    """
    written = {} if written is None else written
    batches = [jobs[start : start + _BATCH] for start in range(0, len(jobs), _BATCH)]
    if workers < 2 or (known := _find_known(batches, written)) is None:
        for batch in batches:
            yield from _render_batch(batch, written)
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
            rendered = pool.map(_render_elsewhere, batches, known)  # starts the processes
        for texts, added in rendered:
            written.update(added)
            yield from texts


def _find_known(batches: Sequence[Sequence[RenderJob]], written: WrittenTexts) -> list[dict[str, str]] | None:
    """For each batch, what is written already; None if so much is that no processes are worth starting."""
    if not written:
        return [{} for _ in batches]
    keys = [[tool_types(job).digest() for job in batch] for batch in batches]
    known = [{key: written[key] for key in some if key in written} for some in keys]
    return known if sum(map(len, keys)) - sum(map(len, known)) >= MIN_MODULES else None


def _render_elsewhere(jobs: Sequence[RenderJob], known: dict[str, str]) -> tuple[list[str], dict[str, str]]:
    """The texts, and what datamodel-code-generator wrote for them."""
    written = dict(known)
    texts = _render_batch(jobs, written)
    return texts, {key: text for key, text in written.items() if key not in known}


def _render_batch(jobs: Sequence[RenderJob], written: WrittenTexts) -> list[str]:
    """Without looking for cycles in between, and then only among the new objects: it takes 5 to 10 % otherwise."""
    if not gc.isenabled():
        return render_many(jobs, written)
    gc.disable()
    try:
        return render_many(jobs, written)
    finally:
        gc.collect(0)
        gc.enable()


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
