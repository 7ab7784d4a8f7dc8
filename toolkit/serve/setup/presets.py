"""Presets: policies for those who have not written one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

from toolkit.guard.permission import ALL_PERMISSIONS, Mode, Permission

if TYPE_CHECKING:
    from toolkit.runtime.catalog.catalog import Catalog, ToolInfo

Preset: TypeAlias = Literal["read-only", "edit", "full"]

PRESETS: Final[tuple[Preset, ...]] = get_args(Preset)

GRANTED: Final[Mapping[Preset, frozenset[Permission]]] = {
    "read-only": frozenset({"read"}),
    "edit": frozenset({"read", "write"}),
    "full": ALL_PERMISSIONS,
}
"""A preset allows the tools that need no other permission than these, if they declare any."""

ALLOWS: Final[Mapping[Preset, str]] = {
    "read-only": "tools may read the workspace; nothing is written, no command runs, nothing is fetched",
    "edit": "tools may read and change files of the workspace; no command runs, nothing is fetched",
    "full": "tools may read and change the workspace, run commands in the sandbox and fetch public web pages",
}
"""What a preset allows, for people."""

_OF_A_LOOP: Final = frozenset({"done", "task"})
"""Built-in tools that only make sense in a loop of the toolkit itself."""
_FOR_PROGRAMS: Final = frozenset({"describe_tools", "search_tools"})
"""Built-in tools that tell about tools. Clients list all tools anyway; who writes programs needs the signatures."""
_BUILT_IN: Final = "toolkit.generated."


def allowed_tools(preset: Preset, catalog: Catalog) -> dict[str, Literal["allow"]]:
    """The tools that a preset allows, by name. Everything else is denied."""
    left_out = _OF_A_LOOP if preset == "full" else _OF_A_LOOP | _FOR_PROGRAMS
    return {
        info.name: "allow"
        for info in catalog.tools.values()
        if GRANTED[preset].issuperset(info.required)
        and not (info.name in left_out and is_built_in(info))
        and (preset == "full" or says_what_it_does(info, catalog.annotations(info.name)))
    }


def is_built_in(info: ToolInfo) -> bool:
    return info.module.startswith(_BUILT_IN)


def says_what_it_does(info: ToolInfo, annotations: Mapping[str, Any]) -> bool:
    """Whether anything is known about a tool. One that declares neither permissions nor that it only reads may do anything:
    handlers are code of this process."""
    return is_built_in(info) or bool(info.required) or annotations.get("readOnlyHint") is True


def preset_mode(preset: Preset) -> Mode:
    """Whether the workspace may be written at all."""
    return "read-only" if preset == "read-only" else "workspace-write"


def preset_policy(preset: Preset, module: Any) -> Any:
    """The policy of a preset for the tools of a generated package."""
    return module.SecurityPolicy(default="deny", tools=allowed_tools(preset, module.CATALOG))
