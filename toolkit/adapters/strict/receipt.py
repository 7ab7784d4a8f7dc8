"""What became of a schema in strict mode, and how to turn a model's answers back, one small step per form.

A value that does not have the requested form stays as it is: the tool's own check will report what is wrong.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeAlias

from toolkit.adapters.values import JsonDict
from toolkit.schema.accepts import Judge

Effect: TypeAlias = Literal["moved", "reshaped", "loosened", "dropped"]
"""``moved``: written into the description, no longer enforced by the provider. ``reshaped``: requested in another form, which
decoding turns back. ``loosened``: the provider lets more pass than the schema; the tool's own check still refuses it.
``dropped``: left out."""


class _Nothing:
    """Marks what has no default: null would be one."""

    def __repr__(self) -> str:
        return "nothing"


NOTHING: Final = _Nothing()


# -- how to read each form -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reading:
    """What all steps of one decoding share: the plans of definitions, and the judge of which form a value has."""

    plans: Mapping[str, RestorePlan]
    judge: Judge


class RestorePlan(Protocol):
    """How to turn one form back."""

    def read(self, value: Any, reading: Reading) -> Any: ...


@dataclass(frozen=True, slots=True)
class Keep:
    """The value is in the requested form already."""

    def read(self, value: Any, reading: Reading) -> Any:
        return value


KEEP: Final = Keep()


@dataclass(frozen=True, slots=True)
class Defined:
    """The form of a definition, which may lead back here."""

    name: str

    def read(self, value: Any, reading: Reading) -> Any:
        return reading.plans.get(self.name, KEEP).read(value, reading)


@dataclass(frozen=True, slots=True)
class Member:
    """One property: how to read it, whether null means omitted, and what it is then."""

    plan: RestorePlan = KEEP
    null_is_absent: bool = False
    default: Any = NOTHING

    @property
    def is_kept(self) -> bool:
        return self.plan == KEEP and not self.null_is_absent and self.default is NOTHING


@dataclass(frozen=True, slots=True)
class Members:
    """An object. ``rest`` names the property that holds the pairs for which the schema has no names."""

    members: Mapping[str, Member]
    rest: str | None = None

    def read(self, value: Any, reading: Reading) -> Any:
        if not isinstance(value, dict):
            return value
        whole: JsonDict = {}
        pairs = None
        for name, given in value.items():
            member = self.members.get(name)
            if member is None:
                whole[name] = given
            elif given is None and member.null_is_absent:
                _fill(whole, name, member)
            elif name == self.rest:
                pairs = member.plan.read(given, reading)
            else:
                whole[name] = member.plan.read(given, reading)
        for name, member in self.members.items():
            if name not in value:
                _fill(whole, name, member)
        if isinstance(pairs, dict):
            # A pair is for what the schema does not name.
            whole |= {name: item for name, item in pairs.items() if name not in self.members or name == self.rest}
        return whole


def _fill(whole: JsonDict, name: str, member: Member) -> None:
    if member.default is not NOTHING:
        whole[name] = copy.deepcopy(member.default)


@dataclass(frozen=True, slots=True)
class Each:
    """A list of which every item is to be read."""

    plan: RestorePlan

    def read(self, value: Any, reading: Reading) -> Any:
        return [self.plan.read(item, reading) for item in value] if isinstance(value, list) else value


@dataclass(frozen=True, slots=True)
class Pairs:
    """A list of keys and values that is a map."""

    plan: RestorePlan

    def read(self, value: Any, reading: Reading) -> Any:
        if not isinstance(value, list) or not all(_is_pair(item) for item in value):
            return value
        return {item["key"]: self.plan.read(item["value"], reading) for item in value}


def _is_pair(item: Any) -> bool:
    return isinstance(item, dict) and item.keys() == {"key", "value"} and isinstance(item["key"], str)


@dataclass(frozen=True, slots=True)
class Places:
    """An object with one property a place that is a list, each place with a schema of its own."""

    plans: Mapping[str, RestorePlan]

    def read(self, value: Any, reading: Reading) -> Any:
        if not isinstance(value, dict) or value.keys() != self.plans.keys():
            return value
        return [plan.read(value[name], reading) for name, plan in self.plans.items()]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several forms: the first that the value has."""

    forms: tuple[tuple[JsonDict, RestorePlan], ...]

    def read(self, value: Any, reading: Reading) -> Any:
        for schema, plan in self.forms:
            if reading.judge.fits(value, schema):
                return plan.read(value, reading)
        return value


@dataclass(frozen=True, slots=True)
class Wrapped:
    """Arguments that are the only property of an object, because the root must be one."""

    name: str
    plan: RestorePlan

    def read(self, value: Any, reading: Reading) -> Any:
        if not isinstance(value, dict) or value.keys() != {self.name}:
            return value
        return self.plan.read(value[self.name], reading)


# -- the receipt ---------------------------------------------------------------------------------------------------------


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
