"""The profiles of a package: which tools each may ever call, and the policy that says so at run time.

A profile has toolkit classes of its own, because a subclass would inherit the overloads of all tools. Its policy is written
into the package, so types and run time agree, and a context can only narrow it (``NarrowedPolicy``).
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from toolkit.codegen.package.rows import Row
from toolkit.codegen.settings import ProfileSettings, Settings
from toolkit.errors import PolicyError, SpecError, nearest
from toolkit.guard.permission import Permission
from toolkit.guard.policy.policy import SecurityPolicy
from toolkit.guard.policy.policy_file import read_policy_file
from toolkit.guard.policy.rule import Rule
from toolkit.schema.problems import Finding


@dataclass(frozen=True, slots=True)
class PlannedProfile:
    """A profile with its tools, in the order of their names, and its policy as a TOML file has it."""

    settings: ProfileSettings
    rows: tuple[Row, ...]
    policy: dict[str, Any]


def plan_profiles(settings: Settings, rows: Sequence[Row]) -> list[PlannedProfile]:
    """Every profile of the settings, or all that is wrong with them."""
    problems: list[Finding] = []
    planned = []
    for profile in settings.profiles:
        policy, mistakes = _read_policy(settings, profile)
        mistakes += _unknown_tools(profile, policy, rows)
        callable_rows = () if mistakes else _callable(policy, rows)
        if not mistakes and not callable_rows:
            mistakes.append(profile.finding("the policy allows no tool, so the profile would be empty", "policy"))
        problems += mistakes
        planned.append(PlannedProfile(profile, callable_rows, policy))
    problems += _model_clashes(planned, rows)
    if problems:
        raise SpecError(problems)
    return planned


def _read_policy(settings: Settings, profile: ProfileSettings) -> tuple[dict[str, Any], list[Finding]]:
    if profile.policy is None:
        return {"default": "deny", "tools": dict.fromkeys(profile.tools, "allow")}, []
    file = settings.root / profile.policy
    if not file.is_file():
        message = f"'policy' names {profile.policy!r}, which is not a file of the project"
        return {}, [profile.finding(message, "policy")]
    try:
        read_policy_file(file, profile.policy)
    except PolicyError as error:
        return {}, [_finding_in_policy(line, profile.policy) for line in str(error).splitlines()]
    return tomllib.loads(file.read_text(encoding="utf-8-sig")), []


def _finding_in_policy(problem: str, path: str) -> Finding:
    """A mistake in a policy file, which is written as ``path:line:column: message``."""
    place, _, message = problem.removeprefix(f"{path}:").partition(": ")
    line, _, column = place.partition(":")
    return Finding(message, path, "", int(line), int(column)) if column else Finding(problem, path)


def _unknown_tools(profile: ProfileSettings, policy: dict[str, Any], rows: Sequence[Row]) -> list[Finding]:
    known = {row.name for row in rows}
    in_rules = (name for rule in policy.get("rules", ()) for name in rule.get("tools", ()))
    named = dict.fromkeys([*policy.get("tools", ()), *in_rules])
    messages = [f"{name!r} is not a tool.{nearest(name, known)}" for name in named if name not in known]
    if profile.policy is not None:
        return [Finding(message, profile.policy) for message in messages]
    return [profile.finding(message, "tools") for message in messages]


def _callable(policy: dict[str, Any], rows: Sequence[Row]) -> tuple[Row, ...]:
    """The tools of which some call may pass: those that the policy does not deny by name."""
    made = _as_policy(policy, [row.name for row in rows if row.mustBeNamed])
    verdicts = ((row, made._admit(row.name, cast("tuple[Permission, ...]", row.required))) for row in rows)
    return tuple(row for row, verdict in verdicts if verdict is None or verdict.decision != "deny")


def _as_policy(policy: dict[str, Any], must_be_named: Iterable[str]) -> SecurityPolicy[str]:
    rules = [Rule[str](**rule) for rule in policy.get("rules", ())]
    made = SecurityPolicy[str](policy.get("default", "deny"), policy.get("tools", {}), rules)
    made._require_names(must_be_named)
    return made


def _model_clashes(profiles: Sequence[PlannedProfile], rows: Sequence[Row]) -> list[Finding]:
    models = {
        name: row.name
        for row in rows
        for name in (*row.imports, *(f"{row.prefix}{s}" for s in ("Args", "Input", "Output")))
    }
    return [
        profile.settings.finding(
            f"the profile makes {word!r}, which is already a model of the tool {models[word]!r}; choose another name"
        )
        for profile in profiles
        for names in profile.settings.exports.values()
        for word in names
        if word in models
    ]
