"""What tools say of themselves (MCP's annotations), as words that rules can select by.

It is a word and no proof: a server that lies is not caught by it. So a rule that selects by a hint may ask or deny, never
allow, and what was not said counts as the worst it could mean.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final, Literal, TypeAlias, get_args

from toolkit.guard.permission import Permission

Hint: TypeAlias = Literal["destructive", "open-world", "not-read-only", "not-idempotent"]
HINTS: Final[tuple[Hint, ...]] = get_args(Hint)

_ELSEWHERE: Final = frozenset({"execute", "network"})
_SAID: Final = (
    ("readOnlyHint", "read-only"),
    ("destructiveHint", "destructive"),
    ("idempotentHint", "idempotent"),
    ("openWorldHint", "open-world"),
)


def hints_of(annotations: Mapping[str, Any], permissions: Collection[Permission]) -> frozenset[Hint]:
    """The hints that hold for a tool, given all permissions it may get.

    Where nothing is said MCP assumes a tool that changes and destroys things out in the world. Only a tool without the
    permissions to do so is taken for one that does not.

    >>> sorted(hints_of({"readOnlyHint": True, "openWorldHint": False}, ["execute"]))
    []
    >>> sorted(hints_of({}, ["network"]))
    ['destructive', 'not-idempotent', 'not-read-only', 'open-world']
    >>> sorted(hints_of({}, ["read"]))
    []
    """
    said = {key: annotations.get(key) for key, _ in _SAID}
    only_reads = said["readOnlyHint"] is True or said["readOnlyHint"] is not False and {*permissions} <= {"read"}
    found: dict[Hint, bool] = {
        "destructive": said["destructiveHint"] is True or not only_reads and said["destructiveHint"] is not False,
        "open-world": said["openWorldHint"] is True
        or said["openWorldHint"] is not False
        and not _ELSEWHERE.isdisjoint(permissions),
        "not-read-only": not only_reads,
        "not-idempotent": not only_reads and said["idempotentHint"] is not True,
    }
    return frozenset(hint for hint, holds in found.items() if holds)


def told_hints(annotations: Mapping[str, Any]) -> list[str]:
    """What a tool says of itself, in words.

    >>> told_hints({"readOnlyHint": False, "destructiveHint": True})
    ['not read-only', 'destructive']
    """
    given = [(annotations[key], word) for key, word in _SAID if isinstance(annotations.get(key), bool)]
    return [word if holds else f"not {word}" for holds, word in given]
