"""Two policies at once: a call needs the consent of both, so the second can only narrow the first."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, Self, TypeVar

from toolkit.guard.fs.consent import Allows, AskRule, LocatedPath
from toolkit.guard.permission import Permission
from toolkit.guard.policy.policy import Explain, FindHints, SecurityPolicy, Verdict
from toolkit.guard.policy.preview import Preview
from toolkit.guard.policy.rule import Decision

NameT = TypeVar("NameT", bound=str)

_STRICTNESS: Final[dict[Decision, int]] = {"allow": 0, "ask": 1, "deny": 2}


class NarrowedPolicy(SecurityPolicy[NameT]):
    """What two policies both allow, of the tools in ``names``. The stricter verdict counts; of equal ones, the first.

    >>> limit = SecurityPolicy(default="deny", tools={"read_file": "allow", "bash": "ask"})
    >>> policy = NarrowedPolicy("reviewer", ["read_file", "bash"], limit, SecurityPolicy(default="allow"))
    >>> [policy.admit(name, ["read"]).decision for name in ("read_file", "bash", "webfetch")]
    ['allow', 'ask', 'deny']
    """

    def __init__(
        self, profile: str, names: Collection[str], limit: SecurityPolicy[Any], own: SecurityPolicy[NameT]
    ) -> None:
        super().__init__(own.default, own.tools, own.rules)
        self._names: Final = frozenset(names)
        self._outside: Final = Verdict("deny", f"the profile {profile!r} does not have this tool")
        self._limit = limit
        self._own = own
        self.restricts_hosts = limit.restricts_hosts or own.restricts_hosts  # type: ignore[misc]
        self.source = own.source

    def admit(self, name: str, permissions: Collection[Permission]) -> Verdict | None:
        if name not in self._names:
            return self._outside
        found = [self._limit.admit(name, permissions), self._own.admit(name, permissions)]
        strictest = _strictest([verdict for verdict in found if verdict is not None])
        return strictest if None not in found or strictest is not None and strictest.decision == "deny" else None

    def judge(
        self,
        name: str,
        permissions: Collection[Permission],
        preview: Preview,
        places: tuple[LocatedPath, ...] | None = None,
    ) -> Verdict:
        if name not in self._names:
            return self._outside
        limit = self._limit.judge(name, permissions, preview, places)
        own = self._own.judge(name, permissions, preview, places)
        return own if _STRICTNESS[own.decision] > _STRICTNESS[limit.decision] else limit

    def judge_command_request(self, name: str, permissions: Collection[Permission], url: str) -> Verdict | None:
        found = [policy.judge_command_request(name, permissions, url) for policy in (self._limit, self._own)]
        return _strictest([verdict for verdict in found if verdict is not None])

    def withholds(self, name: str, permission: Permission) -> bool:
        return self._limit.withholds(name, permission) or self._own.withholds(name, permission)

    def denied_paths(self, name: str, permissions: Collection[Permission]) -> tuple[str, ...]:
        return self._limit.denied_paths(name, permissions) + self._own.denied_paths(name, permissions)

    def ask_rules(self, name: str, permissions: Collection[Permission]) -> tuple[AskRule, ...]:
        return self._limit.ask_rules(name, permissions) + self._own.ask_rules(name, permissions)

    def allowed_places(self, name: str, permissions: Collection[Permission]) -> Allows | None:
        found = [policy.allowed_places(name, permissions) for policy in (self._limit, self._own)]
        limited = [allows for allows in found if allows is not None]
        return (lambda real: all(allows(real) for allows in limited)) if limited else None

    def attach(
        self,
        known: Mapping[str, Collection[str]],
        explain: Explain,
        roots: Sequence[str],
        find_hints: FindHints,
        package: str = "",
        must_be_named: Collection[str] = (),
    ) -> Self:
        # These first: they know where in a file a mistake is.
        limit, own = (
            policy.attach(known, explain, roots, find_hints, package, must_be_named)
            for policy in (self._limit, self._own)
        )
        attached = super().attach(known, explain, roots, find_hints, package, must_be_named)
        attached._limit, attached._own = limit, own
        return attached

    def for_unlisted_tools(self) -> Self:
        view = super().for_unlisted_tools()
        view._limit, view._own = self._limit.for_unlisted_tools(), self._own.for_unlisted_tools()
        return view


def _strictest(verdicts: list[Verdict]) -> Verdict | None:
    return max(verdicts, key=lambda verdict: _STRICTNESS[verdict.decision], default=None)
