"""The policy: allow, ask or deny, by tool, by permission and by what a call touches.

The order is fixed and does not depend on how rules are listed: a deny rule is final, then come ask rules, then allow rules.
If no rule matches, ``tools[name]`` decides, else ``default``. A deny or ask rule matches if *anything* that the call touches
matches it; allow rules must cover *everything* that it touches.

Paths are judged by where they really lead, before the call; the sandbox holds the call to that while it runs.

How it is built: ``rule.py`` is one rule, ``policy_file.py`` reads a file of them, and ``touched.py`` compares them with what
a call touches. ``commands.py`` compares commands, and ``shell_text.py`` reads them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Generic,
    Literal,
    NamedTuple,
    Protocol,
    Self,
    TypeAlias,
    TypeVar,
    cast,
)

from toolkit.errors import PolicyError, nearest
from toolkit.guard.policy.rule import DECISIONS, HINTS, Decision, Hint, Rule

if TYPE_CHECKING:
    from toolkit.guard.files.consent import Allows, AskRule, LocatedPath, PathLimit
    from toolkit.guard.permission import Permission
    from toolkit.guard.policy.policy_file import PolicyFile
    from toolkit.guard.policy.preview import Preview
    from toolkit.guard.policy.touched import Considered, ToolRules
    from toolkit.toml_places import KeyPath


NameT = TypeVar("NameT", bound=str)

Admission: TypeAlias = Literal["allow", "ask", "deny", "depends"]
FindHints: TypeAlias = Callable[[str], Collection[Hint]]


class Explain(Protocol):
    """The toolkit that a policy was built into, as the policy asks it."""

    def __call__(self, name: str, arguments: Mapping[str, Any], /) -> Verdict: ...

    def bindings(self) -> tuple[BoundRule, ...]: ...


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision of the policy on a call, and the reason."""

    decision: Decision
    because: str
    considered: tuple[Considered, ...] = field(default=(), repr=False, compare=False)
    """What the policy looked at, in the order in which it counts; only ``explain`` fills it."""
    unbound: tuple[str, ...] = field(default=(), repr=False, compare=False)
    """Rules that cannot keep the tool from what they are about, with the way out; only ``explain`` fills it."""
    exact_rule: str | None = field(default=None, repr=False, compare=False)
    """The ``command`` of the rule that would allow just what an allow rule with the same program does not cover. It holds
    arguments, so errors and the audit log leave it out."""


Door: TypeAlias = Literal["file tools", "fetches", "commands", "programs", "local servers", "remote servers"]
"""A way to touch something."""
How: TypeAlias = Literal["kernel", "checked", "-", "cannot bind"]
"""How a limit holds: enforced by the kernel, checked by us before or while a call runs, without meaning there, or not."""


class Binding(NamedTuple):
    """How a limit holds at one door, and for each tool there that it cannot bind, a sentence with the way out."""

    how: How
    unbound: Mapping[str, str] = {}


class BoundRule(NamedTuple):
    """One rule of the policy, or one limit of the context, and how it holds at each door that the toolkit has."""

    place: str | None
    """``policy.toml:3:1``, if it was read from a file."""
    text: str
    doors: Mapping[Door, Binding]


RUNS: Final = "runs commands"
"""Among the kinds of things that a tool touches: what rules deny or ask about on paths is hidden from its commands."""
_SHOWN: Final = 6
"""How many decisions and rules a ``repr`` shows."""
_BUILT_IN: Final = "toolkit.generated"


class SecurityPolicy(Generic[NameT]):
    """Which calls are allowed. Generated packages export it with their own tool names filled in, so that an unknown name is
    a type error. At run time an unknown name is an error when the toolkit is built.

    >>> from toolkit import ToolkitContext, create_agent_toolkit
    >>> policy = SecurityPolicy(default="deny", tools={"read_file": "allow"}, rules=[Rule("deny", path="secrets/**")])
    >>> with create_agent_toolkit(ToolkitContext(".", policy)):
    ...     policy.explain("read_file", {"path": "a.py"}).decision
    ...     policy.explain("read_file", {"path": "secrets/key"}).decision
    'allow'
    'deny'
    """

    def __init__(
        self,
        default: Decision = "deny",
        tools: Mapping[NameT, Decision] | None = None,
        rules: Iterable[Rule[NameT]] = (),
    ) -> None:
        self.default: Final = default
        self.tools: Final[dict[NameT, Decision]] = dict(tools or {})
        self.rules: Final = tuple(rules)
        self._restricts_hosts: Final = any(
            isinstance(rule, Rule) and rule.host is not None and rule.decision != "allow" for rule in self.rules
        )
        self.source: str | None = None
        self._places: tuple[str, ...] = ()
        """The file that it was read from, and every link on the way to it."""
        self._file: PolicyFile | None = None
        self._explain: Explain | None = None
        self._known: Mapping[str, Collection[str]] = {}
        self._find_hints: FindHints | None = None
        self._must_be_named: frozenset[str] = frozenset()
        self._sorted_rules: dict[tuple[str, tuple[Permission, ...]], ToolRules] = {}
        for tool in self.tools:
            if not isinstance(tool, str):
                raise PolicyError(f"'tools' maps tool names to decisions; {tool!r} is not a name")
        for rule in self.rules:
            if not isinstance(rule, Rule):
                raise PolicyError(f"'rules' must be Rule(...) objects, not {type(rule).__name__}")
        for where, decision in [("default", default), *self.tools.items()]:
            if decision not in DECISIONS:
                raise PolicyError(f"the decision for {where!r} must be allow, ask or deny, not {decision!r}")

    def __repr__(self) -> str:
        parts = [f"default={self.default!r}"]
        if self.tools:
            few = len(self.tools) <= _SHOWN
            parts.append(f"tools={self.tools!r}" if few else f"tools=<{len(self.tools)} decisions>")
        if self.rules:
            few = len(self.rules) <= _SHOWN
            parts.append(f"rules={list(self.rules)!r}" if few else f"rules=<{len(self.rules)} rules>")
        return f"{type(self).__name__}({', '.join(parts)})"

    def __copy__(self) -> Self:
        made = type(self).__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made

    def __getstate__(self) -> dict[str, object]:
        # Pickled, it goes to another process, where another toolkit is made with it.
        return {**self.__dict__, "_explain": None, "_known": {}, "_find_hints": None, "_sorted_rules": {}}

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> SecurityPolicy[NameT]:
        """Read a policy from a TOML file: ``default``, a table ``[tools]`` and any number of ``[[rules]]``.

        The file must be outside the workspace and the other roots; that is checked when a toolkit is built with it.
        """
        from toolkit.guard.policy.policy_file import places_on_the_way, read_policy_file

        file = read_policy_file(path)
        policy = cls(file.default, cast("dict[NameT, Decision]", file.tools), file.rules)
        policy.source = os.path.realpath(path)
        policy._places = tuple(places_on_the_way(path))
        policy._file = file
        return policy

    # -- judging -----------------------------------------------------------------------------------------------------

    def _admit(self, name: str, permissions: Collection[Permission]) -> Verdict | None:
        """The verdict by the name alone; None if it depends on what a call touches.

        A tool whose calls can never be allowed is denied here, before any arguments are read.
        """
        rules = [rule for rule in self._covering_rules(name, permissions) if self._can_apply(rule, name)]
        for rule in rules:
            if rule.decision == "deny" and not rule.is_conditional:
                return _verdict(rule)
        fallback = self._fallback(name)
        if not any(rule.is_conditional for rule in rules):
            return next(
                (_verdict(rule) for word in ("ask", "allow") for rule in rules if rule.decision == word), fallback
            )
        if fallback.decision == "deny" and all(rule.decision == "deny" for rule in rules):
            return fallback
        return None

    def _judge(
        self,
        name: str,
        permissions: Collection[Permission],
        preview: Preview,
        places: tuple[LocatedPath, ...] | None = None,
    ) -> Verdict:
        """The verdict on one call, by everything that it touches. Without ``places``, paths are judged by their text."""
        rules = self._rules_of(name, tuple(permissions))
        touched = rules.find_touched(preview, places)
        found = rules.denying.find(touched) or rules.asking.find(touched)
        if found is not None:
            return Verdict(found.decision, found.because + touched.why_matched(found))
        allowing = rules.allowing
        if not allowing and touched.commands is None:
            return self._fallback(name)
        covering = rules.any_allowing or touched.covered_by(allowing)
        if covering is not None:
            return _verdict(covering)
        fallback, (reason, exact) = self._fallback(name), touched.why_uncovered(allowing)
        if not reason:
            return fallback
        return Verdict(fallback.decision, f"{fallback.because} ({reason})", exact_rule=exact)

    def _rules_of(self, name: str, permissions: tuple[Permission, ...]) -> ToolRules:
        """The rules that cover a tool, sorted at the first call of it."""
        found = self._sorted_rules.get((name, permissions))
        if found is None:
            from toolkit.guard.policy.touched import ToolRules

            found = ToolRules(self._covering_rules(name, permissions))
            self._sorted_rules[name, permissions] = found
        return found

    def _judge_command_request(self, name: str, permissions: Collection[Permission], url: str) -> Verdict | None:
        """The deny or ask rule that a request of a running command meets, by its host; None if it meets none.

        Allow rules and the default have decided about the command itself.
        """
        from toolkit.guard.policy.preview import Preview
        from toolkit.guard.policy.touched import Touched

        touched = Touched.from_preview(Preview(url=url), need_commands=False)
        rules = [rule for rule in self._covering_rules(name, permissions) if rule.host is not None]
        for decision in ("deny", "ask"):
            for rule in rules:
                if rule.decision == decision and rule.touches(touched):
                    return _verdict(rule)
        return None

    def explain(self, name: NameT, args: Mapping[str, Any]) -> Verdict:
        """Which rule decides a call with these arguments. A toolkit must have been built with the policy."""
        if self._explain is None:
            raise PolicyError(
                "a policy can explain a call only after a toolkit was built with it; see `toolkit policy explain`"
            )
        return self._explain(name, args)

    def bindings(self) -> tuple[BoundRule, ...]:
        """Where each rule holds: the table of ``toolkit policy show``, for the toolkit that was built with the policy.

        >>> from toolkit import ToolkitContext, create_agent_toolkit
        >>> policy = SecurityPolicy(default="allow", rules=[Rule("deny", path="secrets/**")])
        >>> with create_agent_toolkit(ToolkitContext(".", policy, sandbox="full")):
        ...     for row in policy.bindings():
        ...         if "secrets" in row.text:
        ...             row.doors["file tools"].how, row.doors["commands"].how
        ('checked', 'kernel')
        """
        if self._explain is None:
            raise PolicyError("a policy can say where its rules hold only after a toolkit was built with it")
        return self._explain.bindings()

    def _withholds(self, name: str, permission: Permission) -> bool:
        """Whether a deny or ask rule withholds an optional permission from a tool.

        The rule's condition does not matter: what a command does with the network, for example, cannot be judged per call.
        """
        rules = self._covering_rules(name, (permission,))
        return any(rule.permission == permission and rule.decision != "allow" for rule in rules)

    def _why_no_writing(self, name: str) -> str | None:
        """The rule because of which commands of a tool may change no file; None if there is none.

        A rule that asks withholds the permission as well, because nobody can be asked while a command runs.
        """
        writing: tuple[Permission] = ("write",)
        rules = self._covering_rules(name, writing)
        withholding = (rule for rule in rules if rule.permission == "write" and not rule.is_conditional)
        return next((repr(rule) for rule in withholding if rule.decision != "allow"), None)

    def _command_limits(self, name: str, granted: Collection[Permission]) -> tuple[PathLimit, ...]:
        """What rules on paths keep from the commands of a tool, which read and write without declaring it."""
        from toolkit.guard.files.consent import PathLimit

        found = []
        for rule in self._covering_rules(name, {*granted, "read", "write"}):
            pattern = rule.path
            if pattern is None and rule.permission == "read" and not rule.is_conditional:
                pattern = "**"  # who may read nothing sees nothing
            if pattern is not None and rule.decision != "allow":
                found.append(PathLimit(pattern, repr(rule), rule.permission != "write", rule.decision == "ask"))
        return tuple(found)

    def _denied_paths(self, name: str, permissions: Collection[Permission]) -> tuple[str, ...]:
        """Path globs that no call of the tool may touch. The sandbox enforces them through links, patches and walks."""
        rules = self._covering_rules(name, permissions)
        return tuple(rule.path for rule in rules if rule.decision == "deny" and rule.path is not None)

    def _ask_rules(self, name: str, permissions: Collection[Permission]) -> tuple[AskRule, ...]:
        """The rules on paths that a call of the tool may touch only after approval. The sandbox enforces them, too."""
        rules = self._covering_rules(name, permissions)
        return tuple(rule.ask_rule for rule in rules if rule.ask_rule is not None)

    def _allowed_places(self, name: str, permissions: Collection[Permission]) -> Allows | None:
        """Which places a call of the tool may touch without approval; None if they are not limited to some."""
        rules = self._covering_rules(name, permissions)
        allowing = [rule for rule in rules if rule.decision == "allow"]
        is_always_asked = any(rule.decision == "ask" and not rule.is_conditional for rule in rules)
        is_allowed = self._fallback(name).decision == "allow" or any(not rule.is_conditional for rule in allowing)
        if is_allowed and not is_always_asked:
            return None
        return lambda real: any(rule.allows_real(real) for rule in allowing)

    def _covering_rules(self, name: str, permissions: Collection[Permission]) -> list[Rule[NameT]]:
        """The rules that cover a tool. Without a toolkit its hints are unknown, so every hint is assumed to hold.

        A tool that must be named is allowed only by rules that name it, and asked about only if the policy names it.
        """
        needs_hints = any(rule.hint is not None for rule in self.rules)
        hints = self._find_hints(name) if needs_hints and self._find_hints is not None else HINTS
        found = [rule for rule in self.rules if rule.covers(name, permissions, hints)]
        if not self._needs_name(name):
            return found
        others = ("deny", "ask") if self._offers_by_name(name) else ("deny",)
        return [rule for rule in found if rule.decision in others or name in (rule.tools or ())]

    def _needs_name(self, name: str) -> bool:
        """Whether neither the default nor a rule for all tools allows this tool, because its spec says so."""
        return name in self._must_be_named

    def _require_names(self, tools: Iterable[str]) -> None:
        """Only what names these tools allows them from now on: an old ``default="allow"`` must not switch on what is new."""
        self._must_be_named = self._must_be_named.union(tools)
        self._sorted_rules = {}

    def _offers_by_name(self, name: str) -> bool:
        own = cast("Mapping[str, Decision]", self.tools).get(name, "deny")
        naming = (rule.decision for rule in self.rules if name in (rule.tools or ()))
        return any(decision != "deny" for decision in (own, *naming))

    def _parts(self) -> tuple[SecurityPolicy[Any], ...]:
        """The policies whose rules count, which is this one unless it narrows another."""
        return (self,)

    def _locate(self, path: KeyPath) -> str | None:
        """``policy.toml:3:1``: where a key is in the file of the policy; None if it was not read from one."""
        return None if self._file is None else self._file.locate(path)

    def _can_apply(self, rule: Rule[NameT], name: str) -> bool:
        """Whether calls of the tool can touch what the rule is about; a path rule does not apply to `done`."""
        return rule.condition is None or name not in self._known or rule.condition in self._known[name]

    def _fallback(self, name: str) -> Verdict:
        """What decides if no rule does: the entry of the tool, else the default."""
        own = cast("Mapping[str, Decision]", self.tools).get(name)
        if own is not None:
            return Verdict(own, f"the policy says {own} for this tool")
        if self._needs_name(name):
            return Verdict("deny", "a tool like this must be named by the policy")
        return Verdict(self.default, f"the policy's default is {self.default}")

    # -- use by a toolkit --------------------------------------------------------------------------------------------

    def _attach(
        self,
        known: Mapping[str, Collection[str]],
        explain: Explain,
        roots: Sequence[str],
        find_hints: FindHints,
        package: str = "",
        must_be_named: Collection[str] = (),
    ) -> Self:
        """Check the policy against the tools of a toolkit, and return it as that toolkit uses it: another one may have other
        tools of the same names. ``known`` maps each name to the kinds of things the tool touches.

        ``must_be_named`` are the tools that the default does not cover.

        ``package`` is the generated package of the toolkit, if there is one: errors name it.
        A misspelt deny rule would protect nothing, and a path rule cannot apply to a tool that declares no paths.
        """
        problems = self._find_unknown_tools(known, package)
        for index, rule in enumerate(self.rules):
            problems += [
                f"{self._at(('rules', index))}{rule!r} has a {rule.condition} condition, but {name!r} declares no"
                f" {rule.condition}: its spec needs an 'x-resource', or its handler a 'preview'"
                for name in rule.tools or ()
                if name in known and not _applies(rule, known[name])
            ]
        place = next((place for place in self._places if any(_is_below(place, root) for root in roots)), None)
        if place is not None:
            what = "the policy file" if place == self.source else f"the link {place!r}, which leads to the policy file,"
            problems.append(
                f"{self._at(())}{what} is inside the workspace or another root of the tools, where they could read"
                " or change it; move it out"
            )
        if problems:
            raise PolicyError("\n".join(problems))
        self._explain = explain
        attached = copy(self)
        attached._known, attached._find_hints = known, find_hints
        attached._require_names(must_be_named)
        return attached

    def _for_unlisted_tools(self) -> Self:
        """The policy for tools that the toolkit does not list: what they touch is known only from their calls."""
        view = copy(self)
        view._known = {}
        return view

    def _find_unknown_tools(self, known: Collection[str], package: str) -> list[str]:
        """A problem for each tool that the policy names and that is not in ``known``."""
        return [
            f"{self._at(path)}the policy names {name!r}, which is not a tool{_way_out(name, known, package)}"
            for name, path in self._named_tools().items()
            if name not in known
        ]

    def _named_tools(self) -> dict[str, KeyPath]:
        """Every tool that the policy names, and where it does so first."""
        named: dict[str, KeyPath] = {name: ("tools", name) for name in self.tools}
        for index, rule in enumerate(self.rules):
            for position, name in enumerate(rule.tools or ()):
                named.setdefault(name, ("rules", index, "tools", position))
        return named

    def _at(self, path: KeyPath) -> str:
        place = self._locate(path)
        return "" if place is None else f"{place}: "


def _way_out(name: str, known: Collection[str], package: str) -> str:
    """The end of the sentence that ``name`` is not a tool."""
    if (near := nearest(name, known)) or not package:
        return f".{near}"
    if package == _BUILT_IN:
        return (
            f" of {package}; if it is a tool of your own, import SecurityPolicy, ToolkitContext and create_agent_toolkit"
            " from your generated package (on the command line: --package)"
        )
    return f" of {package}; if its spec is new, run `toolkit generate`"


def _applies(rule: Rule[Any], kinds: Collection[str]) -> bool:
    """Whether a rule can apply to a tool that touches things of these kinds."""
    is_enforced = rule.condition == "path" and rule.decision != "allow" and RUNS in kinds
    return rule.condition is None or rule.condition in kinds or is_enforced


def _verdict(rule: Rule[Any]) -> Verdict:
    return Verdict(rule.decision, rule.because)


def _is_below(path: str, root: str) -> bool:
    real = os.path.realpath(root)
    return os.path.commonpath([real, path]) == real


# -- two policies ------------------------------------------------------------------------------------------------------

_STRICTNESS: Final[dict[Decision, int]] = {"allow": 0, "ask": 1, "deny": 2}


class NarrowedPolicy(SecurityPolicy[NameT]):
    """Two policies at once: what both allow, of the tools in ``names``, so the second can only narrow the first.

    The stricter verdict counts; of equal ones, the first.

    >>> limit = SecurityPolicy(default="deny", tools={"read_file": "allow", "bash": "ask"})
    >>> policy = NarrowedPolicy("reviewer", ["read_file", "bash"], limit, SecurityPolicy(default="allow"))
    >>> [policy._admit(name, ["read"]).decision for name in ("read_file", "bash", "webfetch")]
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
        self._restricts_hosts = limit._restricts_hosts or own._restricts_hosts  # type: ignore[misc]
        self.source = own.source
        self._places = own._places

    def _admit(self, name: str, permissions: Collection[Permission]) -> Verdict | None:
        if name not in self._names:
            return self._outside
        found = [self._limit._admit(name, permissions), self._own._admit(name, permissions)]
        strictest = _strictest([verdict for verdict in found if verdict is not None])
        return strictest if None not in found or strictest is not None and strictest.decision == "deny" else None

    def _judge(
        self,
        name: str,
        permissions: Collection[Permission],
        preview: Preview,
        places: tuple[LocatedPath, ...] | None = None,
    ) -> Verdict:
        if name not in self._names:
            return self._outside
        limit = self._limit._judge(name, permissions, preview, places)
        own = self._own._judge(name, permissions, preview, places)
        return own if _STRICTNESS[own.decision] > _STRICTNESS[limit.decision] else limit

    def _judge_command_request(self, name: str, permissions: Collection[Permission], url: str) -> Verdict | None:
        found = [policy._judge_command_request(name, permissions, url) for policy in (self._limit, self._own)]
        return _strictest([verdict for verdict in found if verdict is not None])

    def _withholds(self, name: str, permission: Permission) -> bool:
        return self._limit._withholds(name, permission) or self._own._withholds(name, permission)

    def _why_no_writing(self, name: str) -> str | None:
        return self._limit._why_no_writing(name) or self._own._why_no_writing(name)

    def _command_limits(self, name: str, granted: Collection[Permission]) -> tuple[PathLimit, ...]:
        return self._limit._command_limits(name, granted) + self._own._command_limits(name, granted)

    def _denied_paths(self, name: str, permissions: Collection[Permission]) -> tuple[str, ...]:
        return self._limit._denied_paths(name, permissions) + self._own._denied_paths(name, permissions)

    def _ask_rules(self, name: str, permissions: Collection[Permission]) -> tuple[AskRule, ...]:
        return self._limit._ask_rules(name, permissions) + self._own._ask_rules(name, permissions)

    def _allowed_places(self, name: str, permissions: Collection[Permission]) -> Allows | None:
        found = [policy._allowed_places(name, permissions) for policy in (self._limit, self._own)]
        limited = [allows for allows in found if allows is not None]
        return (lambda real: all(allows(real) for allows in limited)) if limited else None

    def _attach(
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
            policy._attach(known, explain, roots, find_hints, package, must_be_named)
            for policy in (self._limit, self._own)
        )
        attached = super()._attach(known, explain, roots, find_hints, package, must_be_named)
        attached._limit, attached._own = limit, own
        return attached

    def _parts(self) -> tuple[SecurityPolicy[Any], ...]:
        return self._limit, self._own

    def _for_unlisted_tools(self) -> Self:
        view = super()._for_unlisted_tools()
        view._limit, view._own = self._limit._for_unlisted_tools(), self._own._for_unlisted_tools()
        return view


def _strictest(verdicts: list[Verdict]) -> Verdict | None:
    return max(verdicts, key=lambda verdict: _STRICTNESS[verdict.decision], default=None)
