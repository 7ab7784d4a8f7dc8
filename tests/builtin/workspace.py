"""Workspaces for the tests of the built-in tools: a toolkit over a directory, and files in it."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from toolkit import CancelSignal
from toolkit.generated import SecurityPolicy, Toolkit, ToolkitContext, create_agent_toolkit
from toolkit.generated.models.tree import TreeOutputNode


def toolkit_for(root: Path) -> Toolkit:
    return create_agent_toolkit(ToolkitContext(workspace=root, policy=SecurityPolicy(default="allow")))


def make(root: Path, *paths: str, data: bytes = b"") -> None:
    """Create files with this content, and directories for paths that end in a slash."""
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        if path.endswith("/"):
            (root / path).mkdir(exist_ok=True)
        else:
            (root / path).write_bytes(data)


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(path))  # an absolute path may be too long for an address


@contextmanager
def as_somebody_else(root: Path) -> Iterator[None]:
    """Drop root privileges, because root may read everything; the toolkit already has ``root`` open."""
    root.chmod(0o755)
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def nodes(node: TreeOutputNode) -> Iterator[TreeOutputNode]:
    """Every node of the tree, parents first."""
    for child in node.children or ():
        yield child
        yield from nodes(child)


class Meanwhile(CancelSignal):
    """Runs an action when a call checks for cancellation the n-th time, which it does before every step."""

    def __init__(self, act: Callable[[], object] = lambda: None, step: int = 0) -> None:
        super().__init__()
        self.asked = 0
        self._act = act
        self._step = step

    @property
    def cancelled(self) -> bool:
        self.asked += 1
        if self.asked == self._step:
            self._act()
        return False
