"""``[tool.toolkit.profiles.<name>]``: toolkits with some of the tools, so that calling another one is a type error."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from toolkit.codegen.package.fixed_names import TAKEN_CLASSES
from toolkit.errors import nearest

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


def read_profiles(tables: object, class_name: object, problems: list[str]) -> tuple[ProfileSettings, ...]:
    """The profiles of the settings; adds what is wrong with them to ``problems``."""
    place = "pyproject.toml:/tool/toolkit/profiles"
    if not isinstance(tables, dict) or not all(isinstance(table, dict) for table in tables.values()):
        problems.append(f"'profiles' must be tables: write [tool.toolkit.profiles.reviewer] @ {place}")
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
                mistakes.append(
                    f"the profile {name!r} makes {taken!r}, a name that {owners[taken]} has; choose another name"
                )
            owners |= dict.fromkeys(made, f"the profile {name!r}")
            found.append(profile)
        problems += [text if " @ " in text else f"{text} @ {place}/{name}" for text in mistakes]
    return tuple(found)


def _mistakes(name: str, table: dict[str, Any]) -> list[str]:
    place = f"pyproject.toml:/tool/toolkit/profiles/{name}"
    mistakes = [f"unknown key {key!r}.{nearest(key, _KEYS)} @ {place}/{key}" for key in table if key not in _KEYS]
    if not _NAME.fullmatch(name):
        mistakes.append(
            f"a profile's name is lower-case words joined by underscores, such as code_reviewer, not {name!r}"
        )
    if ("tools" in table) == ("policy" in table):
        mistakes.append("a profile needs either 'tools', a list of names, or 'policy', a policy file")
    if table.get("tools") == []:
        mistakes.append(f"'tools' names no tool; name at least one, or remove the profile @ {place}/tools")
    elif "tools" in table and not _read_names(table):
        mistakes.append(f"'tools' must be a list of tool names, each one once @ {place}/tools")
    policy = table.get("policy", "x.toml")
    if not isinstance(policy, str) or not policy.endswith(".toml"):
        mistakes.append(f"'policy' must be the path of a TOML file, relative to the project @ {place}/policy")
    return mistakes


def _read_names(table: dict[str, Any]) -> tuple[str, ...]:
    """The names of tools; empty if they are not a list of different names."""
    tools = table.get("tools", [])
    names = [tools] if isinstance(tools, str) else tools
    if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
        return ()
    return tuple(names) if len(set(names)) == len(names) else ()
