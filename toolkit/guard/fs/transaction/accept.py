"""Reports what file tools change to the review of running commands, which would put it back otherwise."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from toolkit.guard.fs.place import Names

Accept: TypeAlias = Callable[[str, bytes | None], None]
AcceptChanges: TypeAlias = Callable[[], contextlib.AbstractContextManager[Accept]]


@contextlib.contextmanager
def ignore_changes() -> Iterator[Accept]:
    """For files that nobody reviews."""
    yield lambda path, data: None


def absolute(names: Names) -> str:
    """A real path as text."""
    return "/" + "/".join(names)
