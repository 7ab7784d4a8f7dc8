"""What became of a schema in strict mode, and how to turn a model's answers back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

from toolkit.adapters.plain_json import JsonDict
from toolkit.adapters.strict.restore import KEEP, Reading, RestorePlan
from toolkit.schema.accepts import Judge

Effect: TypeAlias = Literal["moved", "reshaped", "loosened", "dropped"]
"""``moved``: written into the description, no longer enforced by the provider. ``reshaped``: requested in another form, which
decoding turns back. ``loosened``: the provider lets more pass than the schema; the tool's own check still refuses it.
``dropped``: left out."""


class Problem(NamedTuple):
    """Why strict mode cannot carry a schema, and where: a JSON pointer into the schema."""

    pointer: str
    why: str


class Note(NamedTuple):
    """What one keyword of the schema became. ``pointer`` leads to the schema that has the keyword."""

    pointer: str
    keyword: str
    effect: Effect
    what: str


@dataclass(frozen=True, slots=True)
class StrictReceipt:
    """A schema for strict mode and how to read what comes back; or the unchanged schema, and why it stays unchanged.

    Nothing is promised of an answer that does not follow ``schema``: it is turned back as far as it can be.
    """

    schema: JsonDict
    problems: tuple[Problem, ...] = ()
    notes: tuple[Note, ...] = ()
    plan: RestorePlan = KEEP
    plans: Mapping[str, RestorePlan] = field(default_factory=dict)

    @property
    def is_strict(self) -> bool:
        """Whether ``schema`` can be sent with ``strict: true``."""
        return not self.problems

    def decode(self, arguments: Mapping[str, object]) -> dict[str, Any]:
        """The arguments as the tool's own schema wants them: what was left out is absent or has its default, maps are maps.

        Of two pairs with the same key the last one counts, as in any JSON. Never raises.
        """
        try:
            value = self.plan.read(dict(arguments), Reading(self.plans, Judge(self.schema)))
        except RecursionError:
            return dict(arguments)  # nothing that deep is accepted by any tool
        return value if isinstance(value, dict) else dict(arguments)
