"""The events that a cleaned page consists of: starts and ends of elements, and the texts between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from toolkit.builtin.web.elements import BLOCKS, FORMATS


@dataclass(frozen=True, slots=True)
class Start:
    """The start of an element, or a whole element of ``VOID``."""

    name: str
    attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class End:
    """The end of the innermost open element."""

    name: str


Event: TypeAlias = Start | End | str
VOID: Final = frozenset({"br", "hr", "img"})

# Most events are one of these: made once.
_NAMES: Final = (*VOID, *BLOCKS.values(), *FORMATS.values())
STARTS: Final = {name: Start(name) for name in _NAMES}
ENDS: Final = {name: End(name) for name in _NAMES}
