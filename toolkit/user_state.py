"""What belongs to a user and to no project: the state directory, which folder a record there is about, and the environment
variables that settings name."""

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

REMEMBERED_APPROVALS: Final = "remembered-approvals"
"""The folder, in the state directory, of approvals that the user wants to be remembered."""

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


def remembered_approvals() -> list[str]:
    """Each place where approvals of this user may be remembered."""
    return [os.path.join(state, REMEMBERED_APPROVALS) for state in _state_directories()]


def _state_directories() -> set[str]:
    """The user's shell may have other variables."""
    return {user_state_directory(), os.path.join(_usual_base(), _NAME)}


def _usual_base() -> str:
    return os.path.join(os.path.expanduser("~"), ".local", "state")


# -- which folder ------------------------------------------------------------------------------------------------------

# A name is not enough: another folder may have it later. Device and inode number tell the two apart, but a file system may
# give the number of a removed folder to the next one, so the time of birth counts as well.
#
# Limit: where the system does not tell that time (file systems without one, old C libraries), a folder that was removed and
# made again may pass for the same.

_AT_FDCWD, _AT_EMPTY_PATH, _STATX_BTIME = -100, 0x1000, 0x800
_STATX_SIZE, _BTIME_AT = 256, 80


def identify_folder(folder: str | int) -> str:
    """What distinguishes a folder, given by its path or as an open descriptor, from another one in its place.

    >>> identify_folder("/") == identify_folder("/"), identify_folder("/") == identify_folder("/proc")
    (True, False)
    """
    info = os.stat(folder)
    return f"{info.st_dev}:{info.st_ino}:{_find_birth(folder)}"


def _find_birth(folder: str | int) -> str:
    """When the folder was made, in nanoseconds; empty if the system does not say."""
    import ctypes
    import struct

    statx = getattr(ctypes.CDLL(None), "statx", None)
    if statx is None:
        return ""
    found = ctypes.create_string_buffer(_STATX_SIZE)
    place = (folder, b"", _AT_EMPTY_PATH) if isinstance(folder, int) else (_AT_FDCWD, os.fsencode(folder), 0)
    if statx(*place, _STATX_BTIME, found) != 0 or not struct.unpack_from("=I", found)[0] & _STATX_BTIME:
        return ""
    seconds, nanoseconds = struct.unpack_from("=qI", found, _BTIME_AT)
    return f"{seconds}.{nanoseconds:09}"


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
