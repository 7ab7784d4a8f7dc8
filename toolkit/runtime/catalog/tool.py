"""One tool as a toolkit holds it, with everything that is decided before the first call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from toolkit.guard.fs.consent import Consent
from toolkit.guard.fs.sandbox_fs import SandboxFS
from toolkit.guard.permission import Permission
from toolkit.guard.policy.policy import Verdict
from toolkit.runtime.call.reader import Reader
from toolkit.runtime.catalog.catalog import ToolInfo
from toolkit.runtime.output.keep_text import TextKeeper
from toolkit.runtime.output.message import ToolMessage
from toolkit.runtime.workers import is_async
from toolkit.wire.json_types import JsonObject


@dataclass(slots=True)
class Tool:
    """One tool of a toolkit; made at its first use."""

    info: ToolInfo
    input: Reader
    output: Reader
    refusal: str | None = None
    """Why every call is refused, or None."""
    always: Verdict | None = None
    """The verdict that allows every call, so that no call needs a preview; None if there is none."""
    handler: Callable[..., Any] | None = None
    """Runs it, with its dependencies injected."""
    preview: Callable[..., Any] | None = None
    render: Callable[[Any], str] | None = None
    """The ``preview`` and ``text`` of its handler."""
    keeper: TextKeeper | None = None
    """Keeps its texts; None for a tool that declares ``KEEPS_OUTPUT = False``."""
    granted: frozenset[Permission] = frozenset()
    fs: SandboxFS | None = None
    """The files of the workspace, if its permissions grant them."""
    preview_fs: SandboxFS | None = None
    """The same for previews and approvals, which must see what nobody has approved yet. Deny rules stay."""
    consent: Consent | None = None
    """What its calls may touch without approval, if that is limited; ``fs`` enforces it."""
    message: Callable[..., ToolMessage[Any, Any]] = ToolMessage
    """The constructor of its messages."""
    output_check: str = "off"
    input_schema: Callable[[], JsonObject] | None = None
    """Set if arguments may be repaired."""
    name: str = field(init=False)
    is_async: bool = field(init=False)

    def __post_init__(self) -> None:
        self.name = self.info.name
        self.is_async = self.handler is not None and is_async(self.handler)


NO_SANDBOX: Final = "none (sandbox=false)"
"""The tier that the audit log and results report for a pack that opted out of the sandbox."""
