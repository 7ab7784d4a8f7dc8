"""``generate`` and ``check``: write the planned package, or compare it with the disk.

Planning is imported only when there is something to plan.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.codegen.package.inputs import (
    generator_fingerprint,
    generator_version,
    is_current,
    read_inputs,
    read_previous_run,
    record_run,
)
from toolkit.codegen.settings import Settings
from toolkit.errors import GenerationError
from toolkit.schema.places import located_errors, show_path

if TYPE_CHECKING:
    from toolkit.codegen.package.plan import Progress


@contextmanager
def _system_errors() -> Iterator[None]:
    """A system error, such as a full disk or too many open files, ends the run with one sentence, wherever it happens."""
    try:
        yield
    except OSError as error:
        where = f"{show_path(Path(os.fsdecode(error.filename)))}: " if isinstance(error.filename, str | bytes) else ""
        why = (error.strerror or str(error)).lower()
        raise GenerationError(f"{where}the package could not be generated: {why}; run it again") from error


@_system_errors()
def generate(settings: Settings, progress: Progress | None = None) -> list[str]:
    """Writes the package and returns the paths that changed. If no input changed, nothing is parsed, imported or written."""
    fingerprint = generator_fingerprint(settings)
    with located_errors(settings.root):
        inputs = read_inputs(settings, read_previous_run(settings, fingerprint))
    if is_current(settings, inputs):
        return []
    from toolkit.codegen.package.classes import keep_texts, read_kept_texts
    from toolkit.codegen.package.plan import make_plan
    from toolkit.codegen.package.write import write

    with located_errors(settings.root):
        written = read_kept_texts(settings)
        known = len(written)
        plan = make_plan(settings, inputs, progress, written=written)
    changed = write(plan)
    if len(written) > known:
        keep_texts(settings, written, len(plan.kept) + len(plan.files))
    record_run(settings, fingerprint, plan.inputs, plan.digests())
    return changed


def check(settings: Settings, progress: Progress | None = None) -> str:
    """How the committed package differs from its specs, as a readable diff. Everything is generated from scratch."""
    generator_version()  # says how to install the generator, if it is missing
    from toolkit.codegen.package.plan import make_plan
    from toolkit.codegen.package.write import compare

    with located_errors(settings.root):
        plan = make_plan(settings, read_inputs(settings), progress)
    return compare(plan)
