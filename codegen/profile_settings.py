"""``[tool.toolkit.profiles.<name>]``: toolkits with some of the tools, so that calling another one is a type error."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from toolkit.codegen.package.fixed_names import TAKEN_CLASSES
from toolkit.schema.problems import Finding, below, is_misspelt, unknown_key

_POINTER: Final = "/tool/toolkit/profiles"
_KEYS: Final = ("tools", "policy")
_NAME: Final = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class ProfileSettings:
    """One profile: either names of tools, or a policy file, relative to the project."""

    name: str
    tools: tuple[str, ...] = ()
    policy: str | None = None

    @property
    def stem(self) -> str:
        """How the names of its classes begin: ``code_reviewer`` -> ``CodeReviewer``."""
        return "".join(part.capitalize() for part in self.name.split("_"))

    @property
    def module(self) -> str:
        return f"profile_{self.name}"

    @property
    def constant(self) -> str:
        return f"{self.name.upper()}_PROFILE"

    def finding(self, message: str, key: str | None = None) -> Finding:
        """A mistake in its table, or at a key of it."""
        pointer = below(_POINTER, self.name)
        return Finding(message, "pyproject.toml", pointer if key is None else below(pointer, key))

    @property
    def exports(self) -> dict[str, tuple[str, ...]]:
        """What the package exports for it, by module."""
        stem = self.stem
        return {
            self.module: (f"{stem}Context", f"{stem}Policy", f"{stem}Rule", f"{stem}ToolMessage", f"{stem}ToolName"),
            f"{self.module}_facade": (f"{stem}Toolkit", f"{stem}Tools", f"create_{self.name}_toolkit"),
            f"{self.module}_async_facade": (
                f"Async{stem}Toolkit", f"Async{stem}Tools", f"create_async_{self.name}_toolkit",
            ),
        }  # fmt: skip


def read_profiles(tables: object, class_name: object, problems: list[Finding]) -> tuple[ProfileSettings, ...]:
    """The profiles of the settings; adds what is wrong with them to ``problems``."""
    if not isinstance(tables, dict) or not all(isinstance(table, dict) for table in tables.values()):
        message = "'profiles' must be tables: write [tool.toolkit.profiles.reviewer]"
        problems.append(Finding(message, "pyproject.toml", _POINTER))
        return ()
    found: list[ProfileSettings] = []
    owners = dict.fromkeys(TAKEN_CLASSES, "generated code") | {
        str(class_name): "'class'",
        f"Async{class_name}": "'class'",
    }
    for name, table in tables.items():
        mistakes = _mistakes(name, table)
        if not mistakes:
            profile = ProfileSettings(name, _read_names(table), table.get("policy"))
            made = [word for names in profile.exports.values() for word in names]
            taken = next((word for word in made if word in owners), None)
            if taken is not None:
                message = f"the profile {name!r} makes {taken!r}, a name that {owners[taken]} has; choose another name"
                mistakes.append(profile.finding(message))
            owners |= dict.fromkeys(made, f"the profile {name!r}")
            found.append(profile)
        problems += mistakes
    return tuple(found)


def _mistakes(name: str, table: dict[str, Any]) -> list[Finding]:
    at = ProfileSettings(name).finding
    mistakes = [at(unknown_key(key, _KEYS), key) for key in table if key not in _KEYS]
    if not _NAME.fullmatch(name):
        message = f"a profile's name is lower-case words joined by underscores, such as code_reviewer, not {name!r}"
        mistakes.append(at(message))
    misspelt = any(is_misspelt(key, table, _KEYS) for key in _KEYS)
    if ("tools" in table) == ("policy" in table) and not misspelt:
        mistakes.append(at("a profile needs either 'tools', a list of names, or 'policy', a policy file"))
    if table.get("tools") == []:
        mistakes.append(at("'tools' names no tool; name at least one, or remove the profile", "tools"))
    elif "tools" in table and not _read_names(table):
        mistakes.append(at("'tools' must be a list of tool names, each one once", "tools"))
    policy = table.get("policy", "x.toml")
    if not isinstance(policy, str) or not policy.endswith(".toml"):
        mistakes.append(at("'policy' must be the path of a TOML file, relative to the project", "policy"))
    return mistakes


def _read_names(table: dict[str, Any]) -> tuple[str, ...]:
    """The names of tools; empty if they are not a list of different names."""
    tools = table.get("tools", [])
    names = [tools] if isinstance(tools, str) else tools
    if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
        return ()
    return tuple(names) if len(set(names)) == len(names) else ()
