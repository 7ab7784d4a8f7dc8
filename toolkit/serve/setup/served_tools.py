"""The tools that are served, and how a toolkit over them is made for one session."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolkit.errors import SetupError
from toolkit.guard.permission import ALL_PERMISSIONS, SandboxChoice
from toolkit.serve.setup.presets import ALLOWS, GRANTED, Preset, preset_mode, preset_policy

if TYPE_CHECKING:
    from toolkit.runtime.call.approval import Approver
    from toolkit.serve.setup.shared import SharedState


@dataclass(frozen=True, slots=True)
class ServedTools:
    """A generated package in a workspace, behind a preset or a policy file."""

    module: Any
    """The generated package."""
    workspace: Path
    preset: Preset | None = None
    policy_file: Path | None = None
    sandbox: SandboxChoice = "auto"
    audit: Path | None = None
    state_dir: Path | None = None
    shared: SharedState | None = None
    """What this process has in common with others that serve the same."""

    def __post_init__(self) -> None:
        if (self.preset is None) == (self.policy_file is None):
            raise SetupError(
                "nothing is allowed yet: choose --preset read-only, edit or full, or give --policy FILE"
                if self.preset is None
                else "a preset and a policy file were given; choose one of --preset and --policy"
            )
        if not self.workspace.is_dir():
            raise SetupError(
                f"the workspace {str(self.workspace)!r} is not a folder; give another one with --workspace"
            )

    def load_policy(self) -> Any:
        """The policy as it is now: that of the preset, or what the file holds. Raises ``PolicyError``."""
        if self.preset is not None:
            return preset_policy(self.preset, self.module)
        return self.module.SecurityPolicy.load(self.policy_file)

    def make_context(self, policy: Any, *, approver: Approver | None, session_id: str | None = None) -> Any:
        """The context of one session."""
        preset = self.preset
        return self.module.ToolkitContext(
            self.workspace,
            policy,
            approver=approver,
            permissions=ALL_PERMISSIONS if preset is None else GRANTED[preset],
            mode="workspace-write" if preset is None else preset_mode(preset),
            sandbox=self.sandbox,
            audit=self.audit,
            state_dir=self.state_dir,
            session_id=session_id,
            overrides={} if self.shared is None else self.shared.overrides(),
        )

    def describe_to_clients(self) -> str:
        """The same for clients and their models, who need not know where files of this machine are."""
        if self.preset is not None:
            return f"{ALLOWS[self.preset].capitalize()}."
        return "A policy decides what is allowed; some calls may need the approval of a person."

    def describe(self) -> str:
        """What is allowed, as one sentence for whoever starts the server."""
        if self.preset is not None:
            return f"preset {self.preset}: {ALLOWS[self.preset]}"
        return f"policy {self.policy_file}"
