"""What both runners share: the tools of one toolkit, decided once, and the steps up to the run."""

from __future__ import annotations

import importlib
import weakref
from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass
from typing import Any, Final, Self, TypeAlias

from pydantic import BaseModel

from toolkit.errors import PolicyError, SetupError, ToolCancelled, ToolNotAllowed
from toolkit.guard.permission import Permission
from toolkit.guard.policy import Touches
from toolkit.guard.preview import Preview
from toolkit.runtime import steps
from toolkit.runtime.approval import (
    Answer,
    ApprovalRequest,
    Approve,
    Deny,
    Edit,
    check_unchanged,
    refused,
    request_approval,
)
from toolkit.runtime.coerce import Repair
from toolkit.runtime.context import ToolContext, ToolkitContext, check_deadline
from toolkit.runtime.guards import Guards
from toolkit.runtime.preview import preview_of, touched_kinds
from toolkit.runtime.reader import Reader
from toolkit.runtime.signals import NEVER, CallSignal, CancelSignal
from toolkit.runtime.table import Catalog, Pack, Tool, ToolInfo, merge_packs
from toolkit.runtime.workers import LoopThread, Workers
from toolkit.wire.call import ToolCall
from toolkit.wire.definition import ToolDefinition

Prepared: TypeAlias = tuple[Tool, BaseModel, Sequence[Repair], ApprovalRequest | None]
"""A call that may run: the tool, its validated arguments, what was repaired in them, and what must be approved first."""

_FILE_PERMISSIONS: Final = frozenset({"read", "write"})


class Core:
    """The state behind one toolkit and the views made of it with ``with_options``."""

    def __init__(self, catalog: Catalog, context: ToolkitContext[Any], packs: Iterable[Pack | str]) -> None:
        self.catalog: Final = catalog
        self.context: Final = context
        if isinstance(packs, str | Pack):
            raise SetupError("packs is a list: write packs=[...]")
        self.handlers: Final = merge_packs(map(_loaded, packs), catalog)
        known = {name: touched_kinds(info, self.handlers.get(name)) for name, info in catalog.tools.items()}
        context.policy.attach(
            known, self._weakly_touched(), [context.workspace, *context.read_roots, *context.write_roots]
        )
        self.guards: Final = Guards(context)
        self.tools: Final[dict[str, Tool]] = {}
        self.workers: Final = Workers()
        self.loop: Final = LoopThread()
        # Also when nobody closes the toolkit: threads and descriptors go with it.
        self.close: Final = weakref.finalize(self, _close, self.loop, self.workers, self.guards)

    # -- the road up to the run ------------------------------------------------------------------------------------

    def resolve(self, name: str) -> Tool:
        """The tool of that name; its models are imported at the first call of it."""
        try:
            return self.tools[name]
        except (KeyError, TypeError):
            return self._first_use(name)

    def prepare(self, name: str, arguments: object, call_id: str | None, *, is_text: bool) -> Prepared:
        """resolve -> admit -> as_object -> validate -> authorize, the same for every way into the toolkit."""
        if not self.close.alive:
            raise ToolCancelled("this toolkit has been closed", tool_name=str(name))
        tool = self.resolve(name)
        steps.admit(tool)
        args, repairs = steps.validate(tool, steps.as_object(tool, arguments, is_text=is_text))
        request = None if tool.always_allowed else self._authorize(tool, args, call_id)
        return tool, args, repairs, request

    def _authorize(self, tool: Tool, args: BaseModel, call_id: str | None) -> ApprovalRequest | None:
        """Rules on what the call touches; gives the request that must be approved before it may run."""
        policy, required = self.context.policy, tool.info.required
        ctx = self.new_context(tool, call_id)
        try:
            preview = preview_of(tool, args, ctx)
        except (Exception, SystemExit) as error:
            raise steps.named(error, tool.name) from error.__cause__
        verdict = policy.admit(tool.name, required) or policy.judge(tool.name, required, preview)
        if verdict.decision == "allow":
            return None
        if verdict.decision == "deny" or self.context.approver is None:
            raise steps.not_allowed(tool.name, verdict)
        session = self.context.session_id
        return request_approval(tool.name, args, preview, verdict.because, tool.fs, call_id=call_id, session_id=session)

    def new_context(self, tool: Tool, call_id: str | None, signal: CallSignal = NEVER) -> ToolContext:
        """What the tool's handler is given: what its permissions grant, and nothing else."""
        return ToolContext(tool, self.guards, self.context, call_id, signal)

    def answered(self, tool: Tool, request: ApprovalRequest, answer: Answer) -> BaseModel:
        """The arguments to run with; an edit is validated and may not touch what the policy denies."""
        if isinstance(answer, Approve):
            check_unchanged(request, tool.fs)
            return request.arguments
        if isinstance(answer, Edit):
            args, _ = steps.validate(tool, steps.as_object(tool, answer.arguments, is_text=False))
            preview = preview_of(tool, args, self.new_context(tool, request.call_id))
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
        return tool.info.required, preview_of(tool, args, self.new_context(tool, None))

    def _first_use(self, name: str) -> Tool:
        info = self.catalog.tools.get(name) if isinstance(name, str) else None
        if info is None:
            raise steps.not_found(name, self.catalog.tools)
        refusal, always = self._admission(info)
        denied = self.context.policy.denied_paths(name, info.required)
        granted = frozenset(info.required) | self.context.permissions.intersection(info.optional)
        fs = None if _FILE_PERMISSIONS.isdisjoint(granted) else self.guards.fs
        tool = Tool(
            info=info,
            refusal=refusal,
            always_allowed=always,
            handler=self.handlers.get(name),
            granted=granted,
            fs=fs.denied(denied) if fs is not None and denied else fs,
            output_check=self.context.output_check,
            input_schema=(lambda: self.catalog.input_schema(name)) if self.context.coerce else None,
            input=Reader(self.catalog.model(info, "Input")),
            output=Reader(self.catalog.model(info, "Output")),
        )
        self.tools[name] = tool
        return tool

    def _admission(self, info: ToolInfo) -> tuple[str | None, bool]:
        """Why no call of the tool can pass, or None; and whether every call passes without being looked at."""
        missing = [word for word in info.required if word not in self.context.permissions]
        if missing:
            return f"{info.name!r} needs the permission {missing[0]!r}, which this context does not grant", False
        if "execute" in info.required and self.guards.process.tier == "none":
            return f"{info.name!r} cannot run here: {self.guards.process.choice.reason}", False
        verdict = self.context.policy.admit(info.name, info.required)
        if verdict is None or verdict.decision == "ask" and self.context.approver is not None:
            return None, False
        return (None, True) if verdict.decision == "allow" else (steps.not_allowed(info.name, verdict).message, False)

    # -- beside the road ---------------------------------------------------------------------------------------------

    def allowed_tools(self) -> list[ToolDefinition]:
        """What a model may be told of: tools some call of which could pass, in catalog order."""
        return [
            self._definition(info)
            for info in self.catalog.tools.values()
            if info.name in self.handlers and self._admission(info)[0] is None
        ]

    def _definition(self, info: ToolInfo) -> ToolDefinition:
        row = self.catalog.definitions[info.name]
        text = row["longDescription"] or row["description"]
        for word in ("workspace", "directory", "cwd"):
            text = text.replace(f"${{{word}}}", self.context.workspace)
        # A copy: whoever gets it may change it, and the manifest's rows serve every toolkit of the process.
        return ToolDefinition(info.name, text, deepcopy(row["inputSchema"]))


class View:
    """What ``Runner`` and ``AsyncRunner`` have in common: a core, and the options of this view on it."""

    def __init__(self, catalog: Catalog, context: ToolkitContext[Any], packs: Iterable[Pack | str]) -> None:
        self._core = Core(catalog, context, packs)
        self._options = Options(context.deadline, None)

    def get_allowed_tools(self) -> list[ToolDefinition]:
        """Definitions of the tools some call of which could pass, in catalog order: what to offer a model."""
        return self._core.allowed_tools()

    def with_options(self, *, deadline: float | None = None, signal: CancelSignal | None = None) -> Self:
        """A view of this toolkit whose calls have a deadline in seconds, or can be cancelled; what is not given stays.

        The view shares everything with its toolkit: closing one closes the other.
        """
        check_deadline(deadline)
        view = copy(self)
        view._options = Options(deadline or self._options.deadline, signal or self._options.signal)
        return view

    def _is_parallel(self, call: ToolCall) -> bool:
        info = self._core.catalog.tools.get(call.name) if isinstance(call.name, str) else None
        return info is not None and info.parallel


@dataclass(frozen=True, slots=True)
class Options:
    """What ``with_options`` may change for a view of a toolkit."""

    deadline: float | None
    signal: CancelSignal | None


def _close(loop: LoopThread, workers: Workers, guards: Guards) -> None:
    loop.close()
    workers.close()
    guards.close()


def _loaded(pack: Pack | str) -> Pack:
    """A pack, or the one that ``"module:name"`` stands for."""
    if isinstance(pack, Pack):
        return pack
    module_name, _, name = pack.partition(":")
    try:
        found = getattr(importlib.import_module(module_name), name)
    except (ImportError, AttributeError) as error:
        raise SetupError(f"the pack {pack!r} cannot be loaded: {error}") from error
    if not isinstance(found, Pack):
        raise SetupError(f"{pack!r} is no pack of handlers: make one with the generated `bind`")
    return found
