"""Workers as actors of Ray. The only module that imports Ray."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from toolkit.errors import SetupError

_CONTROL: Final = {"concurrency_group": "control"}

OnReply = Callable[[Any, BaseException | None], None]
"""Gets the reply of a worker, or an error, in a thread of Ray."""


def import_ray() -> Any:
    """Ray, connected to a cluster."""
    try:
        import ray
    except ImportError as error:
        raise SetupError("a fleet needs Ray: install typed-toolkit[ray]") from error
    if not ray.is_initialized():
        raise SetupError(
            "Ray is not connected: call ray.init(address=...) before you make a fleet; "
            "ray.init() alone starts a cluster on this machine"
        )
    return ray


class RayWorkers:
    """Starts workers in the cluster that this process is connected to."""

    def __init__(
        self,
        calls_per_worker: int,
        arguments: tuple[str, str | None, int],
        options: Mapping[str, Any],
    ) -> None:
        from toolkit.fleet.worker import FleetWorker

        self._ray = import_ray()
        # Workers are replaced by us, and calls repeated by us: Ray does not know which may be.
        own = {"num_cpus": 1, **options, "max_restarts": 0, "max_task_retries": 0}
        groups = {"calls": calls_per_worker, "control": 3}
        self._actor = self._ray.remote(concurrency_groups=groups)(FleetWorker).options(**own)
        self._arguments = arguments

    def start(self, on_ready: OnReply) -> RayWorker:
        """Starts a worker; ``on_ready`` is called when it can work, or has failed to start."""
        worker = RayWorker(self._ray, self._actor.remote(*self._arguments))
        worker.wait_until_ready(on_ready)
        return worker

    def is_loss(self, error: BaseException) -> bool:
        """Whether an error means that the worker is gone, not that its code raised something."""
        exceptions = self._ray.exceptions
        return isinstance(error, exceptions.RayError) and not isinstance(error, exceptions.RayTaskError)

    def describe_free(self) -> str:
        """What the cluster has, for an error about workers that do not start."""
        total, free = self._ray.cluster_resources(), self._ray.available_resources()
        return f"{free.get('CPU', 0):g} of {total.get('CPU', 0):g} CPUs are free"


class RayWorker:
    """One worker process somewhere in the cluster."""

    def __init__(self, ray: Any, handle: Any) -> None:
        self._ray = ray
        self._handle = handle
        self._work = handle.work.options(concurrency_group="calls")  # made once: each call would pay for it

    def wait_until_ready(self, on_ready: OnReply) -> None:
        _when_done(self._handle.is_ready.options(**_CONTROL).remote(), on_ready)

    def send(self, data: bytes, on_reply: OnReply) -> None:
        _when_done(self._work.remote(data), on_reply)

    def ask_for_progress(self, seconds: float, on_reply: OnReply) -> None:
        _when_done(self._handle.take_progress.options(**_CONTROL).remote(seconds), on_reply)

    def cancel(self, keys: list[int], reason: str) -> None:
        self._handle.cancel.options(**_CONTROL).remote(keys, reason)

    def close(self, on_reply: OnReply) -> None:
        """Closes its toolkits; it stays until it is killed."""
        _when_done(self._handle.close.options(**_CONTROL).remote(), on_reply)

    def kill(self) -> None:
        """Ends the process, and with it everything it started. Calls that it ran are reported as lost."""
        self._ray.kill(self._handle, no_restart=True)


def _when_done(ref: Any, on_reply: OnReply) -> None:
    # A future costs the same for one worker and for a thousand; `ray.wait` looks at every one that it waits for.
    def done(future: Any) -> None:
        error = future.exception()
        on_reply(None if error is not None else future.result(), error)

    ref.future().add_done_callback(done)
