"""What a toolkit is built from, and what one call's handler is given."""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeAlias, TypeVar, cast, get_args

from toolkit.errors import SetupError
from toolkit.guard.permission import ALL_PERMISSIONS, PERMISSIONS, Mode, Permission, SandboxChoice
from toolkit.guard.policy import SecurityPolicy
from toolkit.runtime.approval import Approver
from toolkit.runtime.signals import NEVER, CallSignal
from toolkit.wire.content import ContentBlock

if TYPE_CHECKING:
    from toolkit.guard.fetch import NetGuard
    from toolkit.guard.fs import SandboxFS
    from toolkit.guard.git import GitGuard
    from toolkit.guard.net import Network
    from toolkit.guard.process import ProcessGuard
    from toolkit.runtime.guards import Guards
    from toolkit.runtime.table import Tool

NameT = TypeVar("NameT", bound=str)
WordT = TypeVar("WordT", bound=str)

OutputCheck: TypeAlias = Literal["enforce", "warn", "off"]

logger: Final = logging.getLogger("toolkit")


class ToolkitContext(Generic[NameT]):
    """Where tools work and what they may do. Generated packages export it with their own tool names filled in.

    :param workspace: the directory that is the root of every file tool.
    :param policy: which tools may be called.
    :param sandbox: which tier commands need; ``auto`` takes the best this machine gives, ``unsafe-none`` none at all.
    :param mode: whether tools and commands may write in the workspace.
    :param read_roots: further directories tools may read, by their absolute paths.
    :param write_roots: further directories tools may read and write.
    :param network: which hosts and addresses may be reached.
    :param approver: asked for calls the policy says ``ask`` to, sync or async; without one they are refused.
    :param permissions: what tools may be granted at all; a tool that needs more is refused.
    :param coerce: repair what models commonly get wrong in arguments and report it in the message's metadata.
    :param output_check: whether an output its schema refuses is an error, a warning in the log, or not looked at.
    :param deadline: seconds one call may take.
    """

    __slots__ = (
        "agent",
        "approver",
        "coerce",
        "deadline",
        "message_id",
        "mode",
        "network",
        "output_check",
        "permissions",
        "policy",
        "read_roots",
        "sandbox",
        "session_id",
        "workspace",
        "write_roots",
    )  # fmt: skip

    def __init__(
        self,
        workspace: str | os.PathLike[str],
        policy: SecurityPolicy[NameT],
        *,
        permissions: Collection[Permission] = ALL_PERMISSIONS,
        approver: Approver | None = None,
        sandbox: SandboxChoice = "auto",
        mode: Mode = "workspace-write",
        read_roots: Sequence[str | os.PathLike[str]] = (),
        write_roots: Sequence[str | os.PathLike[str]] = (),
        network: Network | None = None,
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
        check_deadline(deadline)
        if not isinstance(policy, SecurityPolicy):
            raise SetupError(f"a context needs a SecurityPolicy, not {type(policy).__name__}")
        self.workspace: Final = os.fspath(workspace)
        self.policy: Final = policy
        self.permissions: Final = frozenset(permissions)
        self.approver: Final = approver
        self.sandbox: Final = _one_of("sandbox", sandbox, get_args(SandboxChoice))
        self.mode: Final = _one_of("mode", mode, get_args(Mode))
        self.read_roots: Final = tuple(os.fspath(root) for root in read_roots)
        self.write_roots: Final = tuple(os.fspath(root) for root in write_roots)
        self.network: Final = network
        self.coerce: Final = coerce
        self.output_check: Final = _one_of("output_check", output_check, get_args(OutputCheck))
        self.deadline: Final = deadline
        self.session_id: Final = secrets.token_hex(16) if session_id is None else session_id
        self.message_id: Final = message_id
        self.agent: Final = agent


def _one_of(what: str, word: WordT, words: tuple[str, ...]) -> WordT:
    if word not in words:
        raise SetupError(f"{what} is one of {', '.join(words)}, not {word!r}")
    return word


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

    __slots__ = ("_agent_context", "_attachments", "_guards", "_metadata", "_title", "_tool", "call_id", "signal")

    def __init__(
        self,
        tool: Tool,
        guards: Guards,
        agent_context: ToolkitContext[Any],
        call_id: str | None = None,
        signal: CallSignal = NEVER,
    ) -> None:
        self.call_id: Final = call_id
        self.signal: Final = signal
        self._tool = tool
        self._guards = guards
        self._agent_context = agent_context
        self._title: str | None = None
        self._metadata: dict[str, object] | None = None
        self._attachments: tuple[ContentBlock, ...] = ()

    @property
    def tool_name(self) -> str:
        return self._tool.name

    @property
    def granted(self) -> frozenset[Permission]:
        """The permissions this call has: those its tool requires, and the optional ones the context grants."""
        return self._tool.granted

    @property
    def fs(self) -> SandboxFS:
        """The workspace's files, for tools with the permission ``read`` or ``write``.

        Here and below: None where a spec asks for the permission only as optional and it is not granted (``granted``
        tells); an error where it does not ask at all.
        """
        fs = self._tool.fs
        if fs is None:
            return cast("SandboxFS", self._missing("read", "write"))
        return fs if self.signal is NEVER else fs.bound(self.signal.check)

    @property
    def process(self) -> ProcessGuard:
        """Programs, for tools with the permission ``execute``."""
        if "execute" not in self.granted:
            return cast("ProcessGuard", self._missing("execute"))
        process = self._guards.process
        return process if self.signal is NEVER else process.bound(self.signal.check)

    @property
    def net(self) -> NetGuard:
        """The network, for tools with the permission ``network``."""
        if "network" not in self.granted:
            return cast("NetGuard", self._missing("network"))
        net = self._guards.net
        return net if self.signal is NEVER else net.bound(self.signal.check)

    @property
    def git(self) -> GitGuard:
        """``git status``, hardened, for tools with the permission ``read``."""
        return self._guards.git if "read" in self.granted else cast("GitGuard", self._missing("read"))

    def _missing(self, *permissions: Permission) -> None:
        if not any(word in self._tool.info.optional for word in permissions):
            words = " or ".join(map(repr, permissions))
            raise SetupError(f"the spec of {self.tool_name!r} asks for no permission {words}, so its handler has none")

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
