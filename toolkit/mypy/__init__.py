"""A plugin for mypy: one exact line for a mistake, and a cost that hardly grows with the number of tools.

Enable it in ``pyproject.toml``::

    [tool.mypy]
    plugins = ["toolkit.mypy"]

Everything works without it: the overloads say the same to every type checker. Nothing imports this package but mypy.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.mypy.supported import refuse_unsupported_mypy

if TYPE_CHECKING:
    from mypy.plugin import Plugin

# mypy shows an ImportError as one line at the setting that names the plugin; anything raised later is a traceback.
refuse_unsupported_mypy()

# mypy compares this with its cache. By itself it would notice a change to this file only.
__version__ = hashlib.sha256(
    b"".join(file.read_bytes() for file in sorted(Path(__file__).parent.glob("*.py")))
).hexdigest()


def plugin(version: str) -> type[Plugin]:
    """The entry point that mypy calls with its own version."""
    from toolkit.mypy.hooks import ToolkitPlugin

    return ToolkitPlugin
