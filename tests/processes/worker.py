"""One of several processes that change the same files: ``python -m tests.processes.worker JOB WORKSPACE STATE NUMBER TURNS``.

It says that it is ready, waits for a line, works, and prints how many of its changes succeeded.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress

from toolkit import Approve, SecurityPolicy, Suspend, SuspendedCall, Toolkit, ToolkitContext, create_agent_toolkit
from toolkit.errors import ToolFailed, ToolNotAllowed


def edit_own_line(toolkit: Toolkit, number: int, turns: int) -> int:
    """Each process counts in a line of its own."""
    done = 0
    for turn in range(turns):
        old, new = f"line {number}: {turn};", f"line {number}: {turn + 1};"
        toolkit.tools.edit(path="counts.txt", old_string=old, new_string=new)
        done += 1
    return done


def count_with_digest(toolkit: Toolkit, number: int, turns: int) -> int:
    """All count in one file; only a write that names what it read succeeds."""
    done = 0
    while done < turns:
        read = toolkit.tools.read_file(path="count.txt")
        assert read.sha256 is not None
        with suppress(ToolFailed):
            toolkit.tools.write_file(
                path="count.txt", content=f"{int(read.content) + 1}\n", expected_sha256=read.sha256
            )
            done += 1
    return done


def patch_two_files(toolkit: Toolkit, number: int, turns: int) -> int:
    """Each process counts in its own lines of two files, in one patch."""
    done = 0
    for turn in range(turns):
        hunks = "".join(
            f"*** Update File: {name}\n@@\n-line {number}: {turn};\n+line {number}: {turn + 1};\n"
            for name in ("a", "b")
        )
        while True:
            try:
                toolkit.tools.apply_patch(patch=f"*** Begin Patch\n{hunks}*** End Patch\n")
            except ToolFailed as failure:
                assert failure.reason == "CONFLICT", failure
            else:
                break
        done += 1
    return done


def resume_all(toolkit: Toolkit, number: int, turns: int) -> int:
    """Every process tries to resume each suspended call, whose JSON lies in the workspace; each call appends to a file."""
    done = 0
    for name in sorted(toolkit.tools.list(path="suspended").entries, key=lambda entry: entry.name):
        text = toolkit.tools.read_file(path=f"suspended/{name.name}").content
        with suppress(ToolNotAllowed):
            toolkit.resume(SuspendedCall.from_json(text), Approve())
            done += 1
    return done


JOBS: dict[str, Callable[[Toolkit, int, int], int]] = {
    "edit": edit_own_line,
    "compare": count_with_digest,
    "patch": patch_two_files,
    "resume": resume_all,
}

if __name__ == "__main__":
    job, workspace, state, number, turns = sys.argv[1:]
    policy = SecurityPolicy(default="allow", tools={"todowrite": "ask"})
    context = ToolkitContext(workspace, policy, state_dir=state, approver=lambda request: Suspend())
    with create_agent_toolkit(context) as toolkit:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        sys.stdin.readline()
        sys.stdout.write(f"{JOBS[job](toolkit, int(number), int(turns))}\n")
