"""Finding the built-ins' generated package, and saying what is wrong when something else has its name."""

from __future__ import annotations

import importlib
import os
from types import ModuleType

from toolkit.errors import GenerationError


def import_generated() -> ModuleType:
    """The package ``generated``, if it is ours."""
    try:
        module = importlib.import_module("generated")
    except ModuleNotFoundError as error:
        if error.name != "generated":
            raise
        raise GenerationError(
            "the built-ins' generated package is missing; reinstall typed-toolkit, or run `make generate` in its source tree"
        ) from None
    # A folder without __init__.py has no file and shadows just as well.
    folder = os.path.dirname(module.__file__) if module.__file__ else next(iter(module.__path__), "?")
    if not os.path.isfile(os.path.join(folder, "manifest.json")):
        raise GenerationError(
            f"the folder {folder} shadows the package 'generated' that typed-toolkit needs; rename it"
            " (for your own tools set `package` in [tool.toolkit], for example to 'acme.generated')"
        )
    return module
