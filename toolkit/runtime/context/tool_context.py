"""What one call's handler is given beside its arguments."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from toolkit.errors import SetupError, ToolNotAllowed
from toolkit.guard.permission import Permission
from toolkit.guard.policy.preview import Preview
from toolkit.inject.key import DependencyKey
from toolkit.inject.scope import Dependencies, Scope
from toolkit.runtime.context.progress import OnProgress, Progress
from toolkit.runtime.context.signals import NEVER, CallSignal
from toolkit.wire.content import ContentBlock

if TYPE_CHECKING:
    import os

    from toolkit.guard.fs.sandbox_fs import SandboxFS
    from toolkit.guard.git import GitGuard
    from toolkit.guard.net.guard import NetGuard
    from toolkit.guard.process.guard import ProcessGuard
    from toolkit.runtime.call.core import Core
    from toolkit.runtime.catalog.pack import PackSource
    from toolkit.runtime.catalog.tool import Tool
    from toolkit.runtime.context.signals import CancelSignal
    from toolkit.runtime.context.toolkit_context import ToolkitContext
    from toolkit.runtime.functions.standalone import StandaloneContext
    from toolkit.runtime.output.cache.store import OutputWriter

T = TypeVar("T")

logger: Final = logging.getLogger("toolkit")


class ToolContext:
    """What a handler is given beside its arguments; it holds only what the tool's permissions grant.

    A handler reaches the system through this object and nothing else.
    """

    __slots__ = (
        "_attachments",
        "_core",
        "_metadata",
        "_notify",
        "_scope",
        "_title",
        "_tool",
        "_writer",
        "call_id",
        "signal",
    )  # fmt: skip

    def __init__(
        self,
        tool: Tool,
        core: Core,
        call_id: str | None = None,
        signal: CallSignal = NEVER,
        notify: OnProgress | None = None,
    ) -> None:
        self.call_id: Final = call_id
        self.signal: Final = signal
        self._tool = tool
        self._core = core
        self._notify = notify
        self._title: str | None = None
        self._metadata: dict[str, object] | None = None
        self._attachments: tuple[ContentBlock, ...] = ()
        self._scope: Scope | None = None
        self._writer: OutputWriter | None = None

    @staticmethod
    def standalone(
        context: ToolkitContext[Any] | str | os.PathLike[str] = ".",
        *,
        packs: Iterable[PackSource | str] = (),
        call_id: str | None = None,
        signal: CancelSignal | None = None,
    ) -> StandaloneContext:
        """A context of your own, to call tools with in a unit test or to give to a registry. Close it, or use ``with``.

        It collects what tools tell: ``title``, ``collected``, ``attachments``.

        :param context: workspace, policy, permissions, overrides and the rest; a path stands for one that allows all.
        :param packs: tools that the policy may name.
        :param signal: ends the calls that are made with it.

        >>> def count(ctx: ToolContext, path: str = ".") -> int:
        ...     ctx.metadata(title="counting")
        ...     return len(path)
        >>> with ToolContext.standalone(".") as ctx:
        ...     count(ctx), ctx.title
        (1, 'counting')
        """
        from toolkit.runtime.functions.standalone import standalone

        return standalone(context, packs, call_id, signal)

    @property
    def tool_name(self) -> str:
        return self._tool.name

    # -- the system, as far as the tool may reach it -----------------------------------------------------------------

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
        process = self._core.guards.process
        return process if self.signal is NEVER else process.bound(self.signal.check)

    @property
    def net(self) -> NetGuard:
        """The network, for tools with the permission ``network``; the policy judges redirects to other hosts, too."""
        if "network" not in self.granted:
            return cast("NetGuard", self._missing("network"))
        net = self._core.guards.net
        if self._tool.always is None:
            net = net.judging(self._judge_redirect)
        return net if self.signal is NEVER else net.bound(self.signal.check)

    def _judge_redirect(self, url: str) -> None:
        """A call was allowed for the host it named; what that host redirects to is another question."""
        policy, info = self._core.context.policy, self._tool.info
        verdict = policy.judge(info.name, info.required, Preview(url=url))
        if verdict.decision != "allow":
            way_out = "" if verdict.decision == "deny" else "; call the tool with that URL itself, to have it approved"
            raise ToolNotAllowed(f"the page redirects to {url}, which is not allowed: {verdict.because}{way_out}")

    @property
    def git(self) -> GitGuard:
        """``git status``, hardened, for tools with the permission ``read``; it shows nothing a deny rule covers."""
        if "read" not in self.granted:
            return cast("GitGuard", self._missing("read"))
        git = self._core.guards.git.hiding(self.fs)
        return git if self.signal is NEVER else git.bound(self.signal.check)

    def _missing(self, *permissions: Permission) -> None:
        if not any(word in self._tool.info.optional for word in permissions):
            words = " or ".join(map(repr, permissions))
            raise SetupError(f"the spec of {self.tool_name!r} asks for no permission {words}, so its handler has none")

    @property
    def output_check(self) -> str:
        """What becomes of an output that the tool's schema refuses: ``enforce``, ``warn`` or ``off``."""
        return self._tool.output_check

    # -- whose call this is --------------------------------------------------------------------------------------------

    @property
    def session_id(self) -> str:
        return self._core.context.session_id

    @property
    def message_id(self) -> str | None:
        return self._core.context.message_id

    @property
    def agent(self) -> str:
        return self._core.context.agent

    @property
    def logger(self) -> logging.Logger:
        """A logger for people; models never see what is written there."""
        return logger.getChild(self.tool_name)

    def now(self) -> datetime:
        """The time, with its zone."""
        return datetime.now(UTC)

    # -- what the caller is told ---------------------------------------------------------------------------------------

    def metadata(self, *, title: str | None = None, **data: object) -> None:
        """Sets the message's title and adds to its metadata; a later value replaces an earlier one.

        Who watches the call hears of it at once.
        """
        if title is not None:
            self._title = title
        if data:
            self._metadata = {**(self._metadata or {}), **data}
        self.progress(title=title, **data)

    def progress(self, *, title: str | None = None, **data: object) -> None:
        """Tells who watches the call something that is of no use once it is over."""
        if self._notify is not None:
            self._notify(Progress(self.tool_name, self.call_id, title, data))

    @property
    def watched(self) -> bool:
        """Whether somebody listens to ``progress``: to leave out the work of telling nobody."""
        return self._notify is not None

    def attach(self, *blocks: ContentBlock) -> None:
        """Sends media along with the answer."""
        self._attachments = (*self._attachments, *blocks)

    @property
    def output(self) -> OutputWriter:
        """Streams more than an answer can hold into the output cache; the message then refers to it.

        What is written here is all the model can get to beside the answer: begin with its first byte.
        """
        if self._writer is None:
            self._writer = self._core.output_cache().writer(self.session_id, tool=self.tool_name)
        return self._writer

    def _drop_output(self) -> None:
        """The call failed: nobody will be told of what was streamed."""
        if self._writer is not None:
            self._writer.discard()

    # -- dependencies --------------------------------------------------------------------------------------------------

    def resolve(self, key: DependencyKey[T]) -> T:
        """The value of a dependency, made at the first use in this call or run; given back when that ends."""
        value: T = self._open_scope().resolve(self._core.planner.node(key))
        return value

    async def resolve_async(self, key: DependencyKey[T]) -> T:
        """As ``resolve``, for async handlers; keys with an async factory need it."""
        value: T = await self._open_scope().resolve_async(self._core.planner.node(key))
        return value

    @property
    def deps(self) -> Mapping[str, Any]:
        """Dependencies by id: the context's overrides, and keys that this toolkit's handlers have asked for."""
        return Dependencies(self._open_scope(), self._core.planner)

    def _open_scope(self) -> Scope:
        if self._scope is None:
            self._scope = Scope(self, self._core.scope)
        return self._scope
