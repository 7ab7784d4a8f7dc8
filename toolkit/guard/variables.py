"""Variables of the environment that the set-up names: ``${NAME}`` in a text, filled in at the last moment.

Promise: a value stands in no error, and only the variables that a text names are read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from toolkit.errors import ToolFailed

_NAMED: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


def read_variables(texts: Iterable[str], owner: str) -> dict[str, str]:
    """The values of all variables that ``texts`` name; one that is not set, or empty, is an error that names it."""
    return values_of(dict.fromkeys(name for text in texts for name in _NAMED.findall(text)), owner)


def values_of(names: Collection[str], owner: str) -> dict[str, str]:
    """The same for variables by name."""
    missing = [name for name in names if not os.environ.get(name)]
    if missing:
        words = f"the environment variable{'s' * (len(missing) > 1)} {', '.join(missing)}"
        raise ToolFailed("NOT_CONFIGURED", f"{owner} needs {words}, not set where this toolkit runs", variables=missing)
    return {name: os.environ[name] for name in names}


def filled(text: str, variables: Mapping[str, str]) -> str:
    """``text`` with the values in place of the names; what is no name of one stays.

    >>> filled("Bearer ${TOKEN}", {"TOKEN": "t"})
    'Bearer t'
    """
    return _NAMED.sub(lambda match: variables.get(match[1], match[0]), text)
