"""The reduced tier has no read-only mounts: an interpreter inside a root can be changed by commands, and what they write
there runs outside the sandbox, in this process or at the next start."""

from __future__ import annotations

import dataclasses
import logging
import os
from collections.abc import Sequence
from typing import Final

from toolkit.guard.process.tier import TierChoice
from toolkit.guard.trusted_code import places_to_hold

_log: Final = logging.getLogger("toolkit")


def judge_exposed_code(choice: TierChoice, roots: Sequence[str], *, by_name: bool) -> TierChoice:
    """The reduced tier as ``choice``, or no tier if commands could change code that runs outside it.

    Somebody who requested the tier by name gets it, with a warning. ``roots`` are where commands may write, the workspace
    first.
    """
    places = places_to_hold(roots)
    if not places:
        return choice
    place = os.path.relpath(places[0], os.path.realpath(roots[0]))
    exposed = f"the reduced sandbox cannot keep commands from changing the Python that runs this program ({place!r})"
    if by_name:
        _log.warning(
            "%s: what they write there runs outside the sandbox; use an environment outside the workspace", exposed
        )
        return choice
    why = f'{exposed}; use an environment outside the workspace, or request sandbox="reduced" by name'
    return dataclasses.replace(choice, name="none", reason=f"{choice.reason}; reduced: {why}")
