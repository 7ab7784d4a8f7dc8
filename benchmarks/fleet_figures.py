"""What a fleet costs on one machine: ``python -m benchmarks.fleet_figures``. It starts a small Ray on loopback.

docs/scaling.md shows these figures, and ``benchmarks.fleet_simulation`` computes with them. CPU times hardly depend on what
else the machine does; the times that passed do, so the best of several rounds is taken.
"""

from __future__ import annotations

import os
import secrets
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CALLS = 2000
ROUNDS = 3


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp") as folder, started_ray(folder):
        for name, value in measure(Path(folder)).items():
            sys.stdout.write(f"{name:60} {value}\n")


@contextmanager
def started_ray(folder: str) -> Iterator[None]:
    """Two CPUs, no dashboard, loopback only; Ray reads the variables when it is imported."""
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
    os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(16)}
    os.environ["XDG_STATE_HOME"] = f"{folder}/state"
    import ray

    ray.init(
        num_cpus=2,
        object_store_memory=80 << 20,
        include_dashboard=False,
        log_to_driver=False,
        _temp_dir=f"{folder}/ray",
    )
    try:
        yield
    finally:
        ray.shutdown()


def measure(folder: Path) -> dict[str, str]:
    from toolkit import SecurityPolicy, ToolCall
    from toolkit.fleet import Fleet, WorkspaceSetup

    workspace = folder / "workspace"
    workspace.mkdir()
    (workspace / "a.txt").write_text("hello\n" * 20)
    setup = WorkspaceSetup(workspace, SecurityPolicy(default="allow"))
    read = ToolCall("call_1", "read_file", {"path": "a.txt"})
    command = ToolCall("call_1", "exec_command", {"command": ["true"]})
    found: dict[str, str] = sizes(setup, read)

    starts, cpu_starts = [], []
    for _ in range(ROUNDS):
        began, cpu = time.perf_counter(), time.process_time()
        with Fleet(setup=setup, workers=1) as one:
            list(one.map([read]))
            starts.append(time.perf_counter() - began)
            cpu_starts.append(time.process_time() - cpu)
    found["start of a worker until its first result, ms"] = f"{min(starts) * 1e3:.0f}"
    found["CPU of the driver for the start of a worker, ms"] = f"{min(cpu_starts) * 1e3:.1f}"

    with Fleet(setup=setup, workers=1) as one:
        list(one.map([read] * 100))
        passed, driver, worker, memory = best_round(one, read, CALLS)
        found["one call after the other: time per call, ms"] = f"{passed * 1e3:.2f}"
        found["memory of the worker, MB"] = f"{memory / 1e6:.0f}"
        found["command `true` through a worker: time per call, ms"] = f"{best_round(one, command, 100)[0] * 1e3:.2f}"
    with Fleet(setup=setup, workers=1, calls_per_worker=8, ahead=64) as busy:
        list(busy.map([read] * 100))
        passed, driver, worker, memory = best_round(busy, read, CALLS)
        found["eight at once: time per call, ms"] = f"{passed * 1e3:.2f}"
        found["eight at once: CPU of the driver per call, ms"] = f"{driver * 1e3:.2f}"
        found["eight at once: CPU of the worker per call, ms"] = f"{worker * 1e3:.2f}"
    with Fleet(setup=setup, workers=8, ray_options={"num_cpus": 0}) as wide:
        list(wide.map([read] * 100))
        found["eight workers: CPU of the driver per call, ms"] = f"{best_round(wide, read, CALLS)[1] * 1e3:.2f}"
        sleep = ToolCall("call_1", "exec_command", {"command": ["sleep", "0.5"]})
        list(wide.map([sleep] * 16))
        began = time.perf_counter()
        list(wide.map([sleep] * 160))
        found["eight workers: 160 commands `sleep 0.5`, s"] = f"{time.perf_counter() - began:.1f}"
    found["the same call without a fleet, ms"] = f"{without_fleet(setup, read) * 1e3:.3f}"
    return found


def sizes(setup: Any, call: Any) -> dict[str, str]:
    from toolkit.fleet.messages import Assignment, Report, without_output, write
    from toolkit.fleet.setup import make_builtin_toolkit

    with make_builtin_toolkit(setup) as toolkit:
        result = without_output(toolkit.call(call))
    return {
        "bytes to a worker (a short call)": str(len(write(Assignment(0, call, write(setup), None, False, 0)))),
        "bytes from a worker (20 short lines)": str(len(write(Report(result, [])))),
    }


def best_round(fleet: Any, call: Any, calls: int) -> tuple[float, float, float, int]:
    """Time, CPU of the driver and CPU of the workers for one call, and the memory of a worker."""
    rounds = []
    for _ in range(ROUNDS):
        workers = worker_processes()
        passed, driver, before = time.perf_counter(), time.process_time(), sum(map(cpu_seconds, workers))
        for result in fleet.map([call] * calls):
            assert result.kind != "error", result
        passed, driver = time.perf_counter() - passed, time.process_time() - driver
        rounds.append((passed / calls, driver / calls, (sum(map(cpu_seconds, workers)) - before) / calls))
    memory = max(map(resident_bytes, worker_processes()))
    return min(one[0] for one in rounds), min(one[1] for one in rounds), min(one[2] for one in rounds), memory


def without_fleet(setup: Any, call: Any) -> float:
    from toolkit.fleet.setup import make_builtin_toolkit

    with make_builtin_toolkit(setup) as toolkit:
        toolkit.call(call)
        began = time.perf_counter()
        for _ in range(CALLS):
            toolkit.call(call)
        return (time.perf_counter() - began) / CALLS


def worker_processes() -> list[int]:
    wanted = b"ray::FleetWorker"
    return [int(file.parent.name) for file in Path("/proc").glob("[0-9]*/cmdline") if _read(file).startswith(wanted)]


def cpu_seconds(process: int) -> float:
    fields = _read(Path(f"/proc/{process}/stat")).rpartition(b")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") if fields else 0.0


def resident_bytes(process: int) -> int:
    fields = _read(Path(f"/proc/{process}/statm")).split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") if fields else 0


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""


if __name__ == "__main__":
    main()
