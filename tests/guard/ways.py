"""The ways to run a command on this machine, and a guard for each. Tests use all that are available."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final, Literal, TypeAlias

import pytest

from toolkit.guard import CarrierChoice, CommandLimits, GitMode, Mode, Network, ProcessGuard, SandboxChoice
from toolkit.guard.files.protect import Root
from toolkit.guard.permission import UnenforcedRules
from toolkit.guard.process.tier import pick_tier

Way: TypeAlias = Literal["full", "bubblewrap", "reduced", "unsafe-none"]

FULL: Final[tuple[Way, ...]] = ("full", "bubblewrap")  # the same tier, built by ourselves and by bubblewrap
SANDBOXED: Final[tuple[Way, ...]] = (*FULL, "reduced")
ALL: Final[tuple[Way, ...]] = (*SANDBOXED, "unsafe-none")

_ASKED: Final[dict[Way, tuple[SandboxChoice, CarrierChoice]]] = {
    "full": ("full", "own"),
    "bubblewrap": ("full", "bubblewrap"),
    "reduced": ("reduced", "auto"),
    "unsafe-none": ("unsafe-none", "auto"),
}


def needs(way: Way) -> None:
    """Skip the test if this machine does not support it."""
    choice = pick_tier(*_ASKED[way])
    if not choice.runs_commands:
        pytest.skip(f"this machine gives no {way}: {choice.reason}")


@cache
def best_way() -> Way:
    """The one whose rows ``make test`` runs: ``full`` where there is one."""
    return next(way for way in ALL if pick_tier(*_ASKED[way]).runs_commands)


def has_ipv6() -> bool:
    """Whether this machine has a loopback address of IPv6."""
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


def guard_in(
    way: Way,
    workspace: Path,
    *,
    mode: Mode = "workspace-write",
    read_roots: Sequence[str | Root] = (),
    write_roots: Sequence[str | Root] = (),
    state_dir: str | None = None,
    limits: CommandLimits | None = None,
    internet: Network | None = None,
    git: GitMode = "commit",
    keep: Sequence[str] = (),
    unenforced_rules: UnenforcedRules = "refuse",
) -> ProcessGuard:
    """A guard whose commands run that way."""
    needs(way)
    sandbox, carrier = _ASKED[way]
    return ProcessGuard(
        str(workspace),
        sandbox=sandbox,
        carrier=carrier,
        mode=mode,
        read_roots=read_roots,
        write_roots=write_roots,
        state_dir=state_dir,
        limits=limits,
        internet=internet,
        git=git,
        keep=keep,
        unenforced_rules=unenforced_rules,
    )
