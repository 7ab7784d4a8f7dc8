"""What a toolkit is built from, and what one call's handler is given."""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Final, Generic, Literal, TypeAlias, TypeVar, cast, get_args

from toolkit.errors import SetupError
from toolkit.guard.fs import SandboxFS
from toolkit.guard.permission import ALL_PERMISSIONS, PERMISSIONS, Permission
from toolkit.guard.policy import SecurityPolicy
from toolkit.runtime.approval import Approver
from toolkit.runtime.signals import NEVER, CallSignal
from toolkit.wire.content import ContentBlock

NameT = TypeVar("NameT", bound=str)

OutputCheck: TypeAlias = Literal["enforce", "warn", "off"]

logger: Final = logging.getLogger("toolkit")


class ToolkitContext(Generic[NameT]):
    """Where tools work and what they may do. Generated packages export it with their own tool names filled in.

    :param workspace: the directory that is the root of every file tool.
    :param policy: which tools may be called.
    :param approver: asked for calls the policy says ``ask`` to, sync or async; without one they are refused.
    :param permissions: what tools may be granted at all; a tool that needs more is refused.
    :param coerce: repair what models commonly get wrong in arguments and report it in the message's metadata.
    :param output_check: whether an output its schema refuses is an error, a warning in the log, or not looked at.
    :param deadline: seconds one call may take.
    """

    __slots__ = (
        "agent", "approver", "coerce", "deadline", "message_id", "output_check", "permissions", "policy", "session_id",
        "workspace",
    )  # fmt: skip

    def __init__(
        self,
        workspace: str | os.PathLike[str],
        policy: SecurityPolicy[NameT],
        *,
        permissions: Collection[Permission] = ALL_PERMISSIONS,
        approver: Approver | None = None,
        coerce: bool = False,
        output_check: OutputCheck = "enforce",
        deadline: float | None = None,
        session_id: str | None = None,
        message_id: str | None = None,
        agent: str = "main",
    ) -> None:
        unknown = sorted(set(permissions) - ALL_PERMISSIONS)
        if unknown:
            raise SetupError(f"no permission is called {unknown[0]!r}; there are {', '.join(PERMISSIONS)}")
        if output_check not in get_args(OutputCheck):
            raise SetupError(f"output_check is enforce, warn or off, not {output_check!r}")
        check_deadline(deadline)
        if not isinstance(policy, SecurityPolicy):
            raise SetupError(f"a context needs a SecurityPolicy, not {type(policy).__name__}")
        self.workspace: Final = os.fspath(workspace)
        self.policy: Final = policy
        self.permissions: Final = frozenset(permissions)
        self.approver: Final = approver
        self.coerce: Final = coerce
        self.output_check: Final = output_check
        self.deadline: Final = deadline
        self.session_id: Final = secrets.token_hex(16) if session_id is None else session_id
        self.message_id: Final = message_id
        self.agent: Final = agent


def check_deadline(deadline: float | None) -> None:
    """A deadline is a number of seconds above zero."""
    if deadline is None:
        return
    number = isinstance(deadline, int | float) and not isinstance(deadline, bool)
    if not number or not 0 < deadline <= 2**53:
        raise SetupError(f"a deadline is a number of seconds above 0, not {deadline!r}")


class ToolContext:
    """What a handler is given beside its arguments; it holds only what the tool's permissions grant.

    A handler reaches the system through this object and nothing else.
    """

    __slots__ = (
        "_agent_context", "_attachments", "_fs", "_may_have_files", "_metadata", "_title", "call_id", "granted", "signal",
        "tool_name",
    )  # fmt: skip

    def __init__(
        self,
        tool_name: str,
        fs: SandboxFS | None,
        agent_context: ToolkitContext[str],
        call_id: str | None = None,
        signal: CallSignal = NEVER,
        granted: frozenset[Permission] = frozenset(),
        may_have_files: bool = False,
    ) -> None:
        self.tool_name: Final = tool_name
        self.granted: Final = granted
        self._may_have_files = may_have_files
        self.call_id: Final = call_id
        self.signal: Final = signal
        self._fs = fs
        self._agent_context = agent_context
        self._title: str | None = None
        self._metadata: dict[str, object] | None = None
        self._attachments: tuple[ContentBlock, ...] = ()

    @property
    def fs(self) -> SandboxFS:
        """The workspace's files, for tools with the permission ``read`` or ``write``; None where a spec asks for it only
        as optional and it is not granted (``ctx.granted`` tells)."""
        if self._fs is None:
            if self._may_have_files:
                return cast("SandboxFS", None)
            raise SetupError(f"the spec of {self.tool_name!r} asks for no file permission, so its context has no fs")
        return self._fs if self.signal is NEVER else self._fs.bound(self.signal.check)

    @property
    def session_id(self) -> str:
        return self._agent_context.session_id

    @property
    def message_id(self) -> str | None:
        return self._agent_context.message_id

    @property
    def agent(self) -> str:
        return self._agent_context.agent

    @property
    def logger(self) -> logging.Logger:
        """A logger for people; models never see what is written there."""
        return logger.getChild(self.tool_name)

    def now(self) -> datetime:
        """The time, with its zone."""
        return datetime.now(UTC)

    def metadata(self, *, title: str | None = None, **data: object) -> None:
        """Sets the message's title and adds to its metadata; a later value replaces an earlier one."""
        if title is not None:
            self._title = title
        if data:
            self._metadata = {**(self._metadata or {}), **data}

    def attach(self, block: ContentBlock) -> None:
        """Sends media along with the answer."""
        self._attachments = (*self._attachments, block)
