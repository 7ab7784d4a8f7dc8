"""What both runners share: the tools of one toolkit, decided once, and the steps up to the run."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from pydantic import BaseModel

from toolkit.errors import PolicyError, SetupError, ToolCancelled, ToolNotAllowed
from toolkit.guard.permission import Permission
from toolkit.guard.policy.hints import HINTS, Hint, hints_of
from toolkit.guard.policy.policy import Touches, Verdict
from toolkit.guard.policy.preview import Preview
from toolkit.inject.plan import Given, Planner
from toolkit.inject.scope import Scope
from toolkit.runtime.call import steps
from toolkit.runtime.call.approval import (
    Answer,
    ApprovalRequest,
    Approve,
    Deny,
    Edit,
    Respond,
    check_unchanged,
    refused,
    request_approval,
)
from toolkit.runtime.call.handler_scope import GIVEN_BY_THE_ROAD, injected
from toolkit.runtime.call.repair import Repair
from toolkit.runtime.call.touches import preview_of, touched_kinds
from toolkit.runtime.catalog.catalog import Catalog, ToolInfo
from toolkit.runtime.catalog.join_packs import join, load_pack
from toolkit.runtime.catalog.pack import CodeTool, PackSource
from toolkit.runtime.catalog.schema_marks import told_schema
from toolkit.runtime.catalog.tool import NO_SANDBOX, Tool
from toolkit.runtime.context.guards import Guards
from toolkit.runtime.context.tool_context import ToolContext
from toolkit.runtime.context.toolkit_context import ToolkitContext
from toolkit.runtime.output.keep_text import Keeper
from toolkit.runtime.workers import LoopThread, Workers
from toolkit.spec.description import filled
from toolkit.wire.definition import ToolDefinition
from toolkit.wire.json_types import JsonObject

if TYPE_CHECKING:
    from toolkit.runtime.audit.log import AuditLog, Record
    from toolkit.runtime.functions.define import FunctionTool
    from toolkit.runtime.output.cache.store import OutputCache

_GIVEN: Final[dict[type, Given]] = {ToolContext: Given("call"), ToolkitContext: Given("run")}
_FILE_PERMISSIONS: Final = frozenset({"read", "write"})


@dataclass(slots=True)
class PreparedCall:
    """A call that the policy allows, or that somebody must approve first."""

    tool: Tool
    handler: Callable[..., Any]
    arguments: BaseModel
    """Validated; replaced if the approver edits them."""
    repairs: Sequence[Repair]
    """What was repaired in the arguments."""
    verdict: Verdict
    request: ApprovalRequest | None
    """What must be approved before the call runs."""
    record: Record | None
    """Its lines in the audit log."""


class Resources:
    """What a toolkit holds open, to be closed once. It does not hold the toolkit."""

    __slots__ = ("_audit", "_guards", "_loop", "_scope", "_workers", "is_closed")

    def __init__(
        self, scope: Scope, loop: LoopThread, workers: Workers, guards: Guards, audit: AuditLog | None
    ) -> None:
        self._scope = scope
        self._loop = loop
        self._workers = workers
        self._guards = guards
        self._audit = audit
        self.is_closed = False

    def close(self) -> None:
        self.is_closed = True
        try:
            if self._scope.needs_loop:
                self._loop.submit(self._scope.close_async())[0].result()
            else:
                self._scope.close()
        except BaseException:
            # The scope has logged it; the rest must be closed as well.
            pass
        self._loop.close()
        self._workers.close()
        self._guards.close()
        if self._audit is not None:
            self._audit.close()


class Core:
    """The state behind one toolkit and the views made of it with ``with_options``."""

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
            raise SetupError("packs is a list: write packs=[...]")
        roots = [context.workspace, *context.read_roots, *context.write_roots]
        self.loop: Final = LoopThread()
        self.catalog, self.handlers = join(catalog, map(load_pack, packs), partial(self._made, own_loop=own_loop))
        known = {name: touched_kinds(info, self.handlers.get(name)) for name, info in self.catalog.tools.items()}
        context.policy.attach(known, self._weakly_touched(), roots, partial(_hints, self.catalog))
        self.planner: Final = Planner(context.overrides, _GIVEN)
        self.scope: Final = Scope(context)
        self.output_cache: Final = _cache_opener(self.scope, self.planner)
        self.guards: Final = Guards(context)
        self.tools: Final[dict[str, Tool]] = {}
        self.workers: Final = Workers()
        self._guests: Final[dict[object, Core]] = {}
        self._check_injection()
        self.audit: Final = None if context.audit is None else self._audit_log(context.audit, roots)
        self.resources: Final = Resources(self.scope, self.loop, self.workers, self.guards, self.audit)
        # Threads and descriptors also go with a toolkit that nobody closes.
        self.close: Final = weakref.finalize(self, self.resources.close)

    # -- the road up to the run ------------------------------------------------------------------------------------

    def resolve(self, name: str) -> Tool:
        """The tool of that name; its models are imported at the first call of it."""
        try:
            return self.tools[name]
        except (KeyError, TypeError):
            return self._first_use(name)

    def prepare(self, name: str, arguments: object, call_id: str | None, *, is_text: bool) -> PreparedCall:
        """resolve -> admit -> as_object -> validate -> authorize: the same for every entry point of the toolkit."""
        record = None if self.audit is None else self.audit.begin(name, call_id)
        try:
            if self.resources.is_closed:
                raise ToolCancelled("this toolkit has been closed", tool_name=str(name))
            try:  # as in `resolve`, whose call would cost
                tool = self.tools[name]
            except (KeyError, TypeError):
                tool = self._first_use(name)
            if tool.refusal is not None:
                raise steps.not_admitted(tool)
            args, repairs = steps.validate(tool, steps.as_object(tool, arguments, is_text=is_text))
            verdict, request = tool.always, None
            if verdict is None:
                verdict, request = self._authorize(tool, args, call_id)
            handler = tool.handler
            if handler is None:
                raise steps.no_handler(tool)
            return PreparedCall(tool, handler, args, repairs, verdict, request, record)
        except BaseException as error:
            if record is not None:
                record.failed(error, arguments)
            raise

    def settle(self, call: PreparedCall, answer: Answer | None) -> None:
        """Applies what the approver answered and records the decision; raises if the call may not run."""
        if call.record is not None:
            call.record.decided(call.verdict, self.tier_of(call.tool), answer)
        if isinstance(answer, Respond):
            return
        if call.request is not None:
            call.arguments = self._approved_arguments(call.tool, call.request, answer)
        if call.record is not None:
            call.record.start(call.tool, call.arguments)

    def _authorize(self, tool: Tool, args: BaseModel, call_id: str | None) -> tuple[Verdict, ApprovalRequest | None]:
        """Rules on what the call touches; gives the request that must be approved before it may run."""
        policy, required = self.context.policy, tool.info.required
        ctx = ToolContext(tool, self, call_id)
        try:
            preview = preview_of(tool, args, ctx)
        except (Exception, SystemExit) as error:
            raise steps.named(error, tool.name) from error.__cause__
        verdict = policy.admit(tool.name, required) or policy.judge(tool.name, required, preview)
        if verdict.decision == "allow":
            return verdict, None
        if verdict.decision == "deny" or self.context.approver is None:
            raise steps.not_allowed(tool.name, verdict)
        session = self.context.session_id
        return verdict, request_approval(
            tool.name,
            args,
            preview,
            verdict.because,
            tool.fs,
            call_id=call_id,
            session_id=session,
            annotations=_annotations(self.catalog, tool.name),
        )

    def _approved_arguments(self, tool: Tool, request: ApprovalRequest, answer: Answer | None) -> BaseModel:
        """The arguments to run with; an edit is validated and may not touch what the policy denies."""
        if isinstance(answer, Approve):
            check_unchanged(request, tool.fs)
            return request.arguments
        if isinstance(answer, Edit):
            args, _ = steps.validate(tool, steps.as_object(tool, answer.arguments, is_text=False))
            preview = preview_of(tool, args, ToolContext(tool, self, request.call_id))
            verdict = self.context.policy.judge(tool.name, tool.info.required, preview)
            if verdict.decision == "deny":
                raise steps.not_allowed(tool.name, verdict)
            return args
        if isinstance(answer, Deny):
            raise refused(request, answer)
        raise ToolNotAllowed(f"the approver gave {type(answer).__name__}, which is no answer", tool_name=tool.name)

    def _weakly_touched(self) -> Touches:
        """``_touched`` for the policy to keep, without keeping this toolkit alive."""
        itself = weakref.WeakMethod(self._touched)

        def touches(name: str, arguments: Mapping[str, Any]) -> tuple[Collection[Permission], Preview]:
            method = itself()
            if method is None:
                raise PolicyError("the toolkit this policy belonged to is gone; build another one")
            return method(name, arguments)

        return touches

    def _touched(self, name: str, arguments: Mapping[str, Any]) -> tuple[Collection[Permission], Preview]:
        """What a call would touch, for ``policy.explain``."""
        tool = self.resolve(name)
        args, _ = steps.validate(tool, steps.as_object(tool, arguments, is_text=False))
        return tool.info.required, preview_of(tool, args, ToolContext(tool, self))

    def _first_use(self, name: str) -> Tool:
        info = self.catalog.tools.get(name) if isinstance(name, str) else None
        if info is None:
            original = self.catalog.aliases.get(name) if isinstance(name, str) else None
            if original is None:
                raise steps.not_found(name, self.catalog.tools)
            return self.resolve(original)
        refusal, always = self._admission(info)
        parts = self.handlers.get(name)
        denied = self.context.policy.denied_paths(name, info.required)
        granted = frozenset((*info.required, *self._granted_options(info)))
        fs = None if _FILE_PERMISSIONS.isdisjoint(granted) else self.guards.fs
        tool = Tool(
            info=info,
            refusal=refusal,
            always=always,
            handler=parts and injected(parts.run, self.planner, self.workers, blocking=info.blocking),
            keeper=self._keeper(name) if parts is None or parts.keeps_output else None,
            preview=parts and parts.preview,
            render=parts and parts.text,
            granted=granted,
            fs=fs.denied(denied) if fs is not None and denied else fs,
            output_check=self.context.output_check,
            input_schema=(lambda: self.catalog.input_schema(name)) if self.context.coerce else None,
            message=self.catalog.message(info),
            input=self.catalog.reader(info, "Input"),
            output=self.catalog.reader(info, "Output"),
        )
        self.tools[name] = tool
        return tool

    def _keeper(self, name: str) -> Keeper:
        return Keeper(self.output_cache, self.context.session_id, name)

    def _granted_options(self, info: ToolInfo) -> list[Permission]:
        """The optional permissions that the context grants and no rule denies or would have to ask for."""
        context = self.context
        return [
            word
            for word in info.optional
            if word in context.permissions and not context.policy.withholds(info.name, word)
        ]

    def _made(self, tool: CodeTool, *, own_loop: bool) -> FunctionTool[..., Any]:
        """A code-first tool; a lazy one is made for this toolkit's context, in its loop if the toolkit is a sync one."""
        from toolkit.runtime.functions.lazy import LazyTool

        if not isinstance(tool, LazyTool):
            return cast("FunctionTool[..., Any]", tool)
        return tool.made(self.context, (lambda work: self.loop.submit(work)[0].result()) if own_loop else None)

    def with_guest(self, tool: FunctionTool[..., Any], granted: frozenset[Permission]) -> Core:
        """What runs a tool with at most these permissions: this toolkit if it has the tool, else one beside it that has
        nothing but the tool and shares everything with this one."""
        if granted >= self.context.permissions and self.catalog.function(tool.name) is tool:
            return self
        key = tool, granted
        guest = self._guests.get(key)
        if guest is None:
            guest = copy(self)
            catalog, handlers = join(Catalog(self.catalog.package, ()), [tool.as_pack()], lambda _: tool)
            context = self.context.narrowed(granted, session_id=self.context.session_id, agent=self.context.agent)
            vars(guest).update(catalog=catalog, handlers=handlers, context=context, tools={}, _guests={})
            guest._check_injection()
            self._guests[key] = guest
        return guest

    def _check_injection(self) -> None:
        """Refuses what could never be injected before the first call, not in the middle of a run."""
        for parts in self.handlers.values():
            self.planner.needs_of(parts.run, skip=GIVEN_BY_THE_ROAD)

    def _admission(self, info: ToolInfo) -> tuple[str | None, Verdict | None]:
        """Why no call of the tool can pass, or None; and what lets every call pass without being looked at."""
        missing = [word for word in info.required if word not in self.context.permissions]
        if missing:
            return f"{info.name!r} needs the permission {missing[0]!r}, which this context does not grant", None
        verdict = self.context.policy.admit(info.name, info.required)
        may_be_asked = self.context.approver is not None
        if verdict is not None and (verdict.decision == "deny" or verdict.decision == "ask" and not may_be_asked):
            return steps.not_allowed(info.name, verdict).message, None
        # Last: finding out what this machine gives starts a process.
        if (
            "execute" in info.required
            and self._is_sandboxed(info.name)
            and not self.guards.process.choice.runs_commands
        ):
            return f"{info.name!r} cannot run here: {self.guards.process.choice.reason}", None
        return None, verdict if verdict is not None and verdict.decision == "allow" else None

    def _audit_log(self, path: str, roots: Sequence[str]) -> AuditLog:
        from toolkit.runtime.audit.log import AuditLog

        catalog = self.catalog
        return AuditLog(
            path,
            roots,
            self.context.session_id,
            lambda name: catalog.input_schema(name) if name in catalog.tools else None,
        )

    def tier_of(self, tool: Tool) -> str | None:
        """The sandbox of what the tool runs, for tools that may run something."""
        if "execute" not in tool.granted:
            return None
        return self.guards.process.tier if self._is_sandboxed(tool.name) else NO_SANDBOX

    def _is_sandboxed(self, name: str) -> bool:
        parts = self.handlers.get(name)
        return parts is None or parts.sandboxed

    # -- beside the road ---------------------------------------------------------------------------------------------

    def allowed_tools(self) -> list[ToolDefinition]:
        """What a model may be told of: tools some call of which could pass, in catalog order."""
        return [
            self._definition(info)
            for info in self.catalog.tools.values()
            if info.name in self.handlers and self._admission(info)[0] is None and not self._only_reads(info)
        ]

    def _only_reads(self, info: ToolInfo) -> bool:
        """Whether a tool that has to write is in a context where nothing may be written."""
        return self.context.mode == "read-only" and "write" in info.required

    def _definition(self, info: ToolInfo) -> ToolDefinition:
        row = self.catalog.definitions[info.name]
        text = filled(row["longDescription"] or row["description"], self.context.workspace)
        return ToolDefinition(info.name, text, JsonObject(told_schema(row["inputSchema"])))


def _annotations(catalog: Catalog, name: str) -> Mapping[str, Any]:
    return catalog.definitions[name].get("annotations") or {}


def _hints(catalog: Catalog, name: str) -> Collection[Hint]:
    """Read from the manifest when a rule asks for it: no model is imported."""
    info = catalog.tools.get(name)
    return HINTS if info is None else hints_of(_annotations(catalog, name), (*info.required, *info.optional))


def _cache_opener(scope: Scope, planner: Planner) -> Callable[[], OutputCache]:
    """What opens the output cache at the first use. Messages hold it, so it must not hold the toolkit."""

    def opened() -> OutputCache:
        from toolkit.runtime.stores.keys import OUTPUT_CACHE

        cache: OutputCache = scope.resolve(planner.node(OUTPUT_CACHE))
        return cache

    return opened
