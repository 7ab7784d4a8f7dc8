"""What the programs of one toolkit share, and the path of one program:

parse and gate -> type check -> policy on the tools that it names -> audit -> run.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import secrets
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel
from pydantic_core import to_json, to_jsonable_python

from toolkit.errors import InvalidArguments, ToolNotAllowed
from toolkit.guard.permission import CommandLimits
from toolkit.guard.process.guard import ProcessGuard
from toolkit.guard.process.program import SYSTEM, is_below
from toolkit.runtime import path
from toolkit.runtime.programs.check import ProgramChecker, write_prelude
from toolkit.runtime.programs.frames import MAX_BODY
from toolkit.runtime.programs.gate import ALLOWED_IMPORTS, ToolUse, parse_program
from toolkit.runtime.programs.host import ProgramHost, Ran
from toolkit.runtime.programs.process import FramedProcess, Interpreters, NotStarted, library_folders
from toolkit.runtime.programs.result import (
    Checker,
    ProgramError,
    ProgramResult,
    ProgramSettings,
    TimeLimit,
    check_choice,
    shorten_errors,
)
from toolkit.runtime.signals import CancelSignal

if TYPE_CHECKING:
    from toolkit.guard.files.protect import Root
    from toolkit.runtime.boundary import CommandBoundary
    from toolkit.runtime.context import ToolkitContext
    from toolkit.runtime.programs.host import Caller
    from toolkit.runtime.toolkit import Core

RUN_PROGRAM: Final = "run_program"
_PROCESSES: Final = 32
_MAX_SESSION_BYTES: Final = 1 << 20


class SessionState:
    """The interpreter of a session, and the programs that it has run."""

    def __init__(self) -> None:
        self.lock: Final = threading.Lock()
        self.process: FramedProcess | None = None
        self.sources: list[str] = []
        self.tools: dict[str, None] = {}

    def keep(self, process: FramedProcess, source: str, tools: Sequence[str]) -> None:
        """Keeps the interpreter of a program that has ended, with its variables."""
        self.process = process
        self.sources.append(source)
        self.tools = dict.fromkeys(tools)

    def reset(self) -> None:
        """Ends the interpreter; the next program starts with nothing."""
        process, self.process = self.process, None
        self.sources, self.tools = [], {}
        if process is not None:
            process.close()


class Programs:
    """The sandbox, the interpreters and the checker of a toolkit's programs; each is made at its first use."""

    def __init__(
        self, context: ToolkitContext[Any], workspace: Root, packages: Mapping[str, Root], boundary: CommandBoundary
    ) -> None:
        self._context: Final = context
        self.settings: Final = context.programs or ProgramSettings()
        shown = workspace if self.settings.workspace == "read-only" else None
        self._guard: Final = _make_guard(context, self.settings, [*packages.values(), *([shown] if shown else [])])
        self._interpreters: Final = Interpreters(boundary.apply(self._guard), packages, shown.real if shown else None)
        self._checker: Final = ProgramChecker(boundary.apply(self._guard))
        self._imports: Final = ALLOWED_IMPORTS.union(self.settings.imports)
        self._closed: Final = CancelSignal()

    def close(self) -> None:
        """Ends every process of these programs; those that run report why they ended."""
        self._closed.cancel("the toolkit was closed")
        self._interpreters.close()
        self._checker.close()
        self._guard.close()

    def run(
        self,
        core: Core,
        caller: Caller,
        source: str,
        inputs: Mapping[str, object] | None,
        checker: Checker,
        signal: CancelSignal,
        seconds: float | None,
        session: SessionState | None = None,
    ) -> ProgramResult:
        """Judges a program and, if nothing is wrong with it, runs it."""
        check_choice(checker)
        if core.resources.is_closed:
            raise path.closed(RUN_PROGRAM)
        if "execute" not in self._context.permissions:
            raise ToolNotAllowed("programs need the permission 'execute', which this context does not grant")
        data = _read_inputs(inputs)
        deadline = TimeLimit.beginning_now(math.inf if seconds is None else seconds)
        program_id = secrets.token_hex(8)
        forget = self._closed.listen(lambda: signal.cancel(self._closed.reason))
        try:
            uses, errors = self._judge(core, source, inputs or {}, checker, session, deadline, signal)
            tools = list(dict.fromkeys([*(session.tools if session else ()), *(use.tool for use in uses)]))
            request = None if errors else _make_request(core, source, tools, data)
            self._record(core, program_id, source, uses, errors)
            if request is None:
                return ProgramResult(errors=errors, program_id=program_id)
            with self._interpreter(session, deadline, signal) as process:
                own = TimeLimit.beginning_now(self.settings.seconds)
                time_limit = min(own, deadline, key=lambda limit: limit.until)
                host = ProgramHost(process, caller, self.settings, program_id, tools, signal, time_limit)
                ran = host.run(request)
                if session is not None and ran.usable:
                    session.keep(process, source, tools)
        except NotStarted as error:
            return ProgramResult(errors=(ProgramError(0, 0, str(error), "run"),), program_id=program_id)
        finally:
            forget()
        core.workers.submit(self._interpreters.prepare)
        return _result(ran, program_id)

    def tools_of(self, core: Core, source: str) -> tuple[str, ...]:
        """The tools that a program names, each with its lines."""
        lines: dict[str, list[int]] = {}
        for use in parse_program(source, _tool_names(core), self._imports).uses:
            lines.setdefault(use.tool, []).append(use.line)
        return tuple(f"{tool} ({_number(found)})" for tool, found in sorted(lines.items()))

    # -- the checks ----------------------------------------------------------------------------------------------------

    def _judge(
        self,
        core: Core,
        source: str,
        inputs: Mapping[str, object],
        checker: Checker,
        session: SessionState | None,
        deadline: TimeLimit,
        signal: CancelSignal,
    ) -> tuple[tuple[ToolUse, ...], tuple[ProgramError, ...]]:
        """The tools that a program names, and everything that is wrong with it, by line."""
        previous = [] if session is None else session.sources
        too_long = self._refuse_length(source, previous)
        if too_long is not None:
            return (), (too_long,)
        program = parse_program(source, _tool_names(core), self._imports)
        if program.errors:
            return program.uses, program.errors
        self._interpreters.prepare()  # it starts while the program is checked
        known = dict.fromkeys([*(session.tools if session else ()), *(use.tool for use in program.uses)])
        prelude = write_prelude([core.catalog.signatures.of(name) for name in known], inputs)
        errors: tuple[ProgramError, ...] = ()
        if checker != "off":
            errors = self._checker.check(program, prelude, previous, deadline.until, signal)
        return program.uses, shorten_errors([*errors, *self._refused_tools(core, program.uses)])

    def _refuse_length(self, source: str, previous: Sequence[str]) -> ProgramError | None:
        size = len(source.encode("utf-8", "surrogatepass"))
        if size > self.settings.source_bytes:
            what = f"the program has {size} bytes; at most {self.settings.source_bytes} are allowed"
        elif sum(map(len, previous)) + size > _MAX_SESSION_BYTES:
            what = f"the programs of this session have more than {_MAX_SESSION_BYTES} characters together; reset it"
        else:
            return None
        return ProgramError(0, 0, what, "gate")

    def _refused_tools(self, core: Core, uses: Sequence[ToolUse]) -> list[ProgramError]:
        """What the policy says about the tools that the program names, before it runs."""
        found = []
        for use in uses:
            tool = core.resolve(use.tool)
            if tool.refusal is not None:
                found.append(ProgramError(use.line, use.column, tool.refusal, "policy"))
            elif tool.handler is None:
                found.append(ProgramError(use.line, use.column, path.no_handler(tool).message, "policy"))
        return found

    def _record(
        self, core: Core, program_id: str, source: str, uses: Sequence[ToolUse], errors: Sequence[ProgramError]
    ) -> None:
        if core.audit is not None:
            tools = list(dict.fromkeys(use.tool for use in uses))
            digest = hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest()
            outcome = "refused" if errors else "started"
            core.audit.note_program(program_id, {"source": digest, "tools": tools, "outcome": outcome})

    # -- the run -------------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _interpreter(
        self, session: SessionState | None, deadline: TimeLimit, signal: CancelSignal
    ) -> Iterator[FramedProcess]:
        """The interpreter of a session, or another one. It is ended, unless the session keeps it."""
        kept = None if session is None else session.process
        if session is not None and kept is not None and not kept.is_alive:
            session.reset()
            raise NotStarted("the interpreter of the session is gone, and its variables with it; begin again")
        process = kept or self._interpreters.take(deadline, signal)
        if session is not None:
            session.process = None  # until it is known that it can be used again
        try:
            yield process
        finally:
            if session is None or session.process is None:
                process.close()
            if session is not None and session.process is None:
                session.reset()


def _make_guard(context: ToolkitContext[Any], settings: ProgramSettings, shown: Sequence[Root]) -> ProcessGuard:
    """The sandbox of programs: no network, no workspace, nothing to write but a private /tmp. The reduced tier is used
    only by name, and no program runs without a sandbox."""
    # Libraries may be outside the environment of the interpreter: on PYTHONPATH, or named in a .pth file.
    libraries = [folder for folder in library_folders() if not any(is_below(folder, place) for place in SYSTEM)]
    return ProcessGuard(
        context.state.folder("no-workspace"),
        sandbox="reduced" if context.sandbox == "reduced" else "full",
        mode="read-only",
        read_roots=[*shown, *libraries],
        state_dir=context.state.path("homes"),
        git="read-only",
        limits=CommandLimits(memory=settings.memory, processes=_PROCESSES, file_size=64 << 20, disk=256 << 20),
    )


def _tool_names(core: Core) -> dict[str, str]:
    """Python name -> name of the tools that a program may name. A program cannot run programs."""
    return {info.attribute: name for name, info in core.catalog.tools.items() if name != RUN_PROGRAM}


def _number(lines: Sequence[int]) -> str:
    return f"{'line' if len(lines) == 1 else 'lines'} {', '.join(map(str, lines))}"


def _read_inputs(inputs: Mapping[str, object] | None) -> dict[str, Any]:
    """The inputs as JSON data."""
    given = dict(inputs or {})
    for name in given:
        if not isinstance(name, str) or not name.isidentifier():
            raise InvalidArguments(f"the name of an input must be a Python name, not {name!r}")
    try:
        data: dict[str, Any] = {
            name: value.model_dump(mode="json", by_alias=True, exclude_unset=True)
            if isinstance(value, BaseModel)
            else to_jsonable_python(value, by_alias=True)
            for name, value in given.items()
        }
    except ValueError as error:
        raise _not_json(error) from None
    return data


def _not_json(error: ValueError) -> InvalidArguments:
    return InvalidArguments(f"inputs must be JSON values or models: {error}")


def _make_request(core: Core, source: str, tools: Sequence[str], inputs: Mapping[str, Any]) -> bytes:
    """What the interpreter gets."""
    known = [_known_tool(core, name) for name in tools]
    try:
        request = to_json({"source": source, "tools": known, "inputs": inputs})
    except ValueError as error:
        raise _not_json(error) from None
    if len(request) > MAX_BODY:
        raise InvalidArguments(f"the program and its inputs have {len(request)} bytes; at most {MAX_BODY} are allowed")
    return request


def _known_tool(core: Core, name: str) -> dict[str, Any]:
    """What the interpreter must know about a tool that the program names."""
    info = core.catalog.tools[name]
    is_generated = not info.own_output and core.catalog.function(name) is None
    return {
        "name": name,
        "attribute": info.attribute,
        "module": info.module if is_generated else None,
        "output": f"{info.prefix}Output",
        "wire": dict(core.catalog.signatures.of(name).renamed),
    }


def _result(ran: Ran, program_id: str) -> ProgramResult:
    return ProgramResult(
        value=ran.value,
        output=ran.output,
        errors=() if ran.error is None else (ran.error,),
        calls=tuple(ran.calls),
        ran=True,
        attachments=tuple(ran.attachments),
        program_id=program_id,
    )
