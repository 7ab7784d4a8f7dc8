"""Run as a program: ``python -m tests.faults.program FAULT WORKSPACE``. Tools are used while something is missing, and again
when it is there; one JSON line reports both. The fault is real, so it needs a process of its own."""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import TypeAlias

from toolkit import SecurityPolicy, Toolkit, ToolkitContext, create_agent_toolkit
from toolkit.errors import ToolFailed, ToolkitError

Act: TypeAlias = Callable[[Toolkit], object]
Outcome: TypeAlias = list[object]


def run_command(toolkit: Toolkit) -> object:
    return toolkit.tools.exec_command(command=["echo", "it runs"]).stdout


def read_file(toolkit: Toolkit) -> object:
    return toolkit.tools.read_file(path="a.txt").content


def list_files(toolkit: Toolkit) -> object:
    return [entry.path for entry in toolkit.tools.list(path=".").entries]


ACTS: dict[str, Act] = {"exec_command": run_command, "read_file": read_file, "list": list_files}


def outcome(act: Act, toolkit: Toolkit) -> Outcome:
    try:
        return ["result", act(toolkit)]
    except ToolFailed as error:
        return ["failed", error.reason, error.retriable]
    except ToolkitError as error:
        return ["refused", str(error)]
    except BaseException as error:
        return ["raised", repr(error)]


@contextmanager
def limit(kind: int, value: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (value, hard))
    try:
        yield
    finally:
        resource.setrlimit(kind, (soft, hard))


@contextmanager
def descriptors_left(count: int) -> Iterator[None]:
    """This process can open so many files, and no more."""
    lowest_free = os.open(os.devnull, os.O_RDONLY)
    os.close(lowest_free)
    with limit(resource.RLIMIT_NOFILE, lowest_free + count):
        yield


@contextmanager
def blocked_signals() -> Iterator[None]:
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, ())


@contextmanager
def ignored_children() -> Iterator[None]:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)


@contextmanager
def closed(*descriptors: int) -> Iterator[None]:
    for fd in descriptors:
        os.close(fd)
    yield


FAULTS: dict[str, Callable[[], AbstractContextManager[None]]] = {
    **{f"{count} descriptors": partial(descriptors_left, count) for count in range(12)},
    "blocked signals": blocked_signals,
    "ignored children": ignored_children,
    "closed 0": partial(closed, 0),
    "closed 1": partial(closed, 1),
    "closed 2": partial(closed, 2),
    "closed 0 1 2": partial(closed, 0, 1, 2),
}


def main(fault: str, tool: str, workspace: str) -> None:
    report = os.dup(1)
    with open(f"{workspace}/a.txt", "w") as file:
        file.write("text\n")
    context = ToolkitContext(workspace, SecurityPolicy(default="allow"), state_dir=f"{workspace}-state")
    with create_agent_toolkit(context) as toolkit:
        with FAULTS[fault]():
            first = outcome(ACTS[tool], toolkit)
        second = outcome(ACTS[tool], toolkit)
        offered = [tool.name for tool in toolkit.get_allowed_tools()]
    with create_agent_toolkit(context) as toolkit:
        other = outcome(ACTS[tool], toolkit)
    answer = {"meanwhile": first, "afterwards": second, "another toolkit": other, "offered": tool in offered}
    os.write(report, json.dumps(answer).encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
