"""Which calls may be repeated if the worker that ran them has died."""

from __future__ import annotations

from typing import Final

from toolkit.runtime.call.view import core_of
from toolkit.runtime.sync import Runner

_OWN_ORIGINS: Final = ("functions", "models")
"""Imports from code of the project itself."""


def is_repeatable(toolkit: Runner, name: str) -> bool:
    """Whether running a call of this tool twice is the same as running it once, as the project declares in its spec.

    That is so if its permissions are ``read`` alone, or if it declares ``idempotentHint: true``, or ``readOnlyHint: true``
    without any permission. A tool that declares ``readOnlyHint: false`` needs the ``idempotentHint``, and one that declares
    nothing is not repeated. What was imported from a server or a document declares what others wrote: there only the
    permissions count, which the project has chosen.

    >>> from toolkit import SecurityPolicy, ToolkitContext, create_agent_toolkit
    >>> with create_agent_toolkit(ToolkitContext(".", SecurityPolicy())) as toolkit:
    ...     [is_repeatable(toolkit, name) for name in ("read_file", "write_file", "apply_patch", "bash", "no_such_tool")]
    [True, True, False, False, False]
    """
    catalog = core_of(toolkit).catalog
    info = catalog.tools.get(name)
    if info is None:
        return False
    annotations, origin = catalog.annotations(name), catalog.definitions[name].get("origin")
    is_own = origin is None or origin.get("kind") in _OWN_ORIGINS
    permissions, read_only = {*info.required, *info.optional}, annotations.get("readOnlyHint")
    if permissions == {"read"} and read_only is not False:
        return True
    return is_own and (annotations.get("idempotentHint") is True or not permissions and read_only is True)
