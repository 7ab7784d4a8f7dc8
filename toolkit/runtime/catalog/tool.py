"""One tool as a toolkit holds it, with everything that is decided before its calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from toolkit.guard.fs.sandbox_fs import SandboxFS
from toolkit.guard.permission import Permission
from toolkit.guard.policy.policy import Verdict
from toolkit.runtime.call.reader import Reader
from toolkit.runtime.catalog.catalog import ToolInfo
from toolkit.runtime.output.keep_text import Keeper
from toolkit.runtime.output.message import ToolMessage
from toolkit.runtime.workers import is_async
from toolkit.wire.json_types import JsonObject


@dataclass(slots=True)
class Tool:
    """One tool as a toolkit holds it: everything that can be decided before a call is decided here."""

    info: ToolInfo
    input: Reader
    output: Reader
    refusal: str | None = None
    """Why no call of it can pass, or None."""
    always: Verdict | None = None
    """What lets every call pass, so that nobody needs to look at what it touches."""
    handler: Callable[..., Any] | None = None
    """What runs it; what is injected into it is taken care of."""
    preview: Callable[..., Any] | None = None
    render: Callable[[Any], str] | None = None
    """The ``preview`` and ``text`` of its handler."""
    keeper: Keeper | None = None
    """Where its texts are kept; None for tools that read what is kept."""
    granted: frozenset[Permission] = frozenset()
    fs: SandboxFS | None = None
    """The workspace's files, if its permissions grant them."""
    message: Callable[..., ToolMessage[Any, Any]] = ToolMessage
    """What makes its messages."""
    output_check: str = "off"
    input_schema: Callable[[], JsonObject] | None = None
    """Set where arguments may be repaired."""
    name: str = field(init=False)
    is_async: bool = field(init=False)

    def __post_init__(self) -> None:
        self.name = self.info.name
        self.is_async = self.handler is not None and is_async(self.handler)


NO_SANDBOX: Final = "none (sandbox=false)"
"""What the audit log and results say in the place of a tier, where a pack opted out of the sandbox."""
