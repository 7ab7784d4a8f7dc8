"""Batches of tool calls, or of whole agent runs, over a Ray cluster: each with its own workspace and policy.

Needs the extra ``ray``. Ray is imported when a ``Fleet`` is made, and only in the process that makes it.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.fleet.fleet import Fleet as Fleet
    from toolkit.fleet.messages import CallEnded as CallEnded
    from toolkit.fleet.messages import FleetCall as FleetCall
    from toolkit.fleet.messages import FleetRun as FleetRun
    from toolkit.fleet.messages import OnItemProgress as OnItemProgress
    from toolkit.fleet.messages import RunFinished as RunFinished
    from toolkit.fleet.setup import WorkspaceSetup as WorkspaceSetup
else:
    from toolkit.lazy_exports import lazy_exports

    __getattr__, __dir__ = lazy_exports()
