"""Finding the built-ins' generated package, and saying what is wrong when something else has its name."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
from functools import cache
from importlib.machinery import ModuleSpec
from types import ModuleType

from toolkit.errors import GenerationError


def import_generated() -> ModuleType:
    """The package ``generated``, if it is ours; what else has that name is not even run."""
    _refuse_a_stranger()
    return importlib.import_module("generated")


@cache
def _refuse_a_stranger() -> None:
    try:
        spec = importlib.util.find_spec("generated")
    except ValueError:
        place = getattr(sys.modules["generated"], "__file__", None) or "sys.modules['generated']"
        raise _shadowed(f"the module {place}") from None
    if spec is None:
        raise GenerationError(
            "the built-ins' generated package is missing; reinstall typed-toolkit, or run `make generate` in its source tree"
        )
    if spec.submodule_search_locations is None:
        raise _shadowed(f"the file {spec.origin}")
    # A folder without __init__.py has no origin and shadows just as well.
    folder = next(iter(spec.submodule_search_locations), "?")
    if not _is_ours(spec, folder):
        raise _shadowed(f"the folder {folder}")


def _is_ours(spec: ModuleSpec, folder: str) -> bool:
    """Whether the package was made from the built-ins' specs, as its manifest tells: its name alone says nothing."""
    try:
        read = getattr(spec.loader, "get_data")  # noqa: B009  (an optional part of loaders, unknown to ModuleSpec)
        manifest = json.loads(read(os.path.join(folder, "manifest.json")))
        made_from = {tool["name"]: tool["source"] for tool in manifest["tools"]}
        named = (manifest["generator"], manifest["package"]) == ("typed-toolkit", "generated")
        return named and str(made_from["read_file"]).startswith("toolkit/builtin/")
    except (AttributeError, OSError, ValueError, KeyError, TypeError):
        return False


def _shadowed(what: str) -> GenerationError:
    return GenerationError(
        f"{what} shadows the package 'generated' that typed-toolkit needs; rename it"
        " (for your own tools set `package` in [tool.toolkit], for example to 'acme.generated')"
    )
