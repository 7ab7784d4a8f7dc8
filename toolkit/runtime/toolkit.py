"""The state of one toolkit, and the steps of a call up to the run, which both runners share."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from pydantic import BaseModel

from toolkit.errors import PolicyError, SetupError, ToolNotAllowed, nearest
from toolkit.inject.plan import Given, Planner
from toolkit.inject.scope import DependencyScope
from toolkit.models.base import ToolModel
from toolkit.runtime import path as steps
from toolkit.runtime.call.direct import DirectTool, Run, RunAsync, direct_tool, make_run, make_run_async
from toolkit.runtime.call.handler_scope import GIVEN_PARAMETERS, inject
from toolkit.runtime.catalog.catalog import Catalog, ToolInfo
from toolkit.runtime.catalog.lazy_handler import is_own_sync_handler
from toolkit.runtime.catalog.load_pack import load_pack
from toolkit.runtime.catalog.pack import CodeTool, PackSource
from toolkit.runtime.catalog.tool import NO_SANDBOX, Tool
from toolkit.runtime.context.toolkit_context import ToolkitContext
from toolkit.runtime.guards import Guards
from toolkit.runtime.import_guard import protect_imports
from toolkit.runtime.output.keep_text import TextKeeper
from toolkit.runtime.output.message import MessageForm, json_writer
from toolkit.runtime.packs import join_packs
from toolkit.runtime.programs.shown_workspace import refuse_shown_workspace
from toolkit.runtime.resources import Resources
from toolkit.runtime.tool_context import ToolContext
from toolkit.runtime.touches import (
    as_approved,
    before_approval,
    find_consent,
    judge_writes,
    locate_paths,
    preview_call,
    touched_kinds,
)
from toolkit.runtime.turns import CallLimits
from toolkit.runtime.workers import LoopThread, Workers

if TYPE_CHECKING:
    from toolkit.guard.files.sandbox_fs import HoldLock, SandboxFS
    from toolkit.guard.fs.consent import Consent, LocatedPath
    from toolkit.guard.permission import Permission
    from toolkit.guard.policy.policy import Explain, Verdict
    from toolkit.guard.policy.preview import Preview
    from toolkit.runtime.arguments import Reader
    from toolkit.runtime.audit.log import AuditLog, Record
    from toolkit.runtime.audit.settings import AuditFile
    from toolkit.runtime.audit.sink import AuditSink
    from toolkit.runtime.call.approval import Answer, ApprovalRequest, Respond
    from toolkit.runtime.call.repair import Repair
    from toolkit.runtime.catalog.handler_parts import HandlerParts
    from toolkit.runtime.context.concurrency import Concurrency
    from toolkit.runtime.functions.define import FunctionTool
    from toolkit.runtime.programs.calls import ProgramOrigin
    from toolkit.runtime.stores.approvals import ApprovalStore
    from toolkit.runtime.stores.outputs import OutputCache
    from toolkit.runtime.tracing.calls import TracedCalls, TracedRecord
    from toolkit.runtime.tracing.settings import Tracing

_GIVEN: Final[dict[type, Given]] = {ToolContext: Given("call"), ToolkitContext: Given("run")}
_FILE_PERMISSIONS: Final = frozenset({"read", "write"})


@dataclass(slots=True)
class PreparedCall:
    """A call that the policy allows, or that must be approved first."""

    tool: Tool
    handler: Callable[..., Any]
    arguments: BaseModel
    """Validated; replaced if the approver edits them."""
    repairs: Sequence[Repair]
    """What was repaired in the arguments."""
    verdict: Verdict
    request: ApprovalRequest | None
    """What must be approved before the call runs."""
    places: tuple[LocatedPath, ...] | None
    """Where the paths lead that the request shows."""
    record: Record | TracedRecord | None
    """Its lines in the audit log, and its span."""


class Core:
    """The state of one toolkit; the views made with ``with_options`` share it."""

    def __init__(
        self,
        catalog: Catalog,
        context: ToolkitContext[Any],
        packs: Iterable[PackSource | str],
        *,
        own_loop: bool = True,
    ) -> None:
        self.context: Final = context
        if isinstance(packs, str | PackSource):
            raise SetupError("packs must be a list: write packs=[...]")
        roots = [context.workspace, *context.read_roots, *context.write_roots]
        self.loop: Final = LoopThread()
        self.catalog, self.handlers = join_packs(
            catalog, map(load_pack, packs), partial(self._load_tool, own_loop=own_loop)
        )
        known = {name: self._touched_kinds(info) for name, info in self.catalog.tools.items()}
        must_be_named = [info.name for info in self.catalog.tools.values() if info.must_be_named]
        self.policy: Final = context.policy.attach(
            known, self._weak_explain(), roots, self.catalog.hints, catalog.package, must_be_named
        )
        """The policy of the context, as it applies to the tools of this toolkit."""
        protect_imports(context, self.policy, catalog, self.catalog.tools.values())
        refuse_shown_workspace(context, self.policy, self.catalog.tools.values())
        self.planner: Final = Planner(context.overrides, _GIVEN)
        self.scope: Final = DependencyScope(context)
        self.output_cache: Final = _make_cache_opener(self.scope, self.planner)
        self.guards: Final = Guards(context, self.catalog.packages, self._find_file_locks())
        self.is_async: Final = not own_loop
        self.tools: Final[dict[str, Tool]] = {}
        self.direct: Final[dict[str, DirectTool[Run]]] = {}
        """The tools about whose calls nothing is left to decide: allowed whatever they touch, and with a sync handler."""
        self.direct_async: Final[dict[str, DirectTool[RunAsync]]] = {}
        """The same with handlers that an event loop may run."""
        self.runs: Final[dict[str, Run]] = {}
        """How to run a call that nothing limits or records, once it is allowed: of every tool with a sync handler."""
        self.runs_async: Final[dict[str, RunAsync]] = {}
        limits = context.concurrency
        self.workers: Final = Workers(limits.threads, limits.waiting)
        self.turns: Final = CallLimits(limits)
        _refuse_unknown_limits(limits, self.catalog.tools)
        self._guests: Final[dict[object, Core]] = {}
        self._check_injection()
        log = None if context.audit is None else self._audit_log(context.audit, roots)
        self.audit: Final = log if context.tracing is None else self._trace_calls(context.tracing, log)
        self.resources: Final = Resources(self.scope, self.loop, self.workers, self.guards, self.audit)
        # Also closed when the toolkit is garbage collected.
        self.close: Final = weakref.finalize(self, self.resources.close)

    def approvals(self) -> ApprovalStore:
        """The store of suspended calls, opened at its first use."""
        from toolkit.runtime.stores.keys import APPROVAL_STORE

        store: ApprovalStore = self.scope.resolve(self.planner.node(APPROVAL_STORE))
        return store

    def _find_file_locks(self) -> HoldLock | None:
        """What the file tools hold around every change, if the application has given a store of locks."""
        if "write_locks" not in self.context.overrides:
            return None
        from toolkit.runtime.stores.file_locks import FileLocks
        from toolkit.runtime.stores.keys import WRITE_LOCKS

        # Not this toolkit, which must be collected when nobody uses it.
        scope, node = self.scope, self.planner.node(WRITE_LOCKS)
        return FileLocks(lambda: scope.resolve(node)).hold

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
        *,
        is_text: bool,
        origin: ProgramOrigin | None = None,
    ) -> PreparedCall:
        """resolve -> admit -> as_object -> validate -> authorize: the same for every entry point of the toolkit."""
        record = None if self.audit is None else self.audit.begin(name, call_id, origin)
        try:
            if self.resources.is_closed:
                raise steps.closed(name)
            try:  # `resolve`, inlined for speed
                tool = self.tools[name]
            except (KeyError, TypeError):
                tool = self._first_use(name)
            if tool.refusal is not None:
                raise steps.not_admitted(tool)
            args, repairs = steps.read_arguments(tool, arguments, is_text=is_text)
            verdict, request, places = tool.always, None, None
            if verdict is None:
                verdict, request, places = self._authorize(tool, args, call_id)
            handler = tool.handler
            if handler is None:
                raise steps.no_handler(tool)
            return PreparedCall(tool, handler, args, repairs, verdict, request, places, record)
        except OSError as error:  # for example no descriptor is left to import what the call needs
            failed = steps.as_toolkit_error(error, name)
            if record is not None:
                record.end_failed(failed, arguments)
            raise failed from error
        except BaseException as error:
            if record is not None:
                record.end_failed(error, arguments)
            raise

    def settle(self, call: PreparedCall, answer: Answer | None, ctx: ToolContext) -> Respond | None:
        """Applies what the approver answered and records the decision; raises if the call may not run.

        Returns the answer if the approver answered in the place of the tool.
        The context of the call gets the files that were approved.
        """
        if call.record is not None:
            call.record.note_decision(call.verdict, self.tier_of(call.tool), answer)
        if call.request is not None:
            from toolkit.runtime.call.approval import Respond

            if isinstance(answer, Respond):
                return answer
            call.arguments, places = self._approved_arguments(call, call.request, answer)
            ctx._tool = as_approved(call.tool, places)
        if call.record is not None:
            call.record.start(call.tool, call.arguments, ctx.signal.check)
        return None

    def _authorize(
        self, tool: Tool, args: BaseModel, call_id: str | None
    ) -> tuple[Verdict, ApprovalRequest | None, tuple[LocatedPath, ...] | None]:
        """Applies the rules on what the call touches; returns the request that must be approved before it runs."""
        try:
            preview = preview_call(tool, args, ToolContext()._open(before_approval(tool), self, call_id))
        except BaseException as error:
            steps.reraise(error, tool.name)
        places = locate_paths(tool.preview_fs, preview)
        verdict = self._judge(tool, preview, places)
        if verdict.decision == "allow":
            return verdict, None, None
        if verdict.decision == "deny" or self.context.approver is None:
            raise steps.not_allowed(tool.name, verdict)
        try:
            preview = preview.with_diff()
        except BaseException as error:
            steps.reraise(error, tool.name)
        from toolkit.runtime.call.approval import request_approval

        request = request_approval(
            tool.name,
            args,
            preview,
            verdict.because,
            tool.preview_fs,
            places or (),
            call_id=call_id,
            session_id=self.context.session_id,
            annotations=self.catalog.annotations(tool.name),
        )
        return verdict, request, places

    def _judge(self, tool: Tool, preview: Preview, places: tuple[LocatedPath, ...] | None) -> Verdict:
        verdict = tool.by_name or self.policy.judge(tool.name, tool.info.required, preview, places)
        return judge_writes(verdict, tool.consent, places or ())

    def _approved_arguments(
        self, call: PreparedCall, request: ApprovalRequest, answer: Answer | None
    ) -> tuple[BaseModel, tuple[LocatedPath, ...] | None]:
        """The arguments to run with, and the places that were approved with them.

        An edit is validated, and may not touch what the policy denies.
        """
        from toolkit.runtime.call.approval import Approve, Deny, Edit, check_unchanged, denial

        tool = call.tool
        if isinstance(answer, Approve):
            check_unchanged(request, tool.preview_fs)
            return request.arguments, call.places
        if isinstance(answer, Edit):
            check_unchanged(request, tool.preview_fs)  # who edits has seen the files as they were
            args, _ = steps.validate(tool, steps.as_object(tool, answer.arguments, is_text=False))
            preview = preview_call(tool, args, ToolContext()._open(before_approval(tool), self, request.call_id))
            places = locate_paths(tool.preview_fs, preview)
            verdict = self.policy.judge(tool.name, tool.info.required, preview, places)
            if verdict.decision == "deny":
                raise steps.not_allowed(tool.name, verdict)
            return args, places
        if isinstance(answer, Deny):
            raise denial(request, answer)
        raise ToolNotAllowed(
            f"the approver returned {type(answer).__name__}, which is not an answer;"
            " it must return Approve(), Deny(...), Edit(...) or Respond(...)",
            tool_name=tool.name,
        )

    def _weak_explain(self) -> Explain:
        """``_explain`` for the policy, which must not keep this toolkit alive."""
        itself = weakref.WeakMethod(self._explain)

        def explain(name: str, arguments: Mapping[str, Any]) -> Verdict:
            method = itself()
            if method is None:
                raise PolicyError("the toolkit of this policy no longer exists; build another one")
            return method(name, arguments)

        return explain

    def _explain(self, name: str, arguments: Mapping[str, Any]) -> Verdict:
        """The verdict on a call, for ``policy.explain``."""
        tool = self.resolve(name)
        args, _ = steps.validate(tool, steps.as_object(tool, arguments, is_text=False))
        preview = preview_call(tool, args, ToolContext()._open(before_approval(tool), self))
        places = locate_paths(tool.preview_fs, preview)
        verdict = self._judge(tool, preview, places)
        from toolkit.guard.policy.considered import list_considered

        considered = list_considered(self.policy, verdict, tool.name, tool.info.required, preview, places)
        return replace(verdict, considered=considered)

    def _first_use(self, name: str) -> Tool:
        info = self.catalog.tools.get(name) if isinstance(name, str) else None
        if info is None:
            original = self.catalog.aliases.get(name) if isinstance(name, str) else None
            if original is None:
                raise steps.not_found(name, self.catalog.tools)
            return self.resolve(original)
        refusal, always = self.admission(info)
        parts = self.handlers.get(name)
        granted = frozenset((*info.required, *self._granted_options(info)))
        kinds = self._touched_kinds(info)
        fs, consent = self.files_for(name, info.required, granted, kinds)
        if consent is not None and "path" in kinds and any(rule.only_writes for rule in consent.rules):
            always = None  # a call that would change such a file must be recognised
        output = self.catalog.reader(info, "Output")
        tool = Tool(
            info=info,
            refusal=refusal,
            by_name=self.policy.admit(name, info.required),
            always=always,
            handler=parts and inject(parts.run, self.planner, self.workers, blocking=info.blocking),
            preview=parts and parts.preview,
            granted=granted,
            fs=fs if fs is None or consent is None else fs.with_consent(consent),
            preview_fs=fs,
            consent=consent,
            output_check=self.context.output_check,
            input_schema=(lambda: self.catalog.input_schema(name)) if self.context.coerce else None,
            # Ours do, but what an application puts in the place of a store may wait for anything.
            looks_at_signal=parts is not None and not self.context.overrides and is_own_sync_handler(parts.run),
            message=self.catalog.message(info),
            form=self._form(info, parts, output),
            input=self.catalog.reader(info, "Input"),
            output=output,
        )
        self.tools[name] = tool
        if refusal is None and parts is not None:
            self._prepare_runs(tool)
        return tool

    def _prepare_runs(self, tool: Tool) -> None:
        """Prepares the calls of a tool, for the runner that can call its handler itself."""
        if self.turns.concern(tool.name):
            return
        is_direct = tool.always is not None
        records = self.audit.direct_records(tool) if is_direct and self.audit is not None else None
        is_direct = is_direct and (self.audit is None or records is not None)
        if not tool.is_async:
            self.runs[tool.name] = run = make_run(tool, self.resources)
            if is_direct:
                self.direct[tool.name] = direct_tool(tool, run if records is None else records.around(run))
        if tool.is_async or not tool.info.blocking:
            self.runs_async[tool.name] = run_async = make_run_async(tool, self.resources)
            if is_direct:
                recorded = run_async if records is None else records.around_async(run_async)
                self.direct_async[tool.name] = direct_tool(tool, recorded)

    def files_for(
        self, name: str, required: Collection[Permission], granted: frozenset[Permission], kinds: Collection[str]
    ) -> tuple[SandboxFS | None, Consent | None]:
        """The files of a tool without what the policy denies it, and what its calls may touch there without approval."""
        if _FILE_PERMISSIONS.isdisjoint(granted):
            return None, None
        fs = self.guards.fs if "write" in granted else self.guards.fs.for_reading()
        denied = self.policy.denied_paths(name, required)
        if denied:
            fs = fs.with_deny(denied)
        return fs, find_consent(self.context, self.policy, name, required, granted, kinds)

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

    def _touched_kinds(self, info: ToolInfo) -> frozenset[str]:
        return touched_kinds(info, has_preview=self.handlers.has_preview(info.name))

    def _granted_options(self, info: ToolInfo) -> list[Permission]:
        """The optional permissions that the context grants, less those that a rule denies or asks about."""
        context = self.context
        return [
            word for word in info.optional if word in context.permissions and not self.policy.withholds(info.name, word)
        ]

    def _load_tool(self, tool: CodeTool, *, own_loop: bool) -> FunctionTool[..., Any]:
        """Loads a code-first tool; a lazy one is made for this context, in the toolkit's loop if the toolkit is sync."""
        from toolkit.runtime.functions.lazy import LazyTool

        if not isinstance(tool, LazyTool):
            return cast("FunctionTool[..., Any]", tool)
        return tool.load(self.context, (lambda work: self.loop.submit(work)[0].result()) if own_loop else None)

    def with_guest(self, tool: FunctionTool[..., Any], granted: frozenset[Permission]) -> Core:
        """A core that runs a tool with at most these permissions: this one if it has the tool, else a copy that has only
        this tool and shares everything else."""
        if granted >= self.context.permissions and self.catalog.function(tool.name) is tool:
            return self
        key = tool, granted
        guest = self._guests.get(key)
        if guest is None:
            guest = copy(self)
            catalog, handlers = join_packs(Catalog(self.catalog.package, ()), [tool.as_pack()], lambda _: tool)
            context = self.context.narrow(granted, session_id=self.context.session_id, agent=self.context.agent)
            vars(guest).update(catalog=catalog, handlers=handlers, context=context, tools={}, _guests={})
            vars(guest).update(direct={}, direct_async={}, runs={}, runs_async={})
            if self.catalog.function(tool.name) is not tool:
                vars(guest).update(policy=self.policy.for_unlisted_tools())
            if context.tracing is not None:
                vars(guest).update(audit=cast("TracedCalls", self.audit).for_catalog(catalog))
            guest._check_injection()
            self._guests[key] = guest
        return guest

    def _check_injection(self) -> None:
        """Refuses handlers whose parameters cannot be injected, before the first call.

        What the toolkit's own handlers need can always be injected, unless somebody's own dependencies clash with it.
        """
        injected = [self.planner.needs_of(parts.run, skip=GIVEN_PARAMETERS) for parts in self.handlers.loaded()]
        if self.planner.overrides or any(injected):
            self.plan_all()

    def plan_all(self) -> None:
        """Finds what every handler needs; imports those that are not imported yet."""
        for parts in self.handlers.load_all():
            self.planner.needs_of(parts.run, skip=GIVEN_PARAMETERS)

    def admission(self, info: ToolInfo) -> tuple[str | None, Verdict | None]:
        """Why every call of the tool is refused, or None; and the verdict that allows every call, or None."""
        missing = [word for word in info.required if word not in self.context.permissions]
        if missing:
            return f"{info.name!r} needs the permission {missing[0]!r}, which this context does not grant", None
        verdict = self.policy.admit(info.name, info.required)
        may_be_asked = self.context.approver is not None
        if verdict is not None and (verdict.decision == "deny" or verdict.decision == "ask" and not may_be_asked):
            return steps.not_allowed(info.name, verdict).message, None
        # Last, because finding the sandbox of this machine starts a process.
        if (
            "execute" in info.required
            and self.handlers.is_sandboxed(info.name)
            and not self.guards.process.choice.runs_commands
        ):
            return f"{info.name!r} cannot run here: {self.guards.process.choice.reason}", None
        return None, verdict if verdict is not None and verdict.decision == "allow" else None

    def _audit_log(self, audit: AuditFile | AuditSink, roots: Sequence[str]) -> AuditLog:
        from toolkit.runtime.audit.log import AuditLog

        catalog = self.catalog
        return AuditLog(
            audit,
            roots,
            self.context.session_id,
            lambda name: catalog.input_schema(name) if name in catalog.tools else None,
            in_loop=self.is_async,
        )

    def _trace_calls(self, tracing: Tracing, log: AuditLog | None) -> AuditLog | TracedCalls | None:
        tracing.make_tracer()  # the error if OpenTelemetry is missing
        from toolkit.runtime.tracing.calls import TracedCalls

        return TracedCalls(tracing, self.context, self.catalog, log)

    def tier_of(self, tool: Tool) -> str | None:
        """The sandbox tier of a tool that may start programs; None for others."""
        if "execute" not in tool.granted:
            return None
        return self.guards.process.tier if self.handlers.is_sandboxed(tool.name) else NO_SANDBOX


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
