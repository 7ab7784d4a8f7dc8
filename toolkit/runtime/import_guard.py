"""Keeps what tools write from being imported as ours; called when a toolkit is built."""

from __future__ import annotations

import logging
from typing import Any, Final

from toolkit.guard.imports.finder import guard_imports
from toolkit.runtime.catalog.catalog import Catalog
from toolkit.runtime.context.toolkit_context import ToolkitContext

logger: Final = logging.getLogger("toolkit.imports")


def protect_imports(context: ToolkitContext[Any], catalog: Catalog) -> None:
    """From here on, nothing of ours is imported from a place where the tools of this toolkit may write.

    Warns once if such a place is on ``sys.path``: what a user's own code imports from there is not ours to refuse.
    """
    if context.mode != "workspace-write":
        return
    for root in guard_imports([context.workspace, *context.write_roots], catalog.packages):
        logger.warning(
            "tools may write in %s, which is on sys.path: a module that your own code imports from there later may be "
            "one that a tool wrote. Start the program from another directory, install your package, or use `python -P`",
            root,
        )
