"""The output of a tool whose function returns types of its own: an alias for them, not a copy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from toolkit.codegen.package.render.literal import literal

OWN_OUTPUT_IMPORTS: Final = ("TYPE_CHECKING", "TypeAlias", "own_type")


def render_own_output(name: str, own_output: Mapping[str, Any]) -> str:
    """The alias ``name``: for checkers as it is, at run time made when it is first used.

    The modules are imported as a whole, so that no class can clash with a name of this module.
    """
    modules: list[str] = own_output["modules"]
    source: str = own_output["type"]
    imports = "".join(f"    import {module}\n" for module in modules)
    packages = ", ".join(dict.fromkeys(module.partition(".")[0] for module in modules))
    return f"""

if TYPE_CHECKING:
{imports}
    {name}: TypeAlias = {source}
else:
    __getattr__ = own_type(__name__, {literal(name)}, {literal(tuple(modules))}, lambda {packages}: {source})
"""
