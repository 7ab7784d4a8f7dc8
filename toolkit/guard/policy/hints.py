"""The self-declared hints of tools (MCP's annotations), as names by which rules can select tools.

A hint is not proof: a wrong declaration is not detected. So a rule that selects by a hint may ask or deny, but never allow,
and a missing declaration counts as the worst case.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final, Literal, TypeAlias, get_args

from toolkit.guard.permission import Permission

Hint: TypeAlias = Literal["destructive", "open-world", "not-read-only", "not-idempotent"]
HINTS: Final[tuple[Hint, ...]] = get_args(Hint)

_REACHES_OUTSIDE: Final = frozenset({"execute", "network"})
_WORDS: Final = (
    ("readOnlyHint", "read-only"),
    ("destructiveHint", "destructive"),
    ("idempotentHint", "idempotent"),
    ("openWorldHint", "open-world"),
)


def effective_hints(annotations: Mapping[str, Any], permissions: Collection[Permission]) -> frozenset[Hint]:
    """The hints that hold for a tool, given all permissions it may get.

    Where nothing is declared, MCP assumes a tool that changes and destroys things and reaches an open world. Only a tool
    without the permissions for that is assumed not to do so.

    >>> sorted(effective_hints({"readOnlyHint": True, "openWorldHint": False}, ["execute"]))
    []
    >>> sorted(effective_hints({}, ["network"]))
    ['destructive', 'not-idempotent', 'not-read-only', 'open-world']
    >>> sorted(effective_hints({}, ["read"]))
    []
    """
    declared = {key: annotations.get(key) for key, _ in _WORDS}
    read_only, destructive, open_world = (declared[key] for key in ("readOnlyHint", "destructiveHint", "openWorldHint"))
    only_reads = read_only is True or read_only is not False and {*permissions} <= {"read"}
    found: dict[Hint, bool] = {
        "destructive": destructive is True or not only_reads and destructive is not False,
        "open-world": open_world is True or open_world is not False and not _REACHES_OUTSIDE.isdisjoint(permissions),
        "not-read-only": not only_reads,
        "not-idempotent": not only_reads and declared["idempotentHint"] is not True,
    }
    return frozenset(hint for hint, holds in found.items() if holds)


def describe_hints(annotations: Mapping[str, Any]) -> list[str]:
    """The hints that a tool declares, in words.

    >>> describe_hints({"readOnlyHint": False, "destructiveHint": True})
    ['not read-only', 'destructive']
    """
    given = [(annotations[key], word) for key, word in _WORDS if isinstance(annotations.get(key), bool)]
    return [word if holds else f"not {word}" for holds, word in given]
