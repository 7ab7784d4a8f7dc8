"""What a fleet is given, and what it returns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from toolkit.errors import RunError, ToolkitError
from toolkit.loop.limits import RunLimits
from toolkit.runtime.progress import Progress
from toolkit.wire.call import ToolCall
from toolkit.wire.conversation import Conversation
from toolkit.wire.message import ChatMessage
from toolkit.wire.query import QueryOptions
from toolkit.wire.result import ToolResult

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
