"""The context that a handler gets in addition to its arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast

from toolkit.errors import SetupError, ToolNotAllowed
from toolkit.inject import Dependencies, DependencyScope
from toolkit.runtime.signals import NEVER, CallSignal

if TYPE_CHECKING:
    import logging
    import os

    from toolkit.files.sandbox_fs import SandboxFS
    from toolkit.git import GitGuard
    from toolkit.guard.permission import CommandNetwork, Permission
    from toolkit.guard.process.guard import ProcessGuard
    from toolkit.inject import DependencyKey
    from toolkit.runtime.boundary import CommandBoundary
    from toolkit.runtime.catalog import Tool
    from toolkit.runtime.context import McpCallbacks, ToolkitContext
    from toolkit.runtime.discovery import ToolTexts
    from toolkit.runtime.output_writer import ContainedWriter
    from toolkit.runtime.packs import PackSource
    from toolkit.runtime.programs.sessions import CallPrograms
    from toolkit.runtime.progress import OnProgress
    from toolkit.runtime.registry import StandaloneContext
    from toolkit.runtime.signals import CancelSignal
    from toolkit.runtime.state_directory import PrivateRecords
    from toolkit.runtime.stores.outputs import OutputWriter
    from toolkit.runtime.toolkit import Core
    from toolkit.web import NetGuard
    from toolkit.wire.content import ContentBlock

T = TypeVar("T")


class ToolContext:
    """The context of one call. It holds only what the tool's permissions grant.

    A handler reaches the system only through this object.
    """

    # A call sets the first two, and whatever else it uses: most calls use nothing else, and assigning ten attributes would
    # take longer than checking an output.
    _tool: Tool
    _core: Core
    call_id: str | None = None
    signal: CallSignal = NEVER
    _notify: OnProgress | None = None
    _is_used: bool = False
    """Whether there is anything to release, or to put into the message."""
    _title: str | None = None
    _metadata: dict[str, object] | None = None
    _attachments: tuple[ContentBlock, ...] = ()
    _scope: DependencyScope | None = None
    _writer: ContainedWriter | None = None

    # There is no constructor, because it would take longer than everything else that makes a context.
    def _open(
        self,
        tool: Tool,
        core: Core,
        call_id: str | None = None,
        signal: CallSignal = NEVER,
        notify: OnProgress | None = None,
    ) -> Self:
        """Sets what the call has; returns the context."""
        self._tool = tool
        self._core = core
        if call_id is not None:
            self.call_id = call_id
        if signal is not NEVER:
            self.signal = signal
        if notify is not None:
            self._notify = notify
        return self

    @staticmethod
    def standalone(
        context: ToolkitContext[Any] | str | os.PathLike[str] = ".",
        *,
        packs: Iterable[PackSource | str] = (),
        call_id: str | None = None,
        signal: CancelSignal | None = None,
    ) -> StandaloneContext:
        """A context to call tools with in a unit test, or for a registry. Close it, or use ``with``.

        It collects what tools report: ``title``, ``collected``, ``attachments``.

        :param context: workspace, policy, permissions and so on; a path means a context that allows everything.
        :param packs: the tools that the policy may name.
        :param signal: cancels the calls that are made with the context.

        >>> def count(ctx: ToolContext, path: str = ".") -> int:
        ...     ctx.metadata(title="counting")
        ...     return len(path)
        >>> with ToolContext.standalone(".") as ctx:
        ...     count(ctx), ctx.title
        (1, 'counting')
        """
        from toolkit.runtime.registry import standalone

        return standalone(context, packs, call_id, signal)

    def __repr__(self) -> str:
        words = ", ".join(sorted(self.granted)) or "none"
        call = "" if self.call_id is None else f", call {self.call_id!r}"
        return f"<{type(self).__name__} of {self.tool_name!r}: permissions {words}{call}>"

    @property
    def tool_name(self) -> str:
        return self._tool.name

    # -- the system, as far as the permissions go ----------------------------------------------------------------------

    @property
    def granted(self) -> frozenset[Permission]:
        """The permissions this call has: those its tool requires, and the optional ones the context grants."""
        return self._tool.granted

    @property
    def fs(self) -> SandboxFS:
        """The workspace's files, for tools with the permission ``read`` or ``write``.

        Here and below: None if the spec asks for the permission as an optional one and it is not granted (see
        ``granted``); an error if the spec does not ask for it.
        """
        fs = self._tool.fs
        if fs is None:
            return cast("SandboxFS", self._require_optional("read", "write"))
        return fs if self.signal is NEVER else fs.with_check(self.signal.check)

    @property
    def process(self) -> ProcessGuard:
        """Programs, for tools with the permission ``execute``; deny and ask rules on hosts bind the guarded network.

        Where the context or a rule withholds the permission ``write``, they write nothing but their temporary files. What
        rules on paths deny is hidden from them.
        """
        return self._process_for(self._tool.commands)

    def _process_for(self, boundary: CommandBoundary) -> ProcessGuard:
        if "execute" not in self.granted:
            return cast("ProcessGuard", self._require_optional("execute"))
        process = boundary.apply(self._core.guards.process)
        if self._core.policy._restricts_hosts:
            process = process.with_judge(self._judge_command_request)
        return process if self.signal is NEVER else process.with_check(self.signal.check)

    def _process_of_server(self, tools: Iterable[str]) -> ProcessGuard:
        """The same for the process of a server, which outlives this call: what binds one of its tools binds all of them."""
        boundary = self._tool.commands.join(self._tool.commands)
        for name in tools:
            boundary = boundary.join(self._core.commands_of(name))
        return self._process_for(boundary)

    @property
    def command_network(self) -> CommandNetwork:
        """What commands of this call may reach: what the context says, if the call has the permission ``network``."""
        return self._core.context.command_network if "network" in self.granted else "none"

    @property
    def net(self) -> NetGuard:
        """The network, for tools with the permission ``network``; the policy also judges redirects to other hosts."""
        if "network" not in self.granted:
            return cast("NetGuard", self._require_optional("network"))
        net = self._core.guards.net
        if self._tool.always is None:
            net = net.with_redirect_judge(self._judge_redirect)
        return net if self.signal is NEVER else net.with_check(self.signal.check)

    def _judge_redirect(self, url: str) -> None:
        """Judges a redirect: the call was allowed for the host it named, not for others."""
        policy, info = self._core.policy, self._tool.info
        from toolkit.guard.policy.preview import Preview

        verdict = policy._judge(info.name, info.required, Preview(url=url))
        if verdict.decision != "allow":
            way_out = "" if verdict.decision == "deny" else "; call the tool with that URL to request approval"
            raise ToolNotAllowed(f"the page redirects to {url}, which is not allowed: {verdict.because}{way_out}")

    def _judge_command_request(self, url: str) -> None:
        """Judges a request that a command with the guarded network makes; there is nobody to ask while it runs."""
        verdict = self._core.policy._judge_command_request(self.tool_name, self.granted, url)
        if verdict is not None:
            words = (
                "is denied"
                if verdict.decision == "deny"
                else "needs approval (ask), which a running command cannot get"
            )
            raise ToolNotAllowed(f"the request to {url} {words}: {verdict.because}")

    @property
    def git(self) -> GitGuard:
        """``git status``, hardened, for tools with the permission ``read``; it hides what ``fs`` would not list."""
        if "read" not in self.granted:
            return cast("GitGuard", self._require_optional("read"))
        git = self._core.guards.git.with_deny_of(self.fs)
        return git if self.signal is NEVER else git.with_check(self.signal.check)

    def _require_optional(self, *permissions: Permission) -> None:
        if not any(word in self._tool.info.optional for word in permissions):
            words = " or ".join(map(repr, permissions))
            raise SetupError(
                f"{self.tool_name!r} does not declare the permission {words}, so its handler does not have it: write "
                f"`permissions: [{permissions[0]}]` in its spec, or `@tool(permissions=[{permissions[0]!r}])`"
            )

    @property
    def output_check(self) -> str:
        """What happens to an output that the tool's schema refuses: ``enforce``, ``warn`` or ``off``."""
        return self._tool.output_check

    @property
    def mcp(self) -> McpCallbacks | None:
        """The functions of the context that answer MCP servers."""
        return self._core.context.mcp

    @property
    def _tool_texts(self) -> ToolTexts:
        """The tools of this toolkit that the policy may allow, for models: signatures and search."""
        from toolkit.runtime.discovery import ToolTexts

        return ToolTexts(self._core)

    def _user_records(self, folder: str) -> PrivateRecords:
        """Records of this user that outlive every toolkit, such as the tokens of servers. No tool can reach them."""
        from toolkit.runtime.state_directory import PrivateRecords

        return PrivateRecords(folder, self._core.guards.root_paths)

    # -- the session ---------------------------------------------------------------------------------------------------

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
        """A logger for people; models never see it."""
        import logging

        return logging.getLogger("toolkit").getChild(self.tool_name)

    def now(self) -> datetime:
        """The current time, in UTC."""
        return datetime.now(UTC)

    # -- what the caller gets ------------------------------------------------------------------------------------------

    def metadata(self, *, title: str | None = None, **data: object) -> None:
        """Sets the message's title and adds to its metadata; a later value replaces an earlier one.

        Listeners get it immediately, as progress.
        """
        self._is_used = True
        if title is not None:
            self._title = title
        if data:
            self._metadata = {**(self._metadata or {}), **data}
        self.progress(title=title, **data)

    def progress(self, *, title: str | None = None, **data: object) -> None:
        """Reports something to the listeners of the call; it does not become part of the message."""
        if self._notify is not None:
            from toolkit.runtime.progress import Progress

            self._notify(Progress(self.tool_name, self.call_id, title, data))

    @property
    def _watched(self) -> bool:
        """Whether anybody listens to ``progress``, so that a tool can skip the work."""
        return self._notify is not None

    def attach(self, *blocks: ContentBlock) -> None:
        """Adds media to the answer."""
        self._is_used = True
        self._attachments = (*self._attachments, *blocks)

    @property
    def output(self) -> OutputWriter:
        """Streams an output that is too long for an answer into the output cache; the message then refers to it.

        The model can read only what is written here, so write the whole output, from its first byte.
        """
        if self._writer is None:
            self._is_used = True
            from toolkit.runtime.output_writer import ContainedWriter

            signal = self.signal
            self._writer = ContainedWriter(
                self._core.output_cache, self.session_id, self.tool_name, lambda: signal.remaining
            )
        return self._writer

    def _drop_output(self) -> None:
        """Discards what a failed call streamed."""
        if self._writer is not None:
            self._writer.discard()

    def _release(self, error: BaseException) -> None:
        """Releases what a failed call holds."""
        self._drop_output()
        if self._scope is not None:
            self._scope.close(error)

    @property
    def programs(self) -> CallPrograms:
        """Runs programs that a model wrote, for tools with the permission ``execute``."""
        if "execute" not in self.granted:
            return cast("CallPrograms", self._require_optional("execute"))
        from toolkit.runtime.programs.sessions import CallPrograms

        return CallPrograms(self)

    # -- dependencies --------------------------------------------------------------------------------------------------

    def resolve(self, key: DependencyKey[T]) -> T:
        """The value of a dependency, made at its first use in this call or run, and released when that ends."""
        value: T = self._open_scope().resolve(self._core.planner.node(key))
        return value

    async def resolve_async(self, key: DependencyKey[T]) -> T:
        """Like ``resolve``, for async handlers; keys with an async factory need it."""
        value: T = await self._open_scope().resolve_async(self._core.planner.node(key))
        return value

    @property
    def deps(self) -> Mapping[str, Any]:
        """Dependencies by id: the context's overrides, and the keys that handlers of this toolkit use."""
        self._core.plan_all()  # it has the keys of every handler, also of those that nobody has called
        return Dependencies(self._open_scope(), self._core.planner)

    def _open_scope(self) -> DependencyScope:
        if self._scope is None:
            self._is_used = True
            self._scope = DependencyScope(self, self._core.scope)
        return self._scope
