"""How often helper processes ended by themselves and were started again, for whoever watches this process."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

Helper: TypeAlias = Literal["fork_server", "mcp_server", "program_checker"]

_counts: Final[dict[Helper, int]] = {"fork_server": 0, "mcp_server": 0, "program_checker": 0}


def count_restart(helper: Helper) -> None:
    """Called where a helper that has ended is started again. A count may be lost if two threads do so at once."""
    _counts[helper] += 1


def restarts() -> dict[Helper, int]:
    """The restarts of this process so far, by helper."""
    return dict(_counts)
