"""Which sandbox tier works on this machine, found out by trying it.

``full``: namespaces, read-only mounts, Landlock and seccomp; we build the first two ourselves, or bubblewrap does where
the machine allows them to it and not to us. ``reduced``: Landlock and seccomp; commands see names and sizes outside
(``stat``) and may change the metadata of files their user owns. ``none``: no command runs.

Promise: a tier is chosen only after a command has run in it. Nothing here reads an environment variable or a file of
the workspace, so neither can weaken the choice.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import shutil
import signal
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

from toolkit.errors import SetupError
from toolkit.guard.files.place import closing_descriptor
from toolkit.guard.files.resolve import HANDLE
from toolkit.guard.permission import Carrier, CarrierChoice, CommandLimits, SandboxChoice
from toolkit.guard.process import bubblewrap
from toolkit.guard.process.fork_client import ForkServerClient
from toolkit.guard.process.kernel import Unsupported, landlock_abi, machine, reason
from toolkit.guard.process.messages import CommandRequest, Roots, Setup, identities
from toolkit.guard.process.program import helper_interpreter, interpreter_roots
from toolkit.system_faults import SCARCE_AT_START, system_fault

Tier: TypeAlias = Literal["full", "reduced", "none"]

CHOICES: Final[tuple[SandboxChoice, ...]] = get_args(SandboxChoice)
CARRIERS: Final[tuple[CarrierChoice, ...]] = get_args(CarrierChoice)
# Older versions of Landlock do not cover TCP.
_REDUCED_NEEDS_ABI: Final = 4
_PROBE_SECONDS: Final = 20.0
_working: Final[set[tuple[str, str]]] = set()


@dataclass(frozen=True, slots=True)
class TierChoice:
    """The tier in use and the reason for it. ``unsafe``: commands run although there is no sandbox.

    ``bubblewrap`` is the path of the program that builds the full tier; empty if we build it ourselves.
    """

    name: Tier
    reason: str
    unsafe: bool = False
    bubblewrap: str = ""

    @property
    def carrier(self) -> Carrier:
        """Who builds the sandbox."""
        return "bubblewrap" if self.bubblewrap else "own"

    @property
    def runs_commands(self) -> bool:
        return self.unsafe or self.name != "none"


def pick_tier(requested: SandboxChoice, carrier: CarrierChoice = "auto", avoid: Sequence[str] = ()) -> TierChoice:
    """The tier for what was requested; one that is missing becomes ``none`` with the reason, never silently a lower one.

    ``auto`` is full, else reduced, but not for uid 0, whose files the reduced tier does not protect enough. We build the
    full tier ourselves, else bubblewrap does, but for uid 0 only when requested by name; its program must not be below
    ``avoid``.
    """
    if requested not in CHOICES:
        raise SetupError(f"sandbox must be one of {', '.join(CHOICES)}, not {requested!r}")
    if carrier not in CARRIERS:
        raise SetupError(f"carrier must be one of {', '.join(CARRIERS)}, not {carrier!r}")
    if requested == "unsafe-none":
        return TierChoice("none", "requested by name: commands run without any sandbox", unsafe=True)
    why_not: list[str] = []
    if requested in ("auto", "full"):
        if carrier in ("auto", "own"):
            missing = probe("full")
            if not missing:
                return TierChoice("full", "full: works on this machine")
            why_not.append(f"full: {missing}")
        if carrier in ("auto", "bubblewrap"):
            program, missing = _try_bubblewrap(avoid, by_name=carrier == "bubblewrap")
            if not missing:
                why = "; ".join([*why_not, "bubblewrap: builds the full tier on this machine"])
                return TierChoice("full", why, bubblewrap=program)
            why_not.append(f"bubblewrap: {missing}")
    if requested in ("auto", "reduced"):
        missing = _try_reduced(by_name=requested == "reduced")
        if not missing:
            return TierChoice("reduced", "; ".join(why_not) or "reduced: works on this machine")
        why_not.append(f"reduced: {missing}")
    return TierChoice("none", "; ".join(why_not))


def _try_bubblewrap(avoid: Sequence[str], *, by_name: bool) -> tuple[str, str]:
    """The path of bubblewrap, and why it cannot be used, or an empty text."""
    if not by_name and os.geteuid() == 0:
        return "", "not for uid 0 unless requested by name"
    try:
        program = bubblewrap.find(avoid)
    except Unsupported as error:
        return "", reason(error)
    return program, probe("full", program)


def _try_reduced(*, by_name: bool) -> str:
    return "not for uid 0 unless requested by name" if not by_name and os.geteuid() == 0 else probe("reduced")


def probe(tier: Literal["full", "reduced"], bubblewrap: str = "") -> str:
    """Why ``tier`` does not work on this machine, or an empty text after a command has run in it.

    Only that it works is remembered. Raises the failure ``SYSTEM`` if something has run out that a sandbox needs: it is
    not known then what this machine can do, and no lower tier is chosen.
    """
    if (tier, bubblewrap) in _working:
        return ""
    try:
        why_not = _try(tier, bubblewrap)
    except OSError as error:
        if error.errno in SCARCE_AT_START:
            raise system_fault("the sandbox could not be tried", reason(error)) from None
        return reason(error)
    except Unsupported as error:
        return reason(error)
    if not why_not:
        _working.add((tier, bubblewrap))
    return why_not


def _try(tier: Literal["full", "reduced"], bubblewrap: str) -> str:
    if tier == "reduced" and (machine(), landlock_abi())[1] < _REDUCED_NEEDS_ABI:
        return f"Landlock is older than version {_REDUCED_NEEDS_ABI}"
    with _empty_folder() as workspace:
        roots = Roots(workspace, True, identities(interpreter_roots()), {})
        with closing_descriptor(os.open(workspace, HANDLE | os.O_DIRECTORY)) as folder:
            server = ForkServerClient(Setup(tier, bubblewrap, roots, CommandLimits()), folder)
        try:
            return _try_one_command(server, workspace)
        finally:
            server.close()


@contextlib.contextmanager
def _empty_folder() -> Iterator[str]:
    workspace = os.path.realpath(tempfile.mkdtemp())
    try:
        yield workspace
    finally:
        try:
            os.rmdir(workspace)  # opens nothing: it also works when no descriptor is left
        except OSError:
            shutil.rmtree(workspace, ignore_errors=True)


def _try_one_command(server: ForkServerClient, home: str) -> str:
    argv = [helper_interpreter(), "-I", "-S", "-c", ""]
    request = CommandRequest(argv, ".", {"PATH": ""}, network="none", read_only=False, home=home)
    with open(os.devnull, "r+b", buffering=0) as null:
        command = server.start(request, [null.fileno()] * 3)
    poller = select.poll()
    poller.register(command.poll_fd, select.POLLIN)
    try:
        while not command.has_ended():
            if not poller.poll(_PROBE_SECONDS * 1000):
                raise OSError(errno.EAGAIN, "a test command did not end")
    finally:
        command.close()
    match command.reports[:1]:
        case [("status", 0, _)]:
            return ""
        case [("status", signal.SIGKILL, _)]:
            raise OSError(errno.EAGAIN, "a test command was killed")
        case [(step, number, text)] if step != "status" and number in SCARCE_AT_START:
            raise OSError(number, text)
        case [(step, number, text)]:
            return f"a test command failed: {text or f'{step} {number}'}"
    return "a test command failed"
