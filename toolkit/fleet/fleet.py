"""The fleet: batches of calls and runs over the workers of a Ray cluster."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any, Final, Self

from toolkit.errors import SetupError
from toolkit.fleet.batch import Batch, BatchItem, Ended
from toolkit.fleet.crew import Crew
from toolkit.fleet.messages import CallEnded, FleetCall, FleetRun, OnItemProgress, RunFinished, RunOutcome
from toolkit.fleet.ray_workers import RayWorkers, import_ray
from toolkit.fleet.setup import BUILTIN_TOOLS, check_factory
from toolkit.runtime.context import check_deadline
from toolkit.runtime.signals import CancelSignal
from toolkit.wire.call import ToolCall, ToolResult


class Fleet:
    """Workers in a Ray cluster that run tool calls or whole agent runs, each with its own workspace and policy.

    Only data goes to the workers and back. Each worker makes its toolkits for itself, by calling
    ``make_toolkit(setup)``: policies, approvers and sandboxes are made where they work. Without a factory of your own,
    a setup is a ``WorkspaceSetup``.

    >>> import ray, tempfile
    >>> from toolkit import SecurityPolicy, ToolCall
    >>> from toolkit.fleet import Fleet, WorkspaceSetup
    >>> setup = WorkspaceSetup(tempfile.mkdtemp(), SecurityPolicy(tools={"done": "allow"}))
    >>> calls = (ToolCall(str(number), "done", {"message": f"hello {number}"}) for number in range(3))
    >>> context = ray.init(num_cpus=2)  # doctest: +SKIP
    >>> with Fleet(setup=setup, workers=2) as fleet:  # doctest: +SKIP
    ...     [result.value for result in fleet.map(calls)]
    ['hello 0', 'hello 1', 'hello 2']

    If a worker dies, a new one takes its place. Its call is repeated if the tool's spec allows that; otherwise it fails with
    ``WORKER_DIED`` and says that its effect is unknown.

    :param make_toolkit: ``"module:function"``, which workers import; it gets a setup and returns a sync toolkit.
    :param setup: what the factories get for items without a setup of their own; anything that can be pickled.
    :param make_driver: ``"module:function"`` for the model of runs; it also gets a setup.
    :param workers: how many worker processes there are.
    :param calls_per_worker: how many items a worker runs at the same time.
    :param ahead: how many items are read before the caller has taken their results; the default is eight times as many as run
        at the same time, so that one slow call does not stop a batch in order. Nothing further is read, so the iterable
        may be endless.
    :param retries: how often a call is repeated whose worker died.
    :param grace: how many seconds after a deadline or a cancellation a worker may take to report, before it is ended.
    :param max_result_bytes: the largest report that is sent; a longer text is cut, anything else fails with ``TOO_LARGE``.
    :param start_seconds: how long a batch waits while no worker has started.
    :param ray_options: options of the actors, such as ``num_cpus``, ``resources`` or ``runtime_env``.
    """

    def __init__(
        self,
        make_toolkit: str = BUILTIN_TOOLS,
        *,
        setup: object = None,
        make_driver: str | None = None,
        workers: int = 2,
        calls_per_worker: int = 1,
        ahead: int | None = None,
        retries: int = 2,
        grace: float = 10.0,
        max_result_bytes: int = 1 << 20,
        start_seconds: float = 60.0,
        ray_options: Mapping[str, Any] | None = None,
    ) -> None:
        check_factory("the factory of toolkits", make_toolkit)
        if make_driver is not None:
            check_factory("the factory of drivers", make_driver)
        at_once = workers * calls_per_worker
        numbers = {"workers": (workers, 1), "calls_per_worker": (calls_per_worker, 1), "retries": (retries, 0)}
        numbers |= {"ahead": (8 * at_once if ahead is None else ahead, 1), "max_result_bytes": (max_result_bytes, 4096)}
        for name, (number, least) in numbers.items():
            if type(number) is not int or number < least:
                raise SetupError(f"Fleet: {name} must be a whole number from {least} on, not {number!r}")
        import_ray()
        self._setup: Final = setup
        self._ahead: Final = numbers["ahead"][0]
        self._retries: Final = retries
        self._grace: Final = grace
        started = RayWorkers(calls_per_worker, (make_toolkit, make_driver, max_result_bytes), ray_options or {})
        self._crew: Crew | None = Crew(started, workers, calls_per_worker, start_seconds)
        self._has_drivers: Final = make_driver is not None
        self._is_busy = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the toolkits of the workers, and ends the workers."""
        crew, self._crew = self._crew, None
        if crew is not None:
            crew.close(self._grace)

    def map(
        self,
        calls: Iterable[ToolCall | FleetCall],
        *,
        deadline: float | None = None,
        signal: CancelSignal | None = None,
        on_progress: OnItemProgress | None = None,
    ) -> Generator[ToolResult, None, None]:
        """The results of calls, in their order.

        A call that fails has a result of kind ``error``. Calls are sent while results are read: a caller who stops reading
        stops the fleet, and closing the iterator cancels what runs. Results have no typed ``output``.

        :param calls: tool calls; ``FleetCall`` gives one a setup or a deadline of its own.
        :param deadline: how many seconds each call may take in its worker.
        :param signal: cancels the batch: what runs is ended in the workers, with the processes it started, and has
            ``TOOL_CANCELLED`` as its result; what was not sent yet has none.
        :param on_progress: receives the progress events of all calls, with the index of the call.
        """
        check_deadline(deadline)
        batch = self._start(self._call_items(calls, deadline), signal, on_progress)
        return _results(self._outcomes(batch, in_order=True))

    def as_completed(
        self,
        calls: Iterable[ToolCall | FleetCall],
        *,
        deadline: float | None = None,
        signal: CancelSignal | None = None,
        on_progress: OnItemProgress | None = None,
    ) -> Generator[CallEnded, None, None]:
        """The same as they come, with the index of each call."""
        check_deadline(deadline)
        batch = self._start(self._call_items(calls, deadline), signal, on_progress)
        return _calls_ended(self._outcomes(batch, in_order=False))

    def run_all(
        self,
        runs: Iterable[FleetRun],
        *,
        in_order: bool = True,
        signal: CancelSignal | None = None,
        on_progress: OnItemProgress | None = None,
    ) -> Generator[RunFinished, None, None]:
        """Runs agents, as ``toolkit.run`` does it in the workers. A run whose worker died is not repeated.

        :param runs: what to run; each has a toolkit and a driver of its own.
        :param in_order: whether the runs come back in their order, or as they end.
        :param signal: cancels the batch; a run then ends with ``RunCancelled``, which holds the messages so far.
        :param on_progress: receives the progress events of all calls of all runs, with the index of the run.
        """
        if not self._has_drivers:
            raise SetupError("runs need a model: name its factory with Fleet(..., make_driver='module:function')")
        batch = self._start(self._run_items(runs), signal, on_progress)
        return _runs_finished(self._outcomes(batch, in_order=in_order))

    def _start(
        self, items: Iterable[BatchItem], signal: CancelSignal | None, on_progress: OnItemProgress | None
    ) -> Batch:
        if self._crew is None:
            raise SetupError("the fleet is closed; make a new one")
        return Batch(
            self._crew,
            items,
            ahead=self._ahead,
            retries=self._retries,
            grace=self._grace,
            signal=signal,
            on_progress=on_progress,
        )

    def _outcomes(self, batch: Batch, *, in_order: bool) -> Generator[Ended, None, None]:
        if self._is_busy:
            raise SetupError("the fleet is at work: read or close the results of one batch before you start the next")
        self._is_busy = True
        try:
            yield from batch.outcomes(in_order=in_order)
        finally:
            self._is_busy = False

    def _call_items(self, calls: Iterable[ToolCall | FleetCall], deadline: float | None) -> Iterator[BatchItem]:
        for index, given in enumerate(calls):
            item = given if isinstance(given, FleetCall) else FleetCall(given)
            if not isinstance(item.call, ToolCall):
                raise SetupError(f"item {index} of the batch is not a ToolCall but {type(item.call).__name__}")
            seconds = deadline if item.deadline is None else item.deadline
            check_deadline(seconds)
            yield BatchItem(index, item.call, self._choose_setup(item.setup), seconds)

    def _run_items(self, runs: Iterable[FleetRun]) -> Iterator[BatchItem]:
        for index, run in enumerate(runs):
            if not isinstance(run, FleetRun):
                raise SetupError(f"item {index} of the batch is not a FleetRun but {type(run).__name__}")
            sent = replace(run, setup=None)  # the setup is sent once
            yield BatchItem(index, sent, self._choose_setup(run.setup), None)

    def _choose_setup(self, own: object) -> object:
        return self._setup if own is None else own


def _results(outcomes: Generator[Ended, None, None]) -> Generator[ToolResult, None, None]:
    with closing(outcomes):
        for ended in outcomes:
            yield _as_result(ended)


def _calls_ended(outcomes: Generator[Ended, None, None]) -> Generator[CallEnded, None, None]:
    with closing(outcomes):
        for ended in outcomes:
            yield CallEnded(ended.index, _as_result(ended))


def _runs_finished(outcomes: Generator[Ended, None, None]) -> Generator[RunFinished, None, None]:
    with closing(outcomes):
        for ended in outcomes:
            outcome = ended.outcome
            assert isinstance(outcome, RunOutcome)
            yield RunFinished(ended.index, outcome.conversation, outcome.error)


def _as_result(ended: Ended) -> ToolResult:
    assert isinstance(ended.outcome, ToolResult)
    return ended.outcome
