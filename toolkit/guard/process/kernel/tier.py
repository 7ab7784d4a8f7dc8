"""Which sandbox this machine gives, found out by trying it.

``full``: namespaces, read-only mounts, Landlock and seccomp; the first two built by ourselves, or by bubblewrap where
they are granted to it and not to us. ``reduced``: Landlock and seccomp; commands see names and sizes outside (``stat``)
and may change the metadata of files their user owns. ``none``: no command runs.

Promise: a tier is only named after a command has run in it. Nothing here reads an environment variable or a file of
the workspace, so neither can weaken the choice.
"""

from __future__ import annotations

import functools
import os
import select
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

from toolkit.errors import SetupError
from toolkit.guard.fs.resolve import HANDLE
from toolkit.guard.permission import Carrier, CarrierChoice, SandboxChoice
from toolkit.guard.process.fork_server_client import Helper
from toolkit.guard.process.kernel import bubblewrap, landlock
from toolkit.guard.process.kernel.syscall import Unsupported, machine, reason
from toolkit.guard.process.messages import Plan, Roots, Setup, identities
from toolkit.guard.process.program import interpreter_roots

Tier: TypeAlias = Literal["full", "reduced", "none"]

CHOICES: Final[tuple[SandboxChoice, ...]] = get_args(SandboxChoice)
CARRIERS: Final[tuple[CarrierChoice, ...]] = get_args(CarrierChoice)
# Below, TCP is not Landlock's business.
_REDUCED_NEEDS_ABI: Final = 4
_PATIENCE: Final = 20.0


@dataclass(frozen=True, slots=True)
class TierChoice:
    """The tier in force and why it is that one. ``unsafe``: commands run although there is no sandbox.

    ``bubblewrap`` is the path of the program that builds the full tier, or empty: then it is built by ourselves.
    """

    name: Tier
    reason: str
    unsafe: bool = False
    bubblewrap: str = ""

    @property
    def carrier(self) -> Carrier:
        """Who builds the walls."""
        return "bubblewrap" if self.bubblewrap else "own"

    @property
    def runs_commands(self) -> bool:
        return self.unsafe or self.name != "none"


def pick_tier(requested: SandboxChoice, carrier: CarrierChoice = "auto", avoid: Sequence[str] = ()) -> TierChoice:
    """The tier for what was asked; one that is missing gives ``none`` with the reason, never a lower one unasked.

    ``auto`` is full, else reduced, but not for uid 0, whose files the reduced tier protects too little. The full tier
    is our own, else bubblewrap's, but not for uid 0 unless asked for by name; its program must not lie in ``avoid``.
    """
    if requested not in CHOICES:
        raise SetupError(f"sandbox is one of {', '.join(CHOICES)}, not {requested!r}")
    if carrier not in CARRIERS:
        raise SetupError(f"carrier is one of {', '.join(CARRIERS)}, not {carrier!r}")
    if requested == "unsafe-none":
        return TierChoice("none", "asked for by name: commands run without any sandbox", unsafe=True)
    why_not: list[str] = []
    if requested in ("auto", "full"):
        if carrier in ("auto", "own"):
            missing = probe("full")
            if not missing:
                return TierChoice("full", "full: works on this machine")
            why_not.append(f"full: {missing}")
        if carrier in ("auto", "bubblewrap"):
            program, missing = _bubblewrap(avoid, by_name=carrier == "bubblewrap")
            if not missing:
                why = "; ".join([*why_not, "bubblewrap: builds the full tier on this machine"])
                return TierChoice("full", why, bubblewrap=program)
            why_not.append(f"bubblewrap: {missing}")
    if requested in ("auto", "reduced"):
        missing = _reduced(by_name=requested == "reduced")
        if not missing:
            return TierChoice("reduced", "; ".join(why_not) or "reduced: works on this machine")
        why_not.append(f"reduced: {missing}")
    return TierChoice("none", "; ".join(why_not))


def _bubblewrap(avoid: Sequence[str], *, by_name: bool) -> tuple[str, str]:
    """Where it is, and why it does not serve."""
    if not by_name and os.geteuid() == 0:
        return "", "not for uid 0 unless asked for by name"
    try:
        program = bubblewrap.find(avoid)
    except Unsupported as error:
        return "", reason(error)
    return program, probe("full", program)


def _reduced(*, by_name: bool) -> str:
    return "not for uid 0 unless asked for by name" if not by_name and os.geteuid() == 0 else probe("reduced")


@functools.cache
def probe(tier: Literal["full", "reduced"], bubblewrap: str = "") -> str:
    """Why this machine does not give ``tier``, or an empty text: a command has just run in it."""
    try:
        if tier == "reduced" and (machine(), landlock.abi())[1] < _REDUCED_NEEDS_ABI:
            return f"Landlock is older than version {_REDUCED_NEEDS_ABI}"
        with tempfile.TemporaryDirectory() as folder:
            workspace = os.path.realpath(folder)
            roots = Roots(workspace, True, identities(interpreter_roots()), {})
            number = os.open(workspace, HANDLE | os.O_DIRECTORY)
            try:
                helper = Helper(Setup(tier, bubblewrap, roots), number)
            finally:
                os.close(number)
            try:
                return _try_one_command(helper, workspace)
            finally:
                helper.close()
    except (OSError, Unsupported) as error:
        return reason(error)


def _try_one_command(helper: Helper, home: str) -> str:
    plan = Plan([sys.executable, "-I", "-S", "-c", ""], ".", {"PATH": ""}, network=False, read_only=False, home=home)
    with open(os.devnull, "r+b", buffering=0) as null:
        job = helper.start(plan, [null.fileno()] * 3)
    try:
        while not job.ended():
            if not select.select([job.notice], [], [], _PATIENCE)[0]:
                return "a first command did not end"
    finally:
        job.close()
    match job.messages[:1]:
        case [("status", 0, _)]:
            return ""
        case [(step, number, text)]:
            return f"a first command failed: {text or f'{step} {number}'}"
    return "a first command failed"
