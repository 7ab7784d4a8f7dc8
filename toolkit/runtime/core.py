"""What both runners share: the tools of one toolkit, decided once, and the steps up to the run."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Final, Self

from pydantic import BaseModel

from toolkit.errors import SetupError
from toolkit.guard.fs import SandboxFS
from toolkit.runtime import steps
from toolkit.runtime.coerce import Repair
from toolkit.runtime.context import ToolkitContext, check_deadline
from toolkit.runtime.reader import Reader
from toolkit.runtime.signals import CancelSignal
from toolkit.runtime.table import Catalog, Pack, Tool, ToolInfo, merge_packs
from toolkit.runtime.workers import LoopThread, Workers
from toolkit.wire.call import ToolCall
from toolkit.wire.definition import ToolDefinition

_FILE_PERMISSIONS: Final = frozenset({"read", "write"})


class Core:
    """The state behind one toolkit and the views made of it with ``with_options``."""

    def __init__(self, catalog: Catalog, context: ToolkitContext[Any], packs: Iterable[Pack | str]) -> None:
        context.policy.check_names(catalog.tools)
        self.catalog: Final = catalog
        self.context: Final = context
        self.handlers: Final = merge_packs(map(_loaded, packs), catalog)
        self.fs: Final = SandboxFS(context.workspace)
        self.tools: Final[dict[str, Tool]] = {}
        self.workers: Final = Workers()
        self.loop: Final = LoopThread()

    def close(self) -> None:
        self.loop.close()
        self.workers.close()
        self.fs.close()

    # -- the road up to the run ------------------------------------------------------------------------------------

    def resolve(self, name: str) -> Tool:
        """The tool of that name; its models are imported at the first call of it."""
        try:
            return self.tools[name]
        except (KeyError, TypeError):
            return self._first_use(name)

    def prepare(self, name: str, arguments: object, *, is_text: bool) -> tuple[Tool, BaseModel, Sequence[Repair]]:
        """resolve -> admit -> as_object -> validate, the same for every way into the toolkit."""
        tool = self.resolve(name)
        steps.admit(tool)
        args, repairs = steps.validate(tool, steps.as_object(tool, arguments, is_text=is_text))
        # Rules on what the call touches and approvals are judged here, on the validated arguments.
        return tool, args, repairs

    def _first_use(self, name: str) -> Tool:
        info = self.catalog.tools.get(name) if isinstance(name, str) else None
        if info is None:
            raise steps.not_found(name, self.catalog.tools)
        tool = Tool(
            info=info,
            refusal=self._refusal(info),
            handler=self.handlers.get(name),
            fs=None if _FILE_PERMISSIONS.isdisjoint(info.required) else self.fs,
            output_check=self.context.output_check,
            input_schema=(lambda: self.catalog.input_schema(name)) if self.context.coerce else None,
            input=Reader(self.catalog.model(info, "Input")),
            output=Reader(self.catalog.model(info, "Output")),
        )
        self.tools[name] = tool
        return tool

    def _refusal(self, info: ToolInfo) -> str | None:
        """Why no call of the tool can pass, or None."""
        missing = [word for word in info.required if word not in self.context.permissions]
        if missing:
            return f"{info.name!r} needs the permission {missing[0]!r}, which this context does not grant"
        verdict = self.context.policy.verdict(info.name, info.required)
        if verdict.decision == "allow":
            return None
        asked = " and nobody is there to approve it" if verdict.decision == "ask" else ""
        return f"{info.name!r} is not allowed: {verdict.because}{asked}"

    # -- beside the road ---------------------------------------------------------------------------------------------

    def allowed_tools(self) -> list[ToolDefinition]:
        """What a model may be told of: tools some call of which could pass, in catalog order."""
        return [
            self._definition(info)
            for info in self.catalog.tools.values()
            if info.name in self.handlers and self._refusal(info) is None
        ]

    def _definition(self, info: ToolInfo) -> ToolDefinition:
        row = self.catalog.definitions[info.name]
        text = row["longDescription"] or row["description"]
        for word in ("workspace", "directory", "cwd"):
            text = text.replace(f"${{{word}}}", self.context.workspace)
        return ToolDefinition(info.name, text, row["inputSchema"])


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
        info = self._core.catalog.tools.get(call.name)
        return info is not None and info.parallel


@dataclass(frozen=True, slots=True)
class Options:
    """What ``with_options`` may change for a view of a toolkit."""

    deadline: float | None
    signal: CancelSignal | None


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
