"""How a worker gets its toolkit: factories by name, and the setup of one with the built-in tools."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from toolkit.errors import SetupError, nearest
from toolkit.guard.permission import ALL_PERMISSIONS, Mode, Permission, SandboxChoice
from toolkit.guard.policy.policy import SecurityPolicy
from toolkit.runtime.sync import Runner
from toolkit.runtime.turns import Concurrency

if TYPE_CHECKING:
    import os

BUILTIN_TOOLS: Final = "toolkit.fleet.setup:make_builtin_toolkit"
"""The factory that makes a toolkit with the built-in tools from a ``WorkspaceSetup``."""


@dataclass(frozen=True, slots=True)
class WorkspaceSetup:
    """A toolkit with the built-in tools: data that is sent to a worker, where the toolkit is made from it.

    The paths are paths of the worker's machine. What cannot be sent, such as an approver, needs a factory of your own.

    >>> from toolkit import SecurityPolicy
    >>> WorkspaceSetup("/srv/checkouts/17", SecurityPolicy(tools={"read_file": "allow"})).mode
    'workspace-write'
    """

    workspace: str | os.PathLike[str]
    policy: SecurityPolicy[Any]
    permissions: Collection[Permission] = ALL_PERMISSIONS
    mode: Mode = "workspace-write"
    sandbox: SandboxChoice = "auto"
    concurrency: Concurrency | None = None
    state_dir: str | os.PathLike[str] | None = None
    audit: str | os.PathLike[str] | None = None


def make_builtin_toolkit(setup: object) -> Runner:
    """The toolkit of a ``WorkspaceSetup``."""
    from toolkit.generated import ToolkitContext, create_agent_toolkit
    from toolkit.runtime.context import CallSettings

    if not isinstance(setup, WorkspaceSetup):
        raise SetupError(
            f"the setup of a fleet without a factory of its own is a WorkspaceSetup, not {type(setup).__name__}; "
            'give one, or name a factory: Fleet("module:function", ...)'
        )
    context = ToolkitContext(
        setup.workspace,
        setup.policy,
        permissions=setup.permissions,
        mode=setup.mode,
        sandbox=setup.sandbox,
        calls=None if setup.concurrency is None else CallSettings(concurrency=setup.concurrency),
        state_dir=setup.state_dir,
        audit=setup.audit,
    )
    return create_agent_toolkit(context)


def check_factory(what: str, factory: str) -> None:
    """Refuses what cannot be the name of a factory."""
    module, _, name = factory.partition(":") if isinstance(factory, str) else ("", "", "")
    if not module or not name.isidentifier():
        raise SetupError(
            f"{what} must be named as 'module:function', because workers import it for themselves; not {factory!r}"
        )


def load_factory(what: str, factory: str) -> Callable[[object], Any]:
    """The function of that name."""
    module_name, _, name = factory.partition(":")
    try:
        module = importlib.import_module(module_name)
    except Exception as error:  # whatever the module raises while it is imported
        raise SetupError(
            f"{what} {factory!r} cannot be imported in a worker: {type(error).__name__}: {error}"
        ) from error
    found = getattr(module, name, None)
    if not callable(found):
        hint = nearest(name, vars(module))
        raise SetupError(f"{what} {factory!r} is not a function of {module_name!r}.{hint}")
    made: Callable[[object], Any] = found
    return made
