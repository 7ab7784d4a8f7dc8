"""Programs that use an audited toolkit, in processes of their own: what they do cannot be undone, or may hang."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

from tests.projects import REPOSITORY

HEAD = """
import asyncio, fcntl, os, signal, sys, threading, time
from acme.generated import SecurityPolicy, ToolkitContext, create_agent_toolkit, create_async_agent_toolkit
from toolkit import Pack, ToolCall, ToolkitError
from toolkit.files.locks import ProcessLock
from toolkit.stores import AuditFile
LOG = os.path.realpath("audit.jsonl")
os.makedirs("workspace", exist_ok=True)
ran = []
def add(args, ctx):
    ran.append(args.a)
    return {"sum": args.a + args.b}
def context(**options):
    audit = AuditFile(LOG, **options)
    return ToolkitContext("workspace", SecurityPolicy(default="allow"), audit=audit)
def make(**options):
    return create_agent_toolkit(context(**options), packs=[Pack({"add": add})])
def make_async(**options):
    return create_async_agent_toolkit(context(**options), packs=[Pack({"add": add})])
def call(number):
    return ToolCall(str(number), "add", {"a": number, "b": 1})
def nothing(): pass
def hold_lock():
    # as another process that writes the log
    lock = ProcessLock(f"audit log {LOG}")
    lock.acquire(nothing)
    return lock
"""


def start_program(code: str, folder: Path) -> subprocess.Popen[str]:
    paths = os.pathsep.join([str(REPOSITORY), str(REPOSITORY / "tests" / "downstream")])
    environment = {**os.environ, "PYTHONPATH": paths}
    return subprocess.Popen(
        [sys.executable, "-c", HEAD + textwrap.dedent(code)],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run_program(code: str, folder: Path) -> tuple[int, str, str]:
    """Its exit code, what it printed, and its errors. One that hangs is killed, and fails the test."""
    with start_program(code, folder) as program:
        try:
            printed, errors = program.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            program.kill()
            raise
    return program.returncode, printed, errors


def run_well(code: str, folder: Path) -> str:
    """What a program printed that ends well."""
    code_of_end, printed, errors = run_program(code, folder)
    assert code_of_end == 0, errors
    return printed
