"""The common base of the sync and the async runner: a core, and the options of this view of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, Self, TypeVar

from toolkit.errors import SetupError
from toolkit.runtime.call.offers import allowed_tools, define, describe
from toolkit.runtime.context.toolkit_context import ToolkitContext, check_deadline
from toolkit.runtime.toolkit import Core

if TYPE_CHECKING:
    from toolkit.runtime.approvals import GivenAnswer, SuspendedCall
    from toolkit.runtime.audit.log import Record
    from toolkit.runtime.call.approval import Answer, ApprovalRequest, Reply
    from toolkit.runtime.call.direct import DirectTool
    from toolkit.runtime.catalog.catalog import Catalog
    from toolkit.runtime.catalog.pack import PackSource
    from toolkit.runtime.context.concurrency import Load
    from toolkit.runtime.context.profile import Profile
    from toolkit.runtime.output.message import ToolMessage
    from toolkit.runtime.programs.calls import ProgramOrigin
    from toolkit.runtime.progress import OnProgress
    from toolkit.runtime.signals import CancelSignal
    from toolkit.runtime.signatures.tool_texts import ToolTexts
    from toolkit.runtime.toolkit import PreparedCall
    from toolkit.runtime.tracing.calls import TracedRecord
    from toolkit.wire.call import ToolCall
    from toolkit.wire.definition import ToolDefinition


ToolsT = TypeVar("ToolsT")

NOT_DIRECT: Final = (KeyError, TypeError, ValueError)
"""What is raised where a call is not direct, or its arguments are not plainly right: the whole call path then decides."""


class Options(NamedTuple):
    """The options of one view of a toolkit."""

    deadline: float | None
    signal: CancelSignal | None
    notify: OnProgress | None
    origin: ProgramOrigin | None = None
    """The program that makes the calls."""
    answered: GivenAnswer | None = None
    """The answer to the one call of this view, which was suspended."""


def options_of(view: View) -> Options:
    """The options that the calls of a view have."""
    return view._options


def core_of(view: View) -> Core:
    """The state behind a toolkit, for parts of the package that show or serve its tools."""
    return view._core


class View:
    """The common base of ``Runner`` and ``AsyncRunner``."""

    _own_loop: ClassVar[bool] = True
    _profile: ClassVar[Profile[Any] | None] = None
    _tools: Any = None

    def __init__(self, catalog: Catalog, context: ToolkitContext[Any], packs: Iterable[PackSource | str]) -> None:
        allowed = context if self._profile is None else self._profile.narrow(context)
        try:
            core = Core(catalog, allowed, packs, own_loop=self._own_loop)
        except OSError as error:
            raise SetupError(
                f"the toolkit in {allowed.workspace!r} cannot be opened: the system says {error.strerror or error};"
                " check the workspace and the state directory, and try again"
            ) from error
        self._start(core)

    @classmethod
    def over(cls, core: Core) -> Self:
        """A view of an existing toolkit."""
        view = cls.__new__(cls)
        view._start(core)
        return view

    def _start(self, core: Core) -> None:
        self._core = core
        context = core.context
        notify, on_result = context.on_progress, context.on_result
        if notify is not None or on_result is not None:
            from toolkit.runtime.progress import make_harmless

            notify = notify and make_harmless(notify, "on_progress")
            on_result = on_result and make_harmless(on_result, "on_result")
        self._options = Options(context.deadline, None, notify)
        self._on_result = on_result
        self._find_prepared()

    def _find_prepared(self) -> None:
        """Finds the tools whose calls are prepared: none if calls are reported or limited.

        If calls are recorded, those for which recording is prepared as well.
        """
        options, core = self._options, self._core
        free = (
            options.deadline is None and options.signal is None and options.notify is None and options.answered is None
        )
        self._direct: Mapping[str, DirectTool[Any]] = {}
        self._runs: Mapping[str, Any] = {}
        if free and self._on_result is None and (core.audit is None or options.origin is None):
            self._direct = core.direct if self._own_loop else core.direct_async
            if core.audit is None:
                self._runs = core.runs if self._own_loop else core.runs_async

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {describe(self._core)}>"

    @property
    def load(self) -> Load:
        """How many calls run in threads, wait, and were abandoned at this moment, and how far behind the audit log is."""
        from toolkit.runtime.context.concurrency import Load

        workers, turns, audit = self._core.workers, self._core.turns, self._core.audit
        unwritten = 0 if audit is None else audit.unwritten
        return Load(workers.running, workers.waiting + turns.waiting, workers.abandoned, unwritten)

    def get_allowed_tools(self) -> list[ToolDefinition]:
        """Definitions of the tools that the policy may allow, in catalog order: what to offer a model."""
        return allowed_tools(self._core)

    def signatures(self, names: Iterable[str] | None = None, *, budget: int | None = None) -> str:
        """These tools, or all that the policy may allow, as typed Python functions: text for the prompt of a model.

        The order is that of the names, so the text stays the same until a tool changes. Another tool adds its own lines.

        :param budget: the most characters of the text; tools for which there is no room are shown by less.
        """
        return self._tool_texts().describe(names, budget)

    def search_tools(self, query: str, *, limit: int = 10) -> list[ToolDefinition]:
        """Definitions of the tools that share words with the query, the best first: what to offer when there are many."""
        found = self._tool_texts().search(query, limit)
        return [define(self._core, self._core.catalog.tools[match.name]) for match in found]

    def _tool_texts(self) -> ToolTexts:
        from toolkit.runtime.signatures.tool_texts import ToolTexts

        return ToolTexts(self._core)

    def with_options(self, *, deadline: float | None = None, signal: CancelSignal | None = None) -> Self:
        """A view of this toolkit whose calls have a deadline in seconds or can be cancelled; other options stay.

        The view shares everything with its toolkit: closing one closes the other.
        """
        check_deadline(deadline)
        options = self._options
        return self._with(Options(deadline or options.deadline, signal or options.signal, options.notify))

    def _for_program(self, origin: ProgramOrigin, seconds: float | None, signal: CancelSignal) -> Self:
        """A view for one call of a program, which ends with it. Calls that need not be ended or recorded use this one."""
        options = self._options
        if seconds is None and self._core.audit is None:
            return self
        if seconds is None:
            return self._with(options._replace(origin=origin))
        deadline = seconds if options.deadline is None else min(seconds, options.deadline)
        return self._with(Options(deadline, signal, options.notify, origin))

    def _tools_of(self, kind: Callable[[Any], ToolsT]) -> ToolsT:
        """The tools of this view as methods, made once."""
        if self._tools is None:
            # They call a copy of the view: as a cycle, a toolkit that nobody uses any more would stay open.
            view: Any = copy(self)
            self._tools = kind(view._call_tool)
        tools: ToolsT = self._tools
        return tools

    def _with(self, options: Options) -> Self:
        view = copy(self)
        view._tools = None
        view._options = options
        view._find_prepared()
        return view

    def _tell(self, on_result: Callable[[ToolMessage[Any, Any]], None]) -> None:
        """Passes every message to this function from now on."""
        self._on_result = on_result
        self._find_prepared()
        self._tools = None

    def _deliver(self, message: ToolMessage[Any, Any], record: Record | TracedRecord | None) -> ToolMessage[Any, Any]:
        """Passes a message to ``on_result`` and to the audit log, then returns it."""
        if self._on_result is not None:
            self._on_result(message)
        if record is not None:
            record.end_succeeded(message)
        return message

    def _view_to_resume(self, suspended: SuspendedCall, answer: Answer) -> Self:
        """A view for the one call that was suspended."""
        from toolkit.runtime.approvals import GivenAnswer

        return self._with(self._options._replace(answered=GivenAnswer(answer, suspended)))

    def _take_answer(self, call: PreparedCall, given: GivenAnswer) -> Answer:
        """The answer with which a suspended call is resumed. From here on it is used, whatever happens."""
        from toolkit.runtime.approvals import not_asked, take_answer

        if call.request is None:
            raise not_asked(call.tool.name)
        return take_answer(call.request, call.tool.preview_fs, given, self._core.approvals())

    def _read_reply(self, reply: Reply, request: ApprovalRequest, call: PreparedCall) -> Answer:
        """The answer of an approver; ends the call if there is none yet."""
        from toolkit.runtime.approvals import Suspend, suspend

        if isinstance(reply, Suspend):
            raise suspend(request, reply, self._core.approvals(), call.tool.preview_fs)
        return reply

    def _may_block(self, call: ToolCall) -> bool:
        """Whether a call may wait for something: its tool does not declare otherwise, or more than the handler runs."""
        return call.name not in self._direct or self._core.catalog.tools[call.name].blocking

    def _is_parallel(self, call: ToolCall) -> bool:
        info = self._core.catalog.tools.get(call.name) if isinstance(call.name, str) else None
        return info is not None and info.parallel
