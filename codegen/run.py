"""The two things to do with a plan: make it so, or say what differs."""

from __future__ import annotations

from pathlib import Path

from toolkit.codegen.package.local_cache import generator_fingerprint, remember, was_made_here
from toolkit.codegen.package.manifest import NAME, read_manifest
from toolkit.codegen.package.plan import Plan, Progress, is_current, make_plan, read_inputs
from toolkit.codegen.package.write import compare, surplus_files, write
from toolkit.codegen.settings import Settings


def generate(settings: Settings, progress: Progress | None = None, *, parallel: bool = False) -> list[str]:
    """Writes the package; gives the paths that changed. Without a change nothing is parsed, imported or written.

    ``parallel`` lets several processes share the work where there is much of it. They import the main module again, so
    that only a program whose main module is made for that may ask for it, as the command line is.
    """
    fingerprint = generator_fingerprint(settings)
    previous = read_manifest(settings.output) if was_made_here(settings, fingerprint) else None
    inputs = read_inputs(settings, previous)
    if inputs.previous is not None and is_current(settings, inputs):
        untouched = dict.fromkeys([*inputs.previous.outputs, NAME], "")
        if not surplus_files(Plan(settings.output, untouched)):
            return []
    changed = write(make_plan(settings, inputs, progress, parallel=parallel))
    remember(settings, fingerprint)
    return changed


def check(settings: Settings, progress: Progress | None = None, *, parallel: bool = False) -> str:
    """What differs between the specs and the committed package, as a readable diff; made from scratch, trusting nothing."""
    inputs = read_inputs(settings)
    return compare(make_plan(settings, inputs, progress, parallel=parallel))


def shown(folder: Path, root: Path) -> str:
    """A folder as people of the project call it."""
    return folder.relative_to(root).as_posix() if folder.is_relative_to(root) else folder.name
