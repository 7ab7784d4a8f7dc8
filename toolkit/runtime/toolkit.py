"""The state of one toolkit: its tools, what decides about their calls, and what it holds open.

``Core`` prepares each tool when it is first used (``catalog.Tool``): what cannot change between its calls is decided then.
``prepare`` and ``settle`` are the stages of a call up to the run, which ``sync.Runner`` and ``async_.AsyncRunner`` share;
``View``, their common base, has the options of one view of a toolkit.
"""

from __future__ import annotations

import weakref
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, Self, TypeVar, cast

from pydantic import BaseModel

from toolkit.errors import PolicyError, SetupError, ToolFailed, ToolNotAllowed, nearest
from toolkit.inject import DependencyScope, Given, Planner
from toolkit.runtime import path
from toolkit.runtime.boundary import NOTHING_TO_RUN, Boundary, CommandBoundary
from toolkit.runtime.catalog import NO_SANDBOX, Catalog, Tool, ToolInfo
from toolkit.runtime.context import ToolkitContext, check_deadline
from toolkit.runtime.guards import Guards
from toolkit.runtime.late_imports import guard_imports
from toolkit.runtime.output import MessageForm, TextKeeper, json_writer
from toolkit.runtime.packs import CodeTool, PackSource, is_own_sync_handler, join_packs, load_pack
from toolkit.runtime.path import GIVEN_PARAMETERS, inject
from toolkit.runtime.tool_context import ToolContext
from toolkit.runtime.touches import (
    as_approved,
    before_approval,
    judge_named,
    judge_writes,
    locate_paths,
    preview_call,
    record_touched,
    touched_kinds,
    with_asked,
)
from toolkit.runtime.turns import CallLimits
from toolkit.runtime.workers import LoopThread, Workers
from toolkit.schema.models import ToolModel

if TYPE_CHECKING:
    from toolkit.files.sandbox_fs import HoldLock, SandboxFS
    from toolkit.guard.files.consent import LocatedPath
    from toolkit.guard.permission import Permission
    from toolkit.guard.policy.policy import BoundRule, SecurityPolicy, Verdict
    from toolkit.guard.policy.preview import Preview
    from toolkit.runtime.approvals import (
        Answer,
        ApprovalRequest,
        GivenAnswer,
        Remembered,
        Reply,
        Respond,
        SuspendedCall,
    )
    from toolkit.runtime.arguments import Reader, Repair
    from toolkit.runtime.audit.log import AuditLog, Record
    from toolkit.runtime.context import Profile
    from toolkit.runtime.discovery import ToolTexts
    from toolkit.runtime.functions import FunctionTool
    from toolkit.runtime.output import ToolMessage
    from toolkit.runtime.packs import HandlerParts, Handlers
    from toolkit.runtime.programs.host import ProgramOrigin
    from toolkit.runtime.progress import OnProgress
    from toolkit.runtime.remembered import ApprovalMemory, Bound, RememberedApproval, Scope
    from toolkit.runtime.signals import CallSignal, CancelSignal
    from toolkit.runtime.stores.approvals import ApprovalStore
    from toolkit.runtime.stores.outputs import OutputCache
    from toolkit.runtime.tracing import TracedCalls, TracedRecord
    from toolkit.runtime.turns import Concurrency, Load
    from toolkit.wire.call import ToolCall
    from toolkit.wire.definition import ToolDefinition

_GIVEN: Final[dict[type, Given]] = {ToolContext: Given("call"), ToolkitContext: Given("run")}


class PreparedCall:
    """A call that the policy allows, or that must be approved first."""

    # Like a context, it gets only what a call has: most calls have neither repairs nor a request nor a record.
    tool: Tool
    handler: Callable[..., Any]
    arguments: BaseModel
    """Validated; replaced if the approver edits them."""
    verdict: Verdict | None = None
    """None where the policy says the same of every call of the tool: ``tool.always``."""
    repairs: Sequence[Repair] = ()
    """What was repaired in the arguments."""
    request: ApprovalRequest | None = None
    """What must be approved before the call runs."""
    bound: Bound | None = None
    """What that approval covers if it is remembered."""
    remembered: Remembered | None = None
    """The answer, if it was given before."""
    is_kept: bool = False
    """Whether the answer has been remembered."""
    places: tuple[LocatedPath, ...] | None = None
    """Where the paths lead that the request shows."""
    shown_fs: SandboxFS | None = None
    """What tells whether they changed since: the files of the tool or, if its command names paths, of the workspace."""
    record: Record | TracedRecord | None = None
    """Its lines in the audit log, and its span."""


class Resources:
    """What a toolkit holds open, to be closed once. It does not hold the toolkit."""

    def __init__(
        self,
        context: ToolkitContext[Any],
        packages: Sequence[str],
        loop: LoopThread,
        programs: CommandBoundary,
        *,
        is_async: bool,
    ) -> None:
        limits = context.concurrency
        self.is_async: Final = is_async
        self.loop: Final = loop
        self.planner: Final = Planner(context.overrides, _GIVEN)
        self.scope: Final = DependencyScope(context)
        self.output_cache: Final = _make_cache_opener(self.scope, self.planner)
        self.guards: Final = Guards(context, packages, programs, self._find_file_locks(context))
        self.workers: Final = Workers(limits.threads, limits.waiting)
        self.turns: Final = CallLimits(limits)
        self.audit: AuditLog | TracedCalls | None = None
        self.is_closed = False
        self.close_once: weakref.finalize[..., Any]
        """Closes them: called by whoever closes the toolkit, or when nobody uses it any more."""

    def _find_file_locks(self, context: ToolkitContext[Any]) -> HoldLock | None:
        """What the file tools hold around every change, if the application has given a store of locks."""
        if "write_locks" not in context.overrides:
            return None
        from toolkit.runtime.stores.keys import WRITE_LOCKS
        from toolkit.runtime.stores.locks import FileLocks

        scope, node = self.scope, self.planner.node(WRITE_LOCKS)
        return FileLocks(lambda: scope.resolve(node)).hold

    def close(self) -> None:
        self.is_closed = True
        try:
            if self.scope.needs_loop:
                self.loop.submit(self.scope.close_async())[0].result()
            else:
                self.scope.close()
        except BaseException:
            # The scope has logged it; the rest must be closed as well.
            pass
        self.loop.close()
        self.workers.close()
        self.guards.close()
        if self.audit is not None:
            self.audit.close()


class _Explain:
    """What a policy asks of its toolkit, which it must not keep alive."""

    core: weakref.ref[Core] | None = None

    def __call__(self, name: str, arguments: Mapping[str, Any]) -> Verdict:
        return self._living()._explain(name, arguments)

    def bindings(self) -> tuple[BoundRule, ...]:
        from toolkit.runtime.bindings import list_bindings

        return list_bindings(self._living())

    def _living(self) -> Core:
        core = None if self.core is None else self.core()
        if core is None:
            raise PolicyError("the toolkit of this policy no longer exists; build another one")
        return core


class Core:
    """The tools of one toolkit, and what decides about their calls; the views made with ``with_options`` share it."""

    def __init__(
        self,
        catalog: Catalog,
        handlers: Handlers,
        context: ToolkitContext[Any],
        policy: SecurityPolicy[Any],
        resources: Resources,
        audit: AuditLog | TracedCalls | None,
    ) -> None:
        self.catalog: Final = catalog
        self.handlers: Final = handlers
        self.context: Final = context
        self.policy: Final = policy
        """The policy of the context, as it applies to the tools of this toolkit."""
        self.boundary: Final = Boundary(context, policy)
        self.audit: Final = audit
        self.resources: Final = resources
        self.loop: Final = resources.loop
        self.planner: Final = resources.planner
        self.scope: Final = resources.scope
        self.output_cache: Final = resources.output_cache
        self.guards: Final = resources.guards
        self.workers: Final = resources.workers
        self.turns: Final = resources.turns
        self.tools: Final[dict[str, Tool]] = {}
        """Those that were used, prepared for their calls."""
        self._guests: Final[dict[object, Core]] = {}

    @classmethod
    def open(
        cls,
        catalog: Catalog,
        context: ToolkitContext[Any],
        packs: Iterable[PackSource | str],
        *,
        own_loop: bool = True,
    ) -> Core:
        """The state of a new toolkit. It is closed when nobody uses it any more, if nobody closes it before."""
        if isinstance(packs, str | PackSource):
            raise SetupError("packs must be a list: write packs=[...]")
        loop = LoopThread()
        load_tool = partial(_load_tool, context, loop if own_loop else None)
        joined, handlers = join_packs(catalog, map(load_pack, packs), load_tool)
        tools, roots = joined.tools.values(), [context.workspace, *context.read_roots, *context.write_roots]
        kinds = {info.name: _touched_kinds(info, handlers) for info in tools}
        must_be_named = [info.name for info in tools if info.must_be_named]
        explain = _Explain()
        policy = context.policy._attach(kinds, explain, roots, joined.hints, catalog.package, must_be_named)
        protect_imports(context, policy, catalog, tools)
        shown = Boundary(context, policy).workspace_of_programs(tools)
        _refuse_unknown_limits(context.concurrency, joined.tools)
        resources = Resources(context, joined.packages, loop, shown, is_async=not own_loop)
        _check_injection(handlers, resources.planner)
        audit = resources.audit = _open_records(context, joined, roots, in_loop=not own_loop)
        core = cls(joined, handlers, context, policy, resources, audit)
        explain.core = weakref.ref(core)
        resources.close_once = weakref.finalize(core, resources.close)
        return core

    @property
    def is_async(self) -> bool:
        return self.resources.is_async

    def approvals(self) -> ApprovalStore:
        """The store of suspended calls, opened at its first use."""
        from toolkit.runtime.stores.keys import APPROVAL_STORE

        store: ApprovalStore = self.scope.resolve(self.planner.node(APPROVAL_STORE))
        return store

    # -- the call path up to the run -------------------------------------------------------------------------------

    def resolve(self, name: str) -> Tool:
        """The tool of that name; its models are imported at the first call of it."""
        try:
            return self.tools[name]
        except (KeyError, TypeError):
            return self._first_use(name)

    def prepare(
        self,
        name: str,
        arguments: object,
        call_id: str | None,
        is_text: bool,
        origin: ProgramOrigin | None = None,
    ) -> PreparedCall:
        """resolve -> admit -> read the arguments -> authorize: the stages before the run, for every entry point."""
        call = PreparedCall()
        if self.audit is not None:
            call.record = self.audit.begin(name, call_id, origin)
        try:
            if self.resources.is_closed:
                raise path.closed(name)
            try:  # ``resolve``
                tool = self.tools[name]
            except (KeyError, TypeError):
                tool = self._first_use(name)
            call.tool = tool
            if tool.refusal is not None:
                raise path.not_admitted(tool)
            call.arguments, call.repairs = path.read_arguments(tool, arguments, is_text)
            if tool.always is None:
                self._authorize(call, call_id)
            if tool.handler is None:
                raise path.no_handler(tool)
            call.handler = tool.handler
        except BaseException as error:
            # An OSError: for example no descriptor is left to import what the call needs.
            failed = path.as_toolkit_error(error, name) if isinstance(error, OSError) else error
            try:
                if call.record is not None:
                    call.record.end_failed(failed, arguments)
                if failed is error:
                    raise
                raise failed from error
            finally:
                del failed  # its traceback has this frame: as a cycle, an unused toolkit would stay open
        return call

    def settle(self, call: PreparedCall, answer: Answer | None, ctx: ToolContext) -> Respond | None:
        """Applies what the approver answered and records the decision; raises if the call may not run.

        Returns the answer if the approver answered in the place of the tool.
        The context of the call gets the files that were approved.
        """
        if call.record is not None:
            verdict = call.verdict or call.tool.always
            assert verdict is not None  # `prepare` judges every call that has no verdict at once
            call.record.note_decision(verdict, self.tier_of(call.tool), answer)
        if call.request is not None:
            from toolkit.runtime.approvals import Respond

            if isinstance(answer, Respond):
                return answer
            call.arguments, places = self._approved_arguments(call, call.request, answer)
            ctx._tool = as_approved(call.tool, places)
        if call.record is not None:
            if call.tool.always is not None and call.record.notes_touched:
                self._note_touched(call)
            call.record.start(call.tool, call.arguments, ctx.signal.check)
        return None

    def _note_touched(self, call: PreparedCall) -> None:
        """Tells the audit log what a call touches about which the policy need not know that."""
        tool = call.tool
        if call.record is None or (tool.preview is None and not tool.info.resources):
            return
        with suppress(Exception):  # what a handler cannot say before it runs is not known
            preview = preview_call(tool, call.arguments, ToolContext()._open(before_approval(tool), self))
            call.record.note_touched(record_touched(tool, preview), call.arguments)

    def _authorize(self, call: PreparedCall, call_id: str | None) -> None:
        """Applies the rules on what the call touches, and makes the request that must be approved before it runs."""
        tool, args = call.tool, call.arguments
        try:
            preview = preview_call(tool, args, ToolContext()._open(before_approval(tool), self, call_id))
        except BaseException as error:
            path.reraise(error, tool.name)
        asked = tool.commands.find_asked(self.guards.fs, preview)
        places = locate_paths(tool.preview_fs, preview)
        call.verdict = verdict = judge_named(self._judge(tool, preview, places), asked)
        if verdict.decision == "ask":
            places, preview = with_asked(places, preview, asked)
        if call.record is not None and call.record.notes_touched:
            call.record.note_touched(record_touched(tool, preview, places), args)
        if verdict.decision == "allow":
            return
        if verdict.decision == "deny" or self.context.approver is None:
            raise path.not_allowed(tool.name, verdict)
        from toolkit.runtime.approvals import request_approval

        call.bound = bound = self._bind(tool, args, preview, places)
        if self.recall(call) is None:
            try:
                preview = preview.with_diff()
            except BaseException as error:
                path.reraise(error, tool.name)
        call.places = places
        call.shown_fs = tool.preview_fs or (self.guards.fs if asked else None)
        call.arguments = args.model_copy(deep=True)  # the caller may still hold what is nested in them
        call.request = request_approval(
            tool.name,
            call.arguments,
            preview,
            verdict.because,
            call.shown_fs,
            places or (),
            call_id=call_id,
            session_id=self.context.session_id,
            annotations=self.catalog.annotations(tool.name),
            bound=bound,
        )

    def _bind(self, tool: Tool, args: BaseModel, preview: Preview, places: tuple[LocatedPath, ...] | None) -> Bound:
        """What an approval of this call would cover if it were remembered."""
        from toolkit.runtime.remembered import bind

        context, tier = self.context, self.tier_of(tool)
        sandbox = () if tier is None else (tier, context.command_network, context.git, context.mode)
        return bind(tool, args, preview, places, self.guards.fs, self._memory.workspace, sandbox)

    @cached_property
    def _memory(self) -> ApprovalMemory:
        from toolkit.runtime.remembered import ApprovalMemory

        context = self.context
        roots = (context.workspace, *context.read_roots, *context.write_roots)
        return ApprovalMemory(context.remembered, self.guards.identify_workspace(), roots)

    def recall(self, call: PreparedCall) -> Remembered | None:
        """The answer to a call about which the policy asks, if it is remembered by now."""
        assert call.bound is not None and call.verdict is not None
        known = self._memory.find(call.bound)
        if known is not None:
            from toolkit.runtime.approvals import Remembered

            call.verdict, call.remembered = as_remembered(call.verdict, known), Remembered(approval=known)
        return call.remembered

    def remember(self, call: PreparedCall, scope: Scope) -> None:
        """Remembers an approval that was just given, unless the request said that it cannot be; raises if that fails."""
        from toolkit.runtime.approvals import check_unchanged

        assert call.request is not None and call.bound is not None
        if call.bound.words:
            check_unchanged(call.request, call.shown_fs)
            context = self.context
            self._memory.keep(call.tool.name, call.bound, scope, agent=context.agent, session=context.session_id)

    def _judge(self, tool: Tool, preview: Preview, places: tuple[LocatedPath, ...] | None) -> Verdict:
        verdict = tool.by_name or self.policy._judge(tool.name, tool.info.required, preview, places)
        return judge_writes(verdict, tool.consent, places or ())

    def _approved_arguments(
        self, call: PreparedCall, request: ApprovalRequest, answer: Answer | None
    ) -> tuple[BaseModel, tuple[LocatedPath, ...] | None]:
        """The arguments to run with, and the places that were approved with them.

        An edit is validated, and may not touch what the policy denies.
        """
        from toolkit.runtime.approvals import Approve, Deny, Edit, check_unchanged, denial

        tool = call.tool
        if isinstance(answer, Approve):
            check_unchanged(request, call.shown_fs)
            return request.arguments, call.places
        if isinstance(answer, Edit):
            check_unchanged(request, call.shown_fs)  # who edits has seen the files as they were
            args, _ = path.validate(tool, path.as_object(tool, answer.arguments, is_text=False))
            preview = preview_call(tool, args, ToolContext()._open(before_approval(tool), self, request.call_id))
            places = locate_paths(tool.preview_fs, preview)
            verdict = self.policy._judge(tool.name, tool.info.required, preview, places)
            if call.record is not None and call.record.notes_touched:
                call.record.note_touched(record_touched(tool, preview, places), args)
            if verdict.decision == "deny":
                raise path.not_allowed(tool.name, verdict)
            return args, places
        if isinstance(answer, Deny):
            raise denial(request, answer)
        raise ToolNotAllowed(
            f"the approver returned {type(answer).__name__}, which is not an answer;"
            " it must return Approve(), Deny(...), Edit(...) or Respond(...)",
            tool_name=tool.name,
        )

    def _explain(self, name: str, arguments: Mapping[str, Any]) -> Verdict:
        """The verdict on a call, for ``policy.explain``."""
        tool = self.resolve(name)
        args, _ = path.validate(tool, path.as_object(tool, arguments, is_text=False))
        preview = preview_call(tool, args, ToolContext()._open(before_approval(tool), self))
        places = locate_paths(tool.preview_fs, preview)
        asked = tool.commands.find_asked(self.guards.fs, preview)
        verdict = judge_named(self._judge(tool, preview, places), asked)
        from toolkit.guard.policy.touched import list_considered, list_remembered
        from toolkit.runtime.bindings import find_unbound

        considered = list_considered(self.policy, verdict, tool.name, tool.info.required, preview, places)
        if verdict.decision == "ask":
            places, preview = with_asked(places, preview, asked)
            known = self._memory.find(self._bind(tool, args, preview, places))
            if known is not None:
                verdict = as_remembered(verdict, known)
                considered = list_remembered(verdict, considered)
        return replace(verdict, considered=considered, unbound=find_unbound(self, tool.name))

    def _first_use(self, name: str) -> Tool:
        info = self.catalog.tools.get(name) if isinstance(name, str) else None
        if info is None:
            original = self.catalog.aliases.get(name) if isinstance(name, str) else None
            if original is None:
                raise path.not_found(name, self.catalog.tools)
            return self.resolve(original)
        refusal, always = self.admission(info)
        parts = self.handlers.get(name)
        granted = self.boundary.granted(info)
        kinds = _touched_kinds(info, self.handlers)
        fs, consent = self.boundary.files(self.guards.fs, name, info.required, granted, kinds)
        commands = self.boundary.commands(name, granted)
        place = self.handlers.place(name)
        if place != "toolkit":
            commands = commands.join(NOTHING_TO_RUN)  # what no approval lifts
        if consent is not None and "path" in kinds and any(rule.only_writes for rule in consent.rules):
            always = None  # a call that would change such a file must be recognised
        if commands.asking:
            always = None  # and a command that names what it may open only after approval
        output = self.catalog.reader(info, "Output")
        tool = Tool(
            info=info,
            refusal=refusal,
            by_name=self.policy._admit(name, info.required),
            always=always,
            handler=parts and inject(parts.run, self.planner, self.workers, blocking=info.blocking),
            preview=parts and parts.preview,
            place=place,
            granted=granted,
            commands=commands,
            fs=fs if fs is None or consent is None else fs.with_consent(consent),
            preview_fs=fs,
            consent=consent,
            output_check=self.context.output_check,
            input_schema=partial(self.catalog.input_schema, name) if self.context.coerce else None,
            # Ours do, but what an application puts in the place of a store may wait for anything.
            looks_at_signal=parts is not None and not self.context.overrides and is_own_sync_handler(parts.run),
            turns=self.turns if self.turns.concern(name) else None,
            message=self.catalog.message(info),
            form=self._form(info, parts, output),
            input=self.catalog.reader(info, "Input"),
            output=output,
        )
        self.tools[name] = tool
        return tool

    def _form(self, info: ToolInfo, parts: HandlerParts[..., Any] | None, output: Reader) -> MessageForm:
        keeps = parts is None or parts.keeps_output
        keeper = TextKeeper(self.output_cache, self.context.session_id, info.name) if keeps else None
        if parts is not None and parts.text is not None:
            return MessageForm(parts.text, keeper)
        # The content of a message is known to be the output model only if outputs are checked.
        model = output.model
        is_known = self.context.output_check == "enforce"
        if not is_known or not issubclass(model, ToolModel) or model.__carries_content__:
            return MessageForm(None, keeper)
        return MessageForm(None, keeper, json_writer(model))

    def commands_of(self, name: str) -> CommandBoundary:
        """What binds the commands of a tool, which this toolkit may not list; nothing is imported for it."""
        info = self.catalog.tools.get(name)
        return self.boundary.commands(name, {"execute"} if info is None else self.boundary.granted(info))

    def with_guest(self, tool: FunctionTool[..., Any], granted: frozenset[Permission]) -> Core:
        """A core that runs a tool with at most these permissions: this one if it has the tool, else one that has only this
        tool and shares everything that is held open."""
        is_known = self.catalog.function(tool.name) is tool
        if granted >= self.context.permissions and is_known:
            return self
        key = tool, granted
        guest = self._guests.get(key)
        if guest is None:
            catalog, handlers = join_packs(Catalog(self.catalog.package, ()), [tool.as_pack()], lambda _: tool)
            _check_injection(handlers, self.planner)
            context = self.context.narrow(granted, session_id=self.context.session_id, agent=self.context.agent)
            policy = self.policy if is_known else self.policy._for_unlisted_tools()
            audit = self.audit if context.tracing is None else cast("TracedCalls", self.audit).for_catalog(catalog)
            guest = self._guests[key] = Core(catalog, handlers, context, policy, self.resources, audit)
        return guest

    def plan_all(self) -> None:
        """Finds what every handler needs; imports those that are not imported yet."""
        _plan_all(self.handlers, self.planner)

    def admission(self, info: ToolInfo) -> tuple[str | None, Verdict | None]:
        """Why every call of the tool is refused, or None; and the verdict that allows every call, or None."""
        missing = [word for word in info.required if word not in self.context.permissions]
        if missing:
            return f"{info.name!r} needs the permission {missing[0]!r}, which this context does not grant", None
        verdict = self.policy._admit(info.name, info.required)
        may_be_asked = self.context.approver is not None
        if verdict is not None and (verdict.decision == "deny" or verdict.decision == "ask" and not may_be_asked):
            return path.not_allowed(info.name, verdict).message, None
        # Last, because finding the sandbox of this machine starts a process.
        if (
            "execute" in info.required
            and self.handlers.is_sandboxed(info.name)
            and not self.guards.process.choice.runs_commands
        ):
            return f"{info.name!r} cannot run here: {self.guards.process.choice.reason}", None
        return None, verdict if verdict is not None and verdict.decision == "allow" else None

    def tier_of(self, tool: Tool) -> str | None:
        """The sandbox tier of a tool that may start programs; None for others."""
        if "execute" not in tool.granted:
            return None
        return self.guards.process.tier if self.handlers.is_sandboxed(tool.name) else NO_SANDBOX

    # -- what a model is offered ---------------------------------------------------------------------------------------

    def allowed_tools(self) -> list[ToolDefinition]:
        """Definitions of the tools that the policy may allow, in catalog order."""
        return [self.define(info) for info in self.offered_tools()]

    def offered_tools(self) -> list[ToolInfo]:
        """The tools that the policy may allow, in catalog order."""
        return [info for info in self.catalog.tools.values() if self.why_not_offered(info) is None]

    def why_not_offered(self, info: ToolInfo) -> str | None:
        """Why no call of a tool can succeed, or None."""
        if info.name not in self.handlers:
            return f"{info.name!r} has no handler in this toolkit"
        if self._cannot_write(info):
            return f"{info.name!r} writes files, and this context is read-only"
        try:
            return self.admission(info)[0]
        except ToolFailed as error:
            if error.reason == "SYSTEM":  # it may be gone when the tool is called
                return None
            raise

    def define(self, info: ToolInfo) -> ToolDefinition:
        """The definition of a tool for a model: name, description and schema."""
        from toolkit.runtime.catalog import strip_marks
        from toolkit.schema.spec import fill_placeholders
        from toolkit.wire.call import JsonObject
        from toolkit.wire.definition import ToolDefinition

        row = self.catalog.definitions[info.name]
        text = fill_placeholders(row["longDescription"] or row["description"], self.context.workspace)
        return ToolDefinition(info.name, text, JsonObject(strip_marks(row["inputSchema"])))

    def describe(self) -> str:
        """How many tools the policy may allow, and where they work. Starts nothing: tools that need a sandbox count."""
        tools = self.catalog.tools.values()
        allowed = sum(info.name in self.handlers and self._may_be_allowed(info) for info in tools)
        closed = ", closed" if self.resources.is_closed else ""
        return f"{allowed} of {len(tools)} tools allowed, workspace {self.context.workspace!r}{closed}"

    def _may_be_allowed(self, info: ToolInfo) -> bool:
        if self._cannot_write(info) or not self.context.permissions.issuperset(info.required):
            return False
        verdict = self.policy._admit(info.name, info.required)
        return verdict is None or verdict.decision in ("allow", "ask" if self.context.approver else "allow")

    def _cannot_write(self, info: ToolInfo) -> bool:
        """Whether a tool must write in a context that is read-only."""
        return self.context.mode == "read-only" and "write" in info.required


def as_remembered(verdict: Verdict, approval: RememberedApproval) -> Verdict:
    """The verdict on a call about which the policy asks, and which was approved before."""
    return replace(verdict, decision="allow", because=f"{approval.because}; {verdict.because}")


def _load_tool(context: ToolkitContext[Any], loop: LoopThread | None, tool: CodeTool) -> FunctionTool[..., Any]:
    """Loads a code-first tool; a lazy one is made for this context, in the toolkit's loop if the toolkit is sync."""
    from toolkit.runtime.functions import LazyTool

    if not isinstance(tool, LazyTool):
        return cast("FunctionTool[..., Any]", tool)
    return tool.load(context, None if loop is None else lambda work: loop.submit(work)[0].result())


def _touched_kinds(info: ToolInfo, handlers: Handlers) -> Collection[str]:
    return touched_kinds(info, has_preview=handlers.has_preview(info.name))


def _check_injection(handlers: Handlers, planner: Planner) -> None:
    """Refuses handlers whose parameters cannot be injected, before the first call.

    What the toolkit's own handlers need can always be injected, unless somebody's own dependencies clash with it.
    """
    injected = [planner.needs_of(parts.run, skip=GIVEN_PARAMETERS) for parts in handlers.loaded()]
    if planner.overrides or any(injected):
        _plan_all(handlers, planner)


def _plan_all(handlers: Handlers, planner: Planner) -> None:
    for parts in handlers.load_all():
        planner.needs_of(parts.run, skip=GIVEN_PARAMETERS)


def _open_records(
    context: ToolkitContext[Any], catalog: Catalog, roots: Sequence[str], *, in_loop: bool
) -> AuditLog | TracedCalls | None:
    """What is told about every call: the audit log, the spans, or both."""
    log = None
    if context.tracing is not None:
        context.tracing.make_tracer()  # the error if OpenTelemetry is missing, before a log is opened
    if context.audit is not None:
        from toolkit.runtime.audit.log import AuditLog

        def schema(name: str) -> Mapping[str, Any] | None:
            return catalog.input_schema(name) if name in catalog.tools else None

        log = AuditLog(context.audit, roots, context.session_id, schema, in_loop=in_loop)
    if context.tracing is None:
        return log
    from toolkit.runtime.tracing import TracedCalls

    return TracedCalls(context.tracing, context, catalog, log)


def _refuse_unknown_limits(limits: Concurrency, known: Collection[str]) -> None:
    for name in limits.by_tool:
        if name not in known:
            raise SetupError(f"Concurrency: by_tool names the unknown tool {name!r}.{nearest(name, known)}")


def _make_cache_opener(scope: DependencyScope, planner: Planner) -> Callable[[], OutputCache]:
    """A function that opens the output cache at its first use. Messages hold it, so it must not hold the toolkit."""

    def open_cache() -> OutputCache:
        from toolkit.runtime.stores.keys import OUTPUT_CACHE

        cache: OutputCache = scope.resolve(planner.node(OUTPUT_CACHE))
        if scope.is_closed:
            cache.close()  # it can still be used, but nobody would close what it opens
        return cache

    return open_cache


# ----------------------------------------------------------------------------------------------------------------------
# Keeps what tools write from being imported as ours; called when a toolkit is built.

_CHANGES_FILES: Final = frozenset({"write", "execute"})
_warned: Final[set[str]] = set()


def protect_imports(
    context: ToolkitContext[Any], policy: SecurityPolicy[Any], generated: Catalog, tools: Iterable[ToolInfo]
) -> None:
    """From here on, nothing of ours is imported from a place where ``tools`` may write.

    Warns once if such a place is on ``sys.path``: what a user's own code imports from there is not ours to refuse.
    """
    # The packages of a toolkit that only reads count as well: another one of this process may write them.
    roots = [context.workspace, *context.write_roots] if context.mode == "workspace-write" else []
    exposed = guard_imports(roots, generated.packages)
    new = [root for root in exposed if root not in _warned]
    if not new or not any(_may_change_files(context, policy, tool) for tool in tools):
        return
    import logging

    logger = logging.getLogger("toolkit.imports")
    _warned.update(new)
    for root in new:
        logger.warning(
            "tools may write in %s, which is on sys.path: a module that your own code imports from there later may be "
            "one that a tool wrote. Start the program from another directory, install your package, or use `python -P`",
            root,
        )


def _may_change_files(context: ToolkitContext[Any], policy: SecurityPolicy[Any], tool: ToolInfo) -> bool:
    if _CHANGES_FILES.isdisjoint((*tool.required, *tool.optional)) or not context.permissions.issuperset(tool.required):
        return False
    verdict = policy._admit(tool.name, tool.required)
    return verdict is None or verdict.decision != "deny"


# ----------------------------------------------------------------------------------------------------------------------
# The common base of the sync and the async runner: a core, and the options of this view of it.

ToolsT = TypeVar("ToolsT")


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
            core = Core.open(catalog, allowed, packs, own_loop=self._own_loop)
        except OSError as error:
            raise SetupError(
                f"the toolkit in {allowed.workspace!r} cannot be opened: the system says {error.strerror or error};"
                " check the workspace and the state directory, and try again"
            ) from error
        self._start(core)

    @classmethod
    def _over(cls, core: Core) -> Self:
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
        self._use(Options(context.deadline, None, notify))
        self._on_result = on_result

    def _use(self, options: Options) -> None:
        self._options = options
        self._is_limited = options.deadline is not None or options.signal is not None
        """Whether something may end a call from outside."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self._core.describe()}>"

    @property
    def load(self) -> Load:
        """How many calls run in threads, wait, and were abandoned at this moment, and how far behind the audit log is."""
        from toolkit.runtime.turns import Load

        workers, turns, audit = self._core.workers, self._core.turns, self._core.audit
        unwritten = 0 if audit is None else audit.unwritten
        return Load(workers.running, workers.waiting + turns.waiting, workers.abandoned, unwritten)

    def get_allowed_tools(self) -> list[ToolDefinition]:
        """Definitions of the tools that the policy may allow, in catalog order: what to offer a model."""
        return self._core.allowed_tools()

    def signatures(self, names: Iterable[str] | None = None, *, budget: int | None = None) -> str:
        """These tools, or all that the policy may allow, as typed Python functions: text for the prompt of a model.

        The order is that of the names, so the text stays the same until a tool changes. Another tool adds its own lines.

        :param budget: the most characters of the text; tools for which there is no room are shown by less.
        """
        return self._tool_texts().describe(names, budget)

    def search_tools(self, query: str, *, limit: int = 10) -> list[ToolDefinition]:
        """Definitions of the tools that share words with the query, the best first: what to offer when there are many."""
        found = self._tool_texts().search(query, limit)
        return [self._core.define(self._core.catalog.tools[match.name]) for match in found]

    def _tool_texts(self) -> ToolTexts:
        from toolkit.runtime.discovery import ToolTexts

        return ToolTexts(self._core)

    def with_options(self, *, deadline: float | None = None, signal: CancelSignal | None = None) -> Self:
        """A view of this toolkit whose calls have a deadline in seconds or can be cancelled; other options stay.

        The view shares everything with its toolkit: closing one closes the other. These are not parameters of ``invoke``,
        because a tool may have arguments of the same names.
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
        view._use(options)
        return view

    def _tell(self, on_result: Callable[[ToolMessage[Any, Any]], None]) -> None:
        """Passes every message to this function from now on."""
        self._on_result = on_result
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

        if call.request is None or call.remembered is not None:
            raise not_asked(call.tool.name)
        answer = take_answer(call.request, call.shown_fs, given, self._core.approvals())
        self._remember(answer, call)
        return answer

    def _ask_in_turn(
        self, call: PreparedCall, request: ApprovalRequest, signal: CallSignal
    ) -> Reply | Awaitable[Reply]:
        """What the approver says, unless an answer was remembered while the call waited for its turn."""
        known = self._core.recall(call)
        if known is not None:
            return known
        reply = path.ask(self._core.context.approver, request, signal)
        from toolkit.runtime.approvals import Approve

        if isinstance(reply, Approve):
            self._remember(reply, call)  # before the next call is asked about
        return reply

    def _read_reply(self, reply: Reply, request: ApprovalRequest, call: PreparedCall) -> Answer:
        """The answer of an approver; ends the call if there is none yet."""
        from toolkit.runtime.approvals import Suspend, suspend

        if isinstance(reply, Suspend):
            raise suspend(request, reply, self._core.approvals(), call.shown_fs)
        self._remember(reply, call)
        return reply

    def _remember(self, answer: Answer, call: PreparedCall) -> None:
        from toolkit.runtime.approvals import Approve

        if isinstance(answer, Approve) and answer.remember is not None and not call.is_kept:
            self._core.remember(call, answer.remember)
            call.is_kept = True

    def _may_block(self, call: ToolCall) -> bool:
        """Whether a call may wait for something: its tool does not declare otherwise, or more than the handler runs."""
        core = self._core
        tool = core.tools.get(call.name)
        if tool is None or tool.is_async or tool.info.blocking or tool.always is None or tool.turns is not None:
            return True
        listener = self._on_result or self._options.notify
        return self._is_limited or core.audit is not None or listener is not None

    def _is_parallel(self, call: ToolCall) -> bool:
        info = self._core.catalog.tools.get(call.name) if isinstance(call.name, str) else None
        return info is not None and info.parallel
