"""A policy file (TOML): ``default``, a table ``[tools]`` and any number of ``[[rules]]``.

Every mistake is reported as ``file:line:column: what is wrong; what to do``, all of them at once.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from toolkit.errors import PolicyError, nearest
from toolkit.guard.policy.rule import DECISIONS, Decision, Rule
from toolkit.toml_places import KeyPath, TomlMistake, TomlPlaces

KEYS: Final = ("default", "tools", "rules")
_MAX_LINKS: Final = 40  # as in the kernel
# In the order in which a rule is checked: a mistake is that of the first key with which the rule is refused.
RULE_KEYS: Final = (
    "decision", "tools", "permission", "hint", "path", "command", "host", "justification", "match", "not_match",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PolicyFile:
    """What a policy file holds, and where."""

    shown: str
    places: TomlPlaces
    default: Decision
    tools: dict[str, Decision]
    rules: tuple[Rule[Any], ...]

    def locate(self, path: KeyPath) -> str:
        """``policy.toml:3:1`` for a key."""
        line, column = self.places.find(path)
        return f"{self.shown}:{line}:{column}"


def read_policy_file(path: str | os.PathLike[str], shown: str | None = None) -> PolicyFile:
    """Reads a policy file. ``shown`` is its name in messages; otherwise the path as it was given."""
    shown = os.fspath(path) if shown is None else shown
    try:
        data, places = TomlPlaces.read(_read_text(path, shown))
    except TomlMistake as mistake:
        raise PolicyError(f"{shown}:{mistake.line}:{mistake.column}: {mistake}") from None
    except RecursionError:
        raise PolicyError(f"{shown}:1:1: the policy cannot be read: it is nested too deeply") from None
    problems: list[tuple[KeyPath, str]] = []
    rules: list[Rule[Any]] = []
    for key, problem in _check(data, rules):
        problems.append((key, problem))
    if problems:
        found = sorted((*places.find(key), problem) for key, problem in problems)
        raise PolicyError("\n".join(f"{shown}:{line}:{column}: {problem}" for line, column, problem in found))
    return PolicyFile(shown, places, data.get("default", "deny"), data.get("tools", {}), tuple(rules))


def places_on_the_way(path: str | os.PathLike[str]) -> Iterator[str]:
    """The real path of each link that ``path`` leads through, also as a directory, and of the file itself."""
    names, at, links = os.path.join(os.getcwd(), path).split("/")[::-1], "/", 0
    while names:
        name = names.pop()
        here = os.path.dirname(at) if name == ".." else os.path.normpath(os.path.join(at, name))
        if name in ("", ".", "..") or not os.path.islink(here) or links == _MAX_LINKS:
            at = here
            continue
        yield here
        target, links = os.readlink(here), links + 1
        at = "/" if target.startswith("/") else at
        names += target.split("/")[::-1]
    yield at


def _read_text(path: str | os.PathLike[str], shown: str) -> str:
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise PolicyError(f"{shown}: the policy cannot be read: {error.strerror}") from None
    try:
        # The byte order mark that some editors write is not part of the text.
        return data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - data.rfind(b"\n", 0, error.start)
        raise PolicyError(f"{shown}:{line}:{column}: this is not UTF-8 text; save the file as UTF-8") from None


def _check(data: Mapping[str, Any], rules: list[Rule[Any]]) -> Iterator[tuple[KeyPath, str]]:
    """Every mistake with the key it is at; the rules that have none are appended to ``rules``."""
    if not data:
        yield (), 'the policy is empty; write `default = "deny"` to deny every call'
    for key in data:
        if key not in KEYS:
            yield (key,), f"unknown key {key!r}.{nearest(key, KEYS) or f' The keys are {_listed(KEYS)}.'}"
    if "default" in data and not _is_decision(data["default"]):
        yield ("default",), _wrong_decision("'default'", data["default"])
    tools = data.get("tools", {})
    if not isinstance(tools, dict):
        yield ("tools",), "'tools' must be a table of decisions: write [tools], and below it read_file = \"allow\""
        tools = {}
    for name, decision in tools.items():
        if not _is_decision(decision):
            yield ("tools", name), _wrong_decision(f"the tool {name!r}", decision)
    tables = data.get("rules", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        yield ("rules",), "'rules' must be a list of tables: write [[rules]] above each rule"
        tables = []
    for index, table in enumerate(tables):
        for below, problem in _check_rule(table, rules):
            yield ("rules", index, *below), problem


def _check_rule(table: Mapping[str, Any], rules: list[Rule[Any]]) -> Iterator[tuple[KeyPath, str]]:
    unknown = [key for key in table if key not in RULE_KEYS]
    for key in unknown:
        yield (
            (key,),
            f"unknown key {key!r} in a rule.{nearest(key, RULE_KEYS) or f' The keys are {_listed(RULE_KEYS)}.'}",
        )
    if "decision" not in table:
        yield (), 'a rule needs a decision: add `decision = ` with "allow", "ask" or "deny"'
        return
    if not _is_decision(table["decision"]):
        yield ("decision",), _wrong_decision("a rule", table["decision"])
        return
    given: dict[str, Any] = {}
    rule: Rule[Any] | None = None
    for key in RULE_KEYS:
        if key not in table:
            continue
        given[key] = table[key]
        try:
            rule = Rule(**given)
        except PolicyError as error:
            yield (key,), str(error)
            return
    if rule is not None and not unknown:
        rules.append(rule)


def _is_decision(value: object) -> bool:
    return isinstance(value, str) and value in DECISIONS


def _wrong_decision(what: str, value: object) -> str:
    meant = nearest(value, DECISIONS) if isinstance(value, str) else ""
    return f"the decision for {what} must be allow, ask or deny, not {_shown(value)}{f'.{meant}' if meant else ''}"


def _shown(value: object) -> str:
    """A value as TOML writes it, where Python differs."""
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _listed(keys: tuple[str, ...]) -> str:
    return f"{', '.join(keys[:-1])} and {keys[-1]}"
