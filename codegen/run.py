"""``generate`` and ``check``: write the planned package, or compare it with the disk."""

from __future__ import annotations

from toolkit.codegen.package.local_cache import generator_fingerprint, read_previous_run, record_run
from toolkit.codegen.package.plan import PackagePlan, Progress, is_current, make_plan, read_inputs
from toolkit.codegen.package.write import compare, surplus_files, write
from toolkit.codegen.settings import Settings


def generate(settings: Settings, progress: Progress | None = None, *, parallel: bool = False) -> list[str]:
    """Writes the package and returns the paths that changed. If no input changed, nothing is parsed, imported or written.

    With ``parallel``, several processes share the work if there is much of it. They import the main module again, so use it
    only in a program whose main module allows that, as the command line does.
    """
    fingerprint = generator_fingerprint(settings)
    inputs = read_inputs(settings, read_previous_run(settings, fingerprint))
    if inputs.previous is not None and is_current(settings, inputs):
        untouched = dict.fromkeys(inputs.previous.outputs, "")
        if not surplus_files(PackagePlan(settings.output, untouched)):
            return []
    plan = make_plan(settings, inputs, progress, parallel=parallel)
    changed = write(plan)
    record_run(settings, fingerprint, plan.inputs, plan.files)
    return changed


def check(settings: Settings, progress: Progress | None = None, *, parallel: bool = False) -> str:
    """The difference between the specs and the committed package as a readable diff. Everything is generated from scratch."""
    inputs = read_inputs(settings)
    return compare(make_plan(settings, inputs, progress, parallel=parallel))
