"""What goes between the driver of a fleet and its workers: bytes, which hold data classes of ours.

Workers read whatever the driver sends, because a setup may be of any class. The driver makes only objects of the classes that
are listed here: what a worker returns can be no other object, and can change no class.
"""

from __future__ import annotations

import copyreg
import io
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, Final, TypeAlias
from uuid import UUID

from toolkit.errors import RunError, ToolFailed, ToolkitError, restore_error
from toolkit.loop.state import RunLimits
from toolkit.runtime.path import error_result
from toolkit.runtime.progress import Progress
from toolkit.wire.call import ToolCall, ToolResult
from toolkit.wire.message import ChatMessage, ToolResultMessage
from toolkit.wire.query import Conversation, QueryOptions

# ----------------------------------------------------------------------------------------------------------------------
# What a fleet is given, and what it returns.

OnItemProgress: TypeAlias = Callable[[int, Progress], None]
"""Gets the index of an item and an event of it, in the thread that reads the results. What it raises is logged."""


@dataclass(frozen=True, slots=True)
class FleetCall:
    """A call with a setup or a deadline of its own.

    >>> FleetCall(ToolCall("1", "read_file", {"path": "a.py"}), setup={"tenant": "acme"}, deadline=30).deadline
    30

    :param setup: what the factory of the toolkit gets, anything that can be pickled; None for that of the fleet.
    :param deadline: how many seconds the call may take in its worker; None for that of the batch.
    """

    call: ToolCall
    setup: object = None
    deadline: float | None = None


@dataclass(frozen=True, slots=True)
class FleetRun:
    """One run of an agent, as ``toolkit.run`` makes it, with a toolkit and a driver made for it in the worker.

    >>> FleetRun("Fix the tests.", setup={"workspace": "/srv/checkouts/17"}).limits.turns
    50

    :param prompt: a user's text, messages, or a conversation to continue.
    :param setup: what the factories of the toolkit and of the driver get; None for that of the fleet.
    :param options: sent with every request to the model.
    :param limits: how many turns, tokens and seconds the run may take.
    """

    prompt: str | Sequence[ChatMessage] | Conversation
    setup: object = None
    options: QueryOptions = field(default_factory=QueryOptions)
    limits: RunLimits = field(default_factory=RunLimits)


@dataclass(frozen=True, slots=True)
class CallEnded:
    """A call that has ended: its place in the batch, and its result."""

    index: int
    result: ToolResult


@dataclass(frozen=True, slots=True)
class RunFinished:
    """A run that has ended, with or without an answer.

    ``conversation`` is what was said until then. ``error`` says why there is no answer: a ``RunError`` of the loop, or a
    ``ToolkitError`` if the worker failed. If the worker died, ``conversation`` is only what the run started with, and it is
    unknown which of its calls had an effect.
    """

    index: int
    conversation: Conversation
    error: RunError | ToolkitError | None = None


@dataclass(frozen=True, slots=True)
class Assignment:
    """One item for a worker."""

    key: int
    """Names the item between the driver and its workers."""
    work: ToolCall | FleetRun
    setup: bytes
    """Pickled; workers keep toolkits by it."""
    deadline: float | None
    reports: bool
    """Whether somebody listens to its progress."""
    lost: int
    """How many workers died with it."""


@dataclass(frozen=True, slots=True)
class ProgressEvent:
    """An event of an item; those of an item are numbered from 0 on."""

    key: int
    number: int
    progress: Progress


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """The end of a run."""

    conversation: Conversation
    error: RunError | ToolkitError | None


@dataclass(frozen=True, slots=True)
class Report:
    """The end of an item, and those of its events that the driver may not have yet."""

    outcome: ToolResult | RunOutcome
    events: list[ProgressEvent]
    problem: str | None = None
    """What the driver logs: the text of an error that models must not read."""


_READABLE_MODULES: Final = (
    "toolkit.wire.",
    "toolkit.errors",
    "toolkit.fleet.messages",
    "toolkit.runtime.progress",
)
_READABLE: Final = {
    ("builtins", "set"),
    ("builtins", "frozenset"),
    ("builtins", "complex"),
    ("builtins", "bytearray"),
    ("collections", "OrderedDict"),
    ("datetime", "date"),
    ("datetime", "datetime"),
    ("datetime", "timedelta"),
    ("datetime", "timezone"),
    ("decimal", "Decimal"),
    ("toolkit.fleet.messages", "make_object"),
}
"""What a worker may name: types that cannot be changed, and ``make_object``."""


class _MakeObject:
    """Makes an object of a class of ours from what ``pickle`` knows of it.

    Pickled bytes can set attributes of everything that they name. So they name no class that has any, and this has none.
    """

    __slots__ = ()

    def __call__(self, module: str, name: str, arguments: tuple[object, ...], state: Any) -> object:
        kind: type[Any] = UUID if (module, name) == ("uuid", "UUID") else _find_class(module, name)
        made: object = kind.__new__(kind, *arguments)
        if hasattr(made, "__setstate__"):
            made.__setstate__(state)
        elif state is not None:
            made.__dict__.update(state)
        return made

    def __reduce__(self) -> str:
        return "make_object"


make_object: Final = _MakeObject()


def _find_class(module: str, name: str) -> type[Any]:
    # A dotted name would lead through a module to what it has imported.
    found = getattr(import_module(module), name, None) if _is_readable(module) and "." not in name else None
    if not isinstance(found, type) or found.__module__ != module:
        raise pickle.UnpicklingError(f"a worker sent {module}.{name}, which is not data of a fleet")
    return found


def _is_readable(module: str) -> bool:
    return module.startswith(_READABLE_MODULES)


class _DataWriter(pickle.Pickler):
    """Writes objects of our classes so that ``_DataOnly`` makes them."""

    def reducer_override(self, value: Any) -> Any:
        kind = type(value)
        if not _is_readable(kind.__module__) and kind is not UUID:
            return NotImplemented
        make, arguments, *more = value.__reduce_ex__(pickle.HIGHEST_PROTOCOL)
        if make is restore_error:
            _, arguments, state = arguments
        elif make is copyreg.__newobj__:  # type: ignore[attr-defined]  # the types do not have it
            arguments, state = arguments[1:], more[0] if more else None
        else:
            return NotImplemented
        return make_object, (kind.__module__, kind.__qualname__, arguments, state)


class _DataOnly(pickle.Unpickler):
    """Reads objects of our classes, and plain values of the standard library. Changes nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _READABLE:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"a worker sent {module}.{name}, which is not data of a fleet")


def write(message: object) -> bytes:
    """For the workers."""
    return pickle.dumps(message, pickle.HIGHEST_PROTOCOL)


def write_for_driver(message: object) -> bytes:
    written = io.BytesIO()
    _DataWriter(written, pickle.HIGHEST_PROTOCOL).dump(message)
    return written.getvalue()


class SetupWriter:
    """Pickles setups. Most items of a batch share one, or follow others that have the same."""

    def __init__(self) -> None:
        self._last: tuple[object, bytes] = (None, write(None))

    def write(self, setup: object) -> bytes:
        if setup is not self._last[0]:
            self._last = (setup, write(setup))
        return self._last[1]


def read_assignment(data: bytes) -> Assignment:
    made: Assignment = pickle.loads(data)
    return made


def read_setup(data: bytes) -> object:
    made: object = pickle.loads(data)
    return made


def read_from_worker(data: bytes) -> Any:
    return _DataOnly(io.BytesIO(data)).load()


def without_output(result: ToolResult) -> ToolResult:
    """A result as it is sent: the typed output stays in the worker, and nothing is kept in a cache only to be sent."""
    return ToolResult(result.tool_call_id, result.name, result.kind, result.value, result.ref_if_kept)


def without_outputs(conversation: Conversation) -> Conversation:
    """A conversation as it is sent; the same for its results."""
    messages = [
        replace(message, result=without_output(message.result)) if isinstance(message, ToolResultMessage) else message
        for message in conversation.messages
    ]
    return replace(conversation, messages=messages)


def write_report(report: Report, limit: int) -> bytes:
    """The report of a call or run; an outcome that is too large, or cannot be sent, is replaced by one that says so."""
    try:
        # Also refuses what the driver would not read.
        data = write_for_driver(report)
        read_from_worker(data)
    except Exception as error:
        return _write_instead(report, ToolFailed("INVALID_OUTPUT", f"{_RAN}, but its result cannot be sent: {error}"))
    if len(data) <= limit:
        return data
    outcome = report.outcome
    if isinstance(outcome, ToolResult) and isinstance(outcome.value, str):
        data = write_for_driver(replace(report, outcome=_shorten(outcome, outcome.value, limit)))
        if len(data) <= limit:
            return data
    message = f"{_RAN}, but its result has {len(data)} bytes and a fleet sends at most {limit}; raise max_result_bytes"
    return _write_instead(report, ToolFailed("TOO_LARGE", message))


_RAN: Final = "the call ran in a worker"
_ROOM: Final = 2048
"""For the parts of a report other than the text."""


def _shorten(result: ToolResult, text: str, limit: int) -> ToolResult:
    half = max(0, limit - _ROOM) // 8  # a character may take four bytes
    cut = f"{text[:half]}\n[{len(text) - 2 * half} characters are left out]\n{text[-half:] if half else ''}"
    return ToolResult(result.tool_call_id, result.name, result.kind, cut, result.ref_if_kept)


def _write_instead(report: Report, error: ToolFailed) -> bytes:
    outcome = report.outcome
    if isinstance(outcome, ToolResult):
        return write_for_driver(Report(error_result(error, outcome.tool_call_id, outcome.name), []))
    return write_for_driver(Report(RunOutcome(Conversation(), error), []))
