"""Which process runs which tests under pytest-xdist: a file stays together, and what takes longest comes first.

So a file's fixtures are made once and not once in each process. Tests of one ``xdist_group`` stay together whatever their file.
xdist's own ``loadgroup`` hands out single tests, and searches all it has handed out after each of them: a minute of CPU here.
"""

from __future__ import annotations

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

LONGEST = (
    "pages",
    "scale",
    "typing",
    "wheel",
    "ray",
    "browser",
    "serve-conformance",
    "tests/packs/test_mcp_endings.py",
    "tests/guard/process/",
    "tests/programs/test_run.py",
    "tests/programs/hostile/",
    "tests/cli/",
    "tests/serve/",
    "tests/codegen/",
    "tests/typing/",
    "tests/guard/review/",
)
"""Files, folders and groups that begin first: half a minute of tests that begins last keeps one process busy alone."""


class FilesTogether(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """A work unit is a file, or a group of tests that asked for one process."""

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        super().__init__(config, log)
        self._indexes: dict[str, int] = {}

    def add_node_collection(self, node: WorkerController, collection: list[str]) -> None:
        super().add_node_collection(node, collection)
        self._indexes = self._indexes or {nodeid: index for index, nodeid in enumerate(collection)}

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        """Forget the test, so that what is left stays quick to count."""
        nodeid = self.registered_collections[node][item_index]
        units, scope = self.assigned_work[node], self._split_scope(nodeid)
        del units[scope][nodeid]
        if not units[scope]:
            del units[scope]
        self._reschedule(node)

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.rfind("@") > nodeid.rfind("]"):
            return nodeid.rpartition("@")[2]
        return nodeid.partition("::")[0]

    def _assign_work_unit(self, node: WorkerController) -> None:
        scope = min(self.workqueue, key=_position)
        unit = self.assigned_work[node][scope] = self.workqueue.pop(scope)
        node.send_runtest_some([self._indexes[nodeid] for nodeid, completed in unit.items() if not completed])


def _position(scope: str) -> int:
    return next((position for position, start in enumerate(LONGEST) if scope.startswith(start)), len(LONGEST))
