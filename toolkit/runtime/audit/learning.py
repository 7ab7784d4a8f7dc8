"""Proposes the smallest policy under which every call of a log has the verdict that it had, and judges the log again with it.

Promise: what is proposed allows the real paths, commands and hosts of calls that were allowed, each for the tool that used
it, and nothing else, with two exceptions: a directory in which calls used as many files as the limit says, and other calls of
a tool about which somebody was asked, which are asked about. A verdict that such rules cannot give is reported, not widened.

Limits: a log knows what was done, not what should have been: review the policy before you use it. Nor does it have the rules
of its policy: a search that was allowed left out what they denied. Give that policy, and its deny and ask rules stay;
otherwise only the paths that calls were denied stay denied to the tools that would find them.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias, cast

from toolkit.errors import PolicyError, ToolkitError
from toolkit.guard.files.consent import LocatedPath, escape_pattern
from toolkit.guard.network.hosts import Url
from toolkit.guard.permission import PERMISSIONS, Permission
from toolkit.guard.policy.commands import TouchedCommands, spell
from toolkit.guard.policy.policy import Verdict
from toolkit.guard.policy.preview import Preview
from toolkit.guard.policy.rule import Decision, Rule
from toolkit.runtime.audit.log import join_records
from toolkit.runtime.touches import judge_named, read_touched, touched_kinds
from toolkit.visible import hidden_pattern

if TYPE_CHECKING:
    from toolkit.runtime.toolkit import Core

MIN_FILES: Final = 3
"""In how many files of a directory calls must have been, so that a rule names the directory."""

_DECISIONS: Final = ("allow", "ask", "deny")
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_Kind: TypeAlias = Literal["path", "command", "host"]


# -- what was seen -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SeenCall:
    """One call of a log, as far as a policy judges it."""

    tool: str
    decision: Decision
    preview: Preview
    places: tuple[LocatedPath, ...]
    id: str
    time: str


@dataclass(slots=True)
class SeenCalls:
    """The calls of some logs, and how many could not be used, by the reason."""

    calls: list[SeenCall] = field(default_factory=list)
    lacking: Counter[str] = field(default_factory=Counter)

    def read(self, records: Iterable[Mapping[str, Any]], core: Core) -> None:
        """Adds the calls of a log."""
        for record in join_records(records):
            if record.get("event") == "program":
                continue
            found = _read_call(record, core)
            if isinstance(found, str):
                self.lacking[found] += 1
            else:
                self.calls.append(found)


def _read_call(record: Mapping[str, Any], core: Core) -> SeenCall | str:
    """The call of a record, or why it cannot be used."""
    name, decision = record.get("tool"), record.get("decision")
    if decision not in _DECISIONS:
        return "were refused before the policy judged them"
    if not isinstance(name, str) or name not in core.catalog.tools:
        return "are of tools that this package does not have"
    if record.get("answer") == "remembered":
        decision = "ask"
    touched = record.get("touched")
    if touched is None:
        if _kinds_of(name, core) and decision != "deny":  # most denials are by name
            return "do not say what they touched: the log is older than that, or was told not to"
        touched = {}
    if not isinstance(touched, dict) or "redacted" in touched:
        return "touched something that is marked as secret"
    if "too_long" in touched:
        return "touched more than a record can say"
    try:
        preview, places = read_touched(touched)
    except (ValueError, TypeError, AttributeError):
        return "say what they touched in a way that cannot be read"
    return SeenCall(name, cast("Decision", decision), preview, places, str(record.get("call")), str(record.get("time")))


def _kinds_of(name: str, core: Core) -> Collection[str]:
    return touched_kinds(core.catalog.tools[name], has_preview=core.handlers.has_preview(name))


# -- what is proposed --------------------------------------------------------------------------------------------------


class _Thing(NamedTuple):
    """What a rule can be about."""

    kind: _Kind
    text: str
    """The real path as records name it, the words of a command, or a host."""

    def pattern(self, decision: Decision) -> str:
        """It as the condition of a rule."""
        if self.kind != "path":
            return self.text
        name = self.text if decision == "allow" else escape_pattern(self.text)
        if name == "./":
            return "**"
        if name.endswith("/"):
            return f"{name}**"
        return name if "/" in name else f"./{name}"

    def folders(self) -> Iterator[_Thing]:
        """It, if it is a directory, and every directory above it."""
        if self.kind == "path":
            yield from (_Thing("path", self.text[: at + 1]) for at, sign in enumerate(self.text) if sign == "/" and at)
            if not self.text.startswith("/"):
                yield _TOP


_TOP: Final = _Thing("path", "./")


def _things_of(call: SeenCall) -> list[_Thing] | None:
    """All that a call touches; None if rules cannot say it."""
    found: list[_Thing] = []
    for place in call.places:
        if place.real is None:
            return None
        found.append(_Thing("path", place.text))
    if call.preview.argv is not None or call.preview.shell is not None:
        commands = TouchedCommands.from_preview(call.preview).commands
        texts = [spell(command) for command in commands or ()]
        if commands is None or None in texts:
            return None
        found += [_Thing("command", text) for text in texts if text is not None]
    if call.preview.url is not None:
        try:
            found.append(_Thing("host", Url.parse(call.preview.url).host.text))
        except ToolkitError:
            return None
    return found


@dataclass(slots=True)
class LearnedPolicy:
    """A policy as it is being learned: decisions by tool, and rules with the tools that share them."""

    kept: Sequence[Rule[Any]] = ()
    """Rules of another policy that stay."""
    tools: dict[str, Decision] = field(default_factory=dict)
    rules: dict[tuple[Decision, _Thing], list[str]] = field(default_factory=dict)

    def allowed_to(self, tool: str) -> set[_Thing]:
        """What rules allow a tool."""
        found = {one for (decision, one), names in self.rules.items() if decision == "allow" and tool in names}
        return found | ({_TOP} if self.tools.get(tool) == "allow" else set())

    def add(self, decision: Decision, tool: str, thing: _Thing) -> None:
        """Adds a rule, unless no rule can say that, or one says it already."""
        known = self.rules.get((decision, thing), [])
        if tool in known:
            return
        try:
            _make_rule(decision, [tool], thing)
            _write_text(thing.text).encode()
        except (PolicyError, UnicodeEncodeError):
            return
        self.rules[decision, thing] = [*known, tool]

    def as_toml(self) -> str:
        """The text of a policy file."""
        lines = ['default = "deny"']
        if self.tools:
            lines += ["", "[tools]"]
            lines += [f"{_write_key(name)} = {_write_text(decision)}" for name, decision in sorted(self.tools.items())]
        for rule in self.kept:
            lines += ["", "[[rules]]", *(f"{key} = {value}" for key, value in _describe_rule(rule))]
        order = {"deny": 0, "ask": 1, "allow": 2}
        for (decision, thing), tools in sorted(
            self.rules.items(), key=lambda one: (order[one[0][0]], one[0][1], one[1])
        ):
            names = ", ".join(map(_write_text, sorted(tools)))
            lines += ["", "[[rules]]", f'decision = "{decision}"', f"tools = [{names}]"]
            lines.append(f"{thing.kind} = {_write_text(thing.pattern(decision))}")
        return "\n".join(lines) + "\n"

    def profile(self, name: str) -> str:
        """A profile with the tools that are left, for ``pyproject.toml``."""
        left = {tool for tools in self.rules.values() for tool in tools} | self.tools.keys()
        return f"[tool.toolkit.profiles.{_write_key(name)}]\ntools = [{', '.join(map(_write_text, sorted(left)))}]\n"


def _describe_rule(rule: Rule[Any]) -> Iterator[tuple[str, str]]:
    """The keys of a rule in a policy file."""
    for key in ("decision", "tools", "permission", "hint", "path", "command", "host", "justification"):
        value = getattr(rule, key)
        if isinstance(value, tuple):
            yield key, f"[{', '.join(map(_write_text, value))}]"
        elif value is not None:
            yield key, _write_text(value)


def _make_rule(decision: Decision, tools: Sequence[str], thing: _Thing) -> Rule[str]:
    pattern = thing.pattern(decision)
    if thing.kind == "path":
        if decision == "allow" and not {"*", "?"}.isdisjoint(thing.text):
            raise PolicyError("in an allow rule, these stand for other names")
        return Rule(decision, tools=tools, path=pattern)
    return (
        Rule(decision, tools=tools, command=pattern)
        if thing.kind == "command"
        else Rule(decision, tools=tools, host=pattern)
    )


def _write_text(text: str) -> str:
    """A text as TOML, in which nothing is hidden."""
    return hidden_pattern("").sub(lambda found: f"\\U{ord(found[0]):08x}", json.dumps(text, ensure_ascii=False))


def _write_key(text: str) -> str:
    return text if _BARE.fullmatch(text) else _write_text(text)


JudgeAgain: TypeAlias = Callable[[str, Sequence[SeenCall]], list[Verdict]]
"""What the policy with this text says of calls."""


def learn_policy(
    seen: Sequence[SeenCall],
    core: Core,
    judge: JudgeAgain,
    *,
    kept: Sequence[Rule[Any]] = (),
    min_files: int = MIN_FILES,
) -> LearnedPolicy:
    """The smallest policy for these calls. Where it cannot give them all the verdicts they had, it is too strict.

    :param core: a toolkit with these tools.
    :param kept: rules of another policy that stay: those that ask and deny.
    :param min_files: in how many files of a directory calls must have been, so that a rule names the directory.
    """
    learned = LearnedPolicy(kept)
    by_tool: dict[str, dict[Decision, list[SeenCall]]] = defaultdict(lambda: {"allow": [], "ask": [], "deny": []})
    for call in seen:
        by_tool[call.tool][call.decision].append(call)
    for name, calls in by_tool.items():
        says_all = core.handlers.has_preview(name) and not core.catalog.tools[name].resources
        _learn_tool(learned, name, calls, _kinds_of(name, core), says_all, min_files)
    # Where the rules so far allow too much, as for a search from the top, more rules say what was asked about and denied.
    steps: tuple[tuple[Decision, tuple[Decision, ...]], ...] = (("ask", ("allow",)), ("deny", ("allow", "ask")))
    for decision, weaker in steps:
        verdicts = judge(learned.as_toml(), seen)
        for call, verdict in zip(seen, verdicts, strict=True):
            if call.decision == decision != verdict.decision:
                others = [one for word in weaker for one in by_tool[call.tool][word]]
                free = {thing for other in others for thing in _things_of(other) or ()}
                kinds = _kinds_of(call.tool, core)  # a path that a command names is not one that its tool declares
                for thing in _things_of(call) or ():
                    if thing not in free and thing.kind in kinds:
                        learned.add(decision, call.tool, thing)
    if not kept:
        _hide_denied(learned, seen, core)
    return learned


def _hide_denied(learned: LearnedPolicy, seen: Sequence[SeenCall], core: Core) -> None:
    """Denies the paths that calls were denied to each tool that would find them in a directory that it is allowed."""
    named = {(call.tool, thing) for call in seen if call.decision != "deny" for thing in _things_of(call) or ()}
    denied = {_Thing("path", place.text) for call in seen if call.decision == "deny" for place in call.places}
    for tool in sorted({call.tool for call in seen if "path" in _kinds_of(call.tool, core)}):
        allowed = learned.allowed_to(tool)
        for thing in sorted(denied):
            if not allowed.isdisjoint(thing.folders()) and (tool, thing) not in named:
                learned.add("deny", tool, thing)


def _learn_tool(
    learned: LearnedPolicy,
    name: str,
    calls: Mapping[Decision, list[SeenCall]],
    kinds: Collection[str],
    says_all: bool,
    min_files: int,
) -> None:
    """What the tool may do, and whether its other calls are asked about. ``says_all``: its handler says what it touches."""
    if calls["ask"] and not calls["deny"]:
        learned.tools[name] = "ask"
    allowed = [_things_of(call) for call in calls["allow"]]
    if not kinds or all(found == [] for found in allowed):
        # A tool that declares paths or commands may have left them out this time; one that previews its calls would say so.
        if allowed and not calls["ask"] and not calls["deny"] and (not kinds or says_all):
            learned.tools[name] = "allow"
        return
    things = {thing for found in allowed for thing in found or ()}
    others = {thing for call in (*calls["ask"], *calls["deny"]) for thing in _things_of(call) or ()}
    others |= {_Thing("path", place.text) for call in calls["deny"] for place in call.places}
    chosen = list(_join_files(things, others, min_files))
    if kinds == {"path"} and _TOP in chosen and not others and not calls["ask"] and not calls["deny"]:
        learned.tools[name] = "allow"
        return
    for thing in chosen:
        learned.add("allow", name, thing)


def _join_files(things: set[_Thing], others: set[_Thing], min_files: int) -> Iterator[_Thing]:
    """The same things, with directories in the place of many files in them. The workspace itself is no such directory."""
    parents = Counter(_Thing("path", f"{thing.text.rpartition('/')[0]}/") for thing in things if _is_file_below(thing))
    # Not where something else was asked about or denied.
    closed = {folder for other in others for folder in other.folders()}
    folders = {folder for folder, number in parents.items() if number >= min_files and folder not in closed}
    together = things | folders
    for thing in sorted(together):
        if together.isdisjoint(folder for folder in thing.folders() if folder != thing):
            yield thing


def _is_file_below(thing: _Thing) -> bool:
    """Whether it is a file in a directory that a rule may name."""
    return thing.kind == "path" and not thing.text.endswith("/") and thing.text.rpartition("/")[0] != ""


# -- the proof, and what it costs --------------------------------------------------------------------------------------


def judge_again(core: Core, calls: Iterable[SeenCall]) -> list[Verdict]:
    """What the policy of a toolkit says of calls from a log."""
    found = []
    for call in calls:
        info, tool = core.catalog.tools[call.tool], core.resolve(call.tool)
        verdict = core.policy._admit(call.tool, info.required)
        if verdict is None:
            places = None if tool.preview_fs is None else call.places
            verdict = core.policy._judge(call.tool, info.required, call.preview, places)
        if tool.preview_fs is None:  # its paths are those that a command names
            verdict = judge_named(verdict, tool.commands.find_asked_places(call.places))
        found.append(verdict)
    return found


def explain_difference(call: SeenCall) -> str:
    """Why rules that allow no more than was seen cannot give a call the verdict it had."""
    things = _things_of(call)
    if any(place.real is None for place in call.places):
        return "it named a path that led nowhere, out of the roots, or to what was denied"
    if things is None:
        return "its command or URL is not one that a rule can name exactly"
    for thing in things:
        try:
            _make_rule(call.decision, [call.tool], thing)
        except PolicyError:
            return f"no {call.decision} rule can name {thing.text!r} exactly"
    return "another call that touched the same had another verdict, or rules on this cannot tell the two apart"


class Lost(NamedTuple):
    """What a policy makes impossible."""

    tools: tuple[str, ...]
    permissions: tuple[Permission, ...]


def find_lost(before: Core, after: Core) -> Lost:
    """The tools that could be called before and cannot any more, and the permissions that the others do not need."""
    names = [name for name in before.catalog.tools if name in before.handlers]
    callable_now = {name for name in names if not _is_denied(after, name)}
    lost = tuple(name for name in names if name not in callable_now and not _is_denied(before, name))
    needed = {word for name in callable_now for word in after.catalog.tools[name].required}
    return Lost(lost, tuple(word for word in PERMISSIONS if word not in needed))


def _is_denied(core: Core, name: str) -> bool:
    verdict = core.policy._admit(name, core.catalog.tools[name].required)
    return verdict is not None and verdict.decision == "deny"
