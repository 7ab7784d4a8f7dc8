"""Which sandbox this machine gives, found out by trying it.

``full``: namespaces, read-only mounts, Landlock and seccomp. ``reduced``: Landlock and seccomp; commands see names
and sizes outside (``stat``), may change the metadata of files their user owns, and survive if their keeper is killed
from outside. ``none``: no command runs.

Promise: a tier is only named after a command has run in it. Nothing here reads an environment variable or a file of
the workspace, so neither can weaken the choice.
"""

from __future__ import annotations

import functools
import os
import select
import sys
import tempfile
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

from toolkit.errors import SetupError
from toolkit.guard import landlock
from toolkit.guard.helper import Helper
from toolkit.guard.launcher import Plan, Setup
from toolkit.guard.permission import SandboxChoice
from toolkit.guard.program import interpreter_roots
from toolkit.guard.resolve import HANDLE
from toolkit.guard.syscall import Unsupported, machine, reason

Tier: TypeAlias = Literal["full", "reduced", "none"]

CHOICES: Final[tuple[SandboxChoice, ...]] = get_args(SandboxChoice)
# Below, TCP is not Landlock's business.
_REDUCED_NEEDS_ABI: Final = 4
_PATIENCE: Final = 20.0


@dataclass(frozen=True, slots=True)
class TierChoice:
    """The tier in force and why it is that one. ``unsafe``: commands run although there is no sandbox."""

    name: Tier
    reason: str
    unsafe: bool = False


def pick_tier(requested: SandboxChoice) -> TierChoice:
    """The tier for what was asked; one that is missing gives ``none`` with the reason, never a lower one unasked.

    ``auto`` is full, else reduced, but not for uid 0, whose files the reduced tier protects too little.
    """
    if requested not in CHOICES:
        raise SetupError(f"sandbox is one of {', '.join(CHOICES)}, not {requested!r}")
    if requested == "unsafe-none":
        return TierChoice("none", "asked for by name: commands run without any sandbox", unsafe=True)
    why_not: list[str] = []
    for tier in ("full", "reduced") if requested == "auto" else (requested,):
        if tier == "reduced" and requested == "auto" and os.geteuid() == 0:
            why_not.append("reduced: not for uid 0 unless asked for by name")
            continue
        missing = probe(tier)
        if not missing:
            return TierChoice(tier, "; ".join(why_not) or f"{tier}: works on this machine")
        why_not.append(f"{tier}: {missing}")
    return TierChoice("none", "; ".join(why_not))


@functools.cache
def probe(tier: Literal["full", "reduced"]) -> str:
    """Why this machine does not give ``tier``, or an empty text: a command has just run in it."""
    try:
        if tier == "reduced" and (machine(), landlock.abi())[1] < _REDUCED_NEEDS_ABI:
            return f"Landlock is older than version {_REDUCED_NEEDS_ABI}"
        with tempfile.TemporaryDirectory() as folder:
            workspace = os.path.realpath(folder)
            number = os.open(workspace, HANDLE | os.O_DIRECTORY)
            try:
                helper = Helper(Setup(tier, workspace, True, interpreter_roots(), [], workspace), number)
            finally:
                os.close(number)
            try:
                return _try_one_command(helper)
            finally:
                helper.close()
    except (OSError, Unsupported) as error:
        return reason(error)


def _try_one_command(helper: Helper) -> str:
    plan = Plan([sys.executable, "-I", "-S", "-c", ""], ".", {"PATH": ""}, network=False, read_only=False)
    with open(os.devnull, "r+b", buffering=0) as null:
        job = helper.start(plan, [null.fileno()] * 3)
    try:
        while not job.ended():
            if not select.select([job.notice], [], [], _PATIENCE)[0]:
                return "a first command did not end"
    finally:
        job.close()
    first = job.messages[0] if job.messages else {}
    return "" if first == {"status": 0} else f"a first command failed: {first.get('setup', first)}"
