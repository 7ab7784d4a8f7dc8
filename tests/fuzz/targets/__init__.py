"""Doors that read text written by models, servers and people. A target takes any bytes and checks what must hold for all.

A target raises only if a property is broken. Errors of ours (``ToolkitError``, ``SetupError``) are answers, except
``INTERNAL``: that one says that something unforeseen was raised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Final

Target = Callable[[bytes], None]

_PLACES: Final = {
    "arguments": "arguments:check_arguments",
    "edits": "workspace_tools:check_edit",
    "html": "pages:check_page",
    "patches": "workspace_tools:check_patch",
    "shell": "shell_text:check_shell_text",
    "specs": "specs:check_spec",
    "streams": "streams:check_stream",
}
TARGETS: Final = tuple(_PLACES)
MAX_INPUT: Final = 4096
"""Longer inputs find little more and take longer; what size costs is measured by ``make bench``."""
CORPUS: Final = Path(__file__).parents[1] / "corpus"


def kept_inputs(target: str) -> Iterator[Path]:
    """The inputs of ours for a target: small ones that reach far, and every one that once broke a property."""
    return iter(sorted((CORPUS / target).iterdir()))


def load_target(name: str) -> Target:
    """One target, without what the others import: instrumented for a fuzzer, imports are slow."""
    module, _, function = _PLACES[name].partition(":")
    found: Target = getattr(import_module(f"tests.fuzz.targets.{module}"), function)
    return found
