"""What belongs to a user and to no project: the state directory, and the environment variables that settings name."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from toolkit.errors import ToolFailed

CONFIRMED_IMPORTS: Final = "trusted-imports"
"""The folder, in the state directory, of what the user has confirmed: ``toolkit import`` runs that without asking."""

TOKEN_RECORDS: Final = "mcp-tokens"
"""The folder, in the state directory, of what logins to servers have left."""

_NAME: Final = "typed-toolkit"


def user_state_directory() -> str:
    """The directory for this user's state, if no other is given."""
    base = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(base):  # the XDG specification says to ignore relative paths
        base = _usual_base()
    return os.path.join(base, _NAME)


def confirmed_imports() -> list[str]:
    """Each place where ``toolkit import`` may look for what was confirmed."""
    return [os.path.join(state, CONFIRMED_IMPORTS) for state in _state_directories()]


def token_records() -> list[str]:
    """Each place where tokens of this user may be kept."""
    return [os.path.join(state, TOKEN_RECORDS) for state in _state_directories()]


def _state_directories() -> set[str]:
    """The user's shell may have other variables."""
    return {user_state_directory(), os.path.join(_usual_base(), _NAME)}


def _usual_base() -> str:
    return os.path.join(os.path.expanduser("~"), ".local", "state")


# -- environment variables ---------------------------------------------------------------------------------------------

# ``${NAME}`` in a setting is replaced just before the text is used. No error contains a value, and only the variables that a
# text names are read.

_NAMED: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def read_variables(texts: Iterable[str], owner: str) -> dict[str, str]:
    """The values of all variables that ``texts`` refer to. It is an error if one is not set or empty."""
    return read_variables_by_name(dict.fromkeys(name for text in texts for name in _NAMED.findall(text)), owner)


def read_variables_by_name(names: Collection[str], owner: str) -> dict[str, str]:
    """The values of the variables with these names."""
    missing = [name for name in names if not os.environ.get(name)]
    if missing:
        needed = f"the environment variable{'s' * (len(missing) > 1)} {', '.join(missing)}"
        problem = f"{owner} needs {needed}; set {'them' if len(missing) > 1 else 'it'} where this toolkit runs"
        raise ToolFailed("NOT_CONFIGURED", problem, variables=missing)
    return {name: os.environ[name] for name in names}


def fill_in(text: str, variables: Mapping[str, str]) -> str:
    """``text`` with the values of ``variables``; other ``${...}`` stay as they are.

    >>> fill_in("Bearer ${TOKEN}", {"TOKEN": "t"})
    'Bearer t'
    """
    return _NAMED.sub(lambda match: variables.get(match[1], match[0]), text)
