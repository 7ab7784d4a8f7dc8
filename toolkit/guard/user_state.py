"""Where the toolkit keeps what belongs to a user and to no project."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

CONFIRMED_IMPORTS: Final = "trusted-imports"
"""The folder, in the state directory, of what the user has confirmed: ``toolkit import`` runs that without asking."""

_NAME: Final = "typed-toolkit"


def user_state_directory() -> str:
    """The directory for this user's state, if no other is given."""
    base = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(base):  # the XDG specification says to ignore relative paths
        base = _usual_base()
    return os.path.join(base, _NAME)


def confirmed_imports() -> Iterator[str]:
    """Each place where ``toolkit import`` may look for what was confirmed: the user's shell may have other variables."""
    for state in {user_state_directory(), os.path.join(_usual_base(), _NAME)}:
        yield os.path.join(state, CONFIRMED_IMPORTS)


def _usual_base() -> str:
    return os.path.join(os.path.expanduser("~"), ".local", "state")
