"""Environment variables in settings: ``${NAME}`` in a text is replaced just before the text is used.

Promise: no error contains a value, and only the variables that a text names are read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from toolkit.errors import ToolFailed

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
