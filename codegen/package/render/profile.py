"""The modules of a profile: its names, types and policy, and its two toolkits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from toolkit.codegen.package.facade import ASYNC, SYNC, Surface, render_facade
from toolkit.codegen.package.modules import header, model_imports, render_message_union
from toolkit.codegen.package.render.literal import literal
from toolkit.codegen.package.render.signatures import ToolkitSignatures

if TYPE_CHECKING:
    from toolkit.codegen.package.profiles import PlannedProfile


def render_profile(profile: PlannedProfile, package: str, packs: Sequence[str]) -> dict[str, str]:
    """The files of one profile."""
    module, surface = profile.settings.module, Surface(f"{profile.settings.stem}Toolkit", profile.settings)
    return {
        f"{module}.py": _render_types(profile, package),
        f"{module}_facade.py": render_facade(profile.rows, package, surface, packs, SYNC),
        f"{module}_async_facade.py": render_facade(profile.rows, package, surface, packs, ASYNC),
    }


def profile_signatures(profile: PlannedProfile) -> ToolkitSignatures:
    """The table of one profile for the mypy plugin."""
    stem = profile.settings.stem
    return ToolkitSignatures(f"{stem}Toolkit", profile.rows, profile.settings.module, f"{stem}ToolMessage")


def _render_types(profile: PlannedProfile, package: str) -> str:
    stem, rows = profile.settings.stem, profile.rows
    literals = [f"Literal[{literal(row.name)}]" for row in rows]
    union = "    from typing import Union\n\n" if len(rows) > 1 else ""
    return f"""{header(f"The profile {profile.settings.name!r}: its tools, its types and its policy.", future=False)}
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from toolkit import generated_support as support

{stem}ToolName: TypeAlias = Literal[{", ".join(literal(row.name) for row in rows)}]
{stem}ToolNames: TypeAlias = tuple[{", ".join(literals)}]
{stem}Rule: TypeAlias = support.Rule[{stem}ToolName]
{stem}Policy: TypeAlias = support.SecurityPolicy[{stem}ToolName]
{stem}Context: TypeAlias = support.ToolkitContext[{stem}ToolName]

if TYPE_CHECKING:
{union}    from toolkit.generated_support import ToolMessage

{model_imports(rows, package, ("Output",))}

    {stem}ToolMessage: TypeAlias = {render_message_union(rows)}
else:
    {stem}ToolMessage = support.ToolMessage

{profile.settings.constant}: Final[support.Profile[{stem}ToolNames]] = support.Profile(
    {literal(profile.settings.name)},
    {literal(tuple(row.name for row in rows))},
    {_render_policy(profile)},
)
"""


def _render_policy(profile: PlannedProfile) -> str:
    policy = profile.policy
    rules = "".join(
        "            support.Rule[str](" + ", ".join(f"{key}={literal(value)}" for key, value in rule.items()) + "),\n"
        for rule in policy.get("rules", ())
    )
    parts = [f"default={literal(policy.get('default', 'deny'))}", f"tools={literal(policy.get('tools', {}))}"]
    parts += [f"rules=[\n{rules}        ]"] if rules else []
    return "support.SecurityPolicy[str](\n" + "".join(f"        {part},\n" for part in parts) + "    )"
