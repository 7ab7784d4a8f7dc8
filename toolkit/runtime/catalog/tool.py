"""One tool as a toolkit holds it, with everything that is decided before the first call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from toolkit.runtime.output.message import MessageForm, NewMessage, ToolMessage
from toolkit.runtime.workers import is_async

if TYPE_CHECKING:
    from toolkit.guard.files.sandbox_fs import SandboxFS
    from toolkit.guard.fs.consent import Consent
    from toolkit.guard.permission import Permission
    from toolkit.guard.policy.policy import Verdict
    from toolkit.runtime.arguments import Reader
    from toolkit.runtime.catalog.catalog import ToolInfo
    from toolkit.wire.json_types import JsonObject


@dataclass(slots=True)
class Tool:
    """One tool of a toolkit; made at its first use."""

    info: ToolInfo
    input: Reader
    output: Reader
    refusal: str | None = None
    """Why every call is refused, or None."""
    by_name: Verdict | None = None
    """The policy's verdict by the name alone; None if it depends on what a call touches."""
    always: Verdict | None = None
    """The verdict that allows every call, so that no call needs a preview; None if there is none."""
    handler: Callable[..., Any] | None = None
    """Runs it, with its dependencies injected."""
    preview: Callable[..., Any] | None = None
    """The ``preview`` of its handler."""
    granted: frozenset[Permission] = frozenset()
    fs: SandboxFS | None = None
    """The files of the workspace, if its permissions grant them."""
    preview_fs: SandboxFS | None = None
    """The same for previews and approvals, which must see what nobody has approved yet. Deny rules stay."""
    consent: Consent | None = None
    """What its calls may touch without approval, if that is limited; ``fs`` enforces it."""
    message: NewMessage = ToolMessage
    """The constructor of its messages."""
    form: MessageForm = field(default_factory=MessageForm)
    """What the messages with its own output model have in common."""
    output_check: str = "off"
    input_schema: Callable[[], JsonObject] | None = None
    """Set if arguments may be repaired."""
    looks_at_signal: bool = False
    """Whether it is a sync handler of ours, which ends soon after its signal says so."""
    other_form: MessageForm = field(init=False)
    """The same for other values."""
    name: str = field(init=False)
    is_async: bool = field(init=False)

    def __post_init__(self) -> None:
        self.name = self.info.name
        self.is_async = self.handler is not None and is_async(self.handler)
        self.other_form = replace(self.form, to_json=None)


NO_SANDBOX: Final = "none (sandbox=false)"
"""The tier that the audit log and results report for a pack that opted out of the sandbox."""
