"""What all parts of one transform share: what was found so far, references and merging, and descriptions."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from toolkit.adapters.plain_json import JsonDict
from toolkit.adapters.strict.receipt import Effect, Note, Problem
from toolkit.adapters.strict.restore import KEEP, Choice, Defined, RestorePlan
from toolkit.adapters.strict.rules import StrictRules
from toolkit.adapters.values import compact
from toolkit.jsonschema.keywords import DEFINITIONS, IDENTIFIERS
from toolkit.jsonschema.pointer import find_at, join_pointer, split_pointer
from toolkit.schema.accepts import Judge
from toolkit.schema.keywords import References, ReferenceTarget
from toolkit.schema.merge import NotMergeable, conjuncts, merge

_SILENT: Final = IDENTIFIERS | DEFINITIONS
MAX_NODES: Final = 20_000
MAX_DEPTH: Final = 64
MAX_PROBLEMS: Final = 100
MAX_VALUE_TEXT: Final = 500
_ODD: Final = re.compile(r"[^A-Za-z0-9_.-]+")
MAX_MERGED: Final = 32
ROOT: Final = "#"
Merged: TypeAlias = JsonDict | Literal[False]
"""A schema without ``allOf`` and ``$ref``, or False where no value fits."""


class Converted(NamedTuple):
    """A schema for strict mode, and the way back from its answers."""

    schema: JsonDict
    plan: RestorePlan = KEEP


# With a problem the whole is not sent, so anything may take the place.
FAILED: Final = Converted({"type": "null"})


class TransformTooLarge(Exception):
    """More work than any tool's schema needs."""


class _WaitingDefinition(NamedTuple):
    name: str
    target: ReferenceTarget


class TransformState:
    """One transform of one schema. ``convert`` turns any schema below the root."""

    def __init__(
        self,
        root: JsonDict,
        root_stays: bool,
        convert: Callable[[TransformState, Any, str, int], Converted],
        rules: StrictRules,
    ) -> None:
        self.root = root
        self.rules: Final = rules
        # Each once, in the order they were found.
        self.problems: dict[Problem, None] = {}
        self.notes: dict[Note, None] = {}
        self.choices: list[tuple[str, str, Choice]] = []
        self._convert = convert
        self.references: Final = References(root)
        self._judge = Judge(root)
        self._nodes = 0
        self._by_place: dict[str, str] = {"": ROOT} if root_stays else {}
        self._names: Counter[str] = Counter()
        self._waiting: deque[_WaitingDefinition] = deque()
        # Which definitions refer to which; the root counts as one.
        self._inside = ROOT
        self._leads_to: dict[str, set[str]] = {}

    def convert(self, schema: Any, pointer: str, depth: int) -> Converted:
        self.spend(pointer)
        if depth > MAX_DEPTH:
            return self.fail(pointer, f"nested deeper than {MAX_DEPTH} schemas")
        return self._convert(self, schema, pointer, depth)

    def spend(self, pointer: str = "") -> None:
        """Counts one schema looked at; merging looks at some more than once."""
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise TransformTooLarge(f"the schema has more than {MAX_NODES} parts")

    def fail(self, pointer: str, why: str) -> Converted:
        """Records why strict mode cannot carry this."""
        if len(self.problems) < MAX_PROBLEMS:
            self.problems[Problem(self._existing_pointer(pointer), why)] = None
        return FAILED

    def note(self, pointer: str, keyword: str, effect: Effect, what: str) -> None:
        place = self._existing_pointer(join_pointer(pointer, keyword)) if keyword else ""
        last = join_pointer("", keyword)
        pointer = place.removesuffix(last) if keyword and place.endswith(last) else self._existing_pointer(pointer)
        self.notes[Note(pointer, keyword, effect, what)] = None

    def _existing_pointer(self, pointer: str) -> str:
        """The pointer to a place the schema has: what was merged into a branch is next to the union, or nowhere."""
        path = split_pointer(pointer)
        count = find_at(self.root, path)[1]
        if count == len(path):
            return pointer
        if count > 1 and path[count - 2] in ("anyOf", "oneOf") and path[count - 1].isdecimal():
            around = [*path[: count - 2], *path[count:]]
            if find_at(self.root, around)[1] > count - 2:
                return self._existing_pointer(join_pointer("", *around))
        return join_pointer("", *path[:count])

    def fits(self, value: Any, schema: Any) -> bool:
        return self._judge.fits(value, schema)

    def flatten(self, schema: Any) -> Merged:
        """The schema with ``allOf`` and ``$ref`` merged into it; raises ``NotMergeable``."""
        return self._merge(self._conjuncts(schema))

    def with_base(self, base: JsonDict, branch: Any) -> Merged:
        """A branch of a union merged with the keywords next to the union."""
        return self._merge([*self._conjuncts(branch), base]) if base else branch

    def _conjuncts(self, schema: Any) -> list[JsonDict | bool]:
        found = conjuncts(schema, self.references, self._follow, self._check_depth)
        return [conjunct.schema for conjunct in found]

    def _merge(self, parts: list[JsonDict | bool]) -> Merged:
        merged = merge(parts)
        if merged.is_empty:
            return False
        if merged.why_wider is not None:
            raise NotMergeable(merged.why_wider)
        return merged.schema

    def _check_depth(self, pointer: str, depth: int) -> None:
        if depth > MAX_MERGED:
            raise NotMergeable(f"'allOf' and '$ref' join more than {MAX_MERGED} schemas")

    def _follow(self, ref: Any, pointer: str = "") -> ReferenceTarget:
        self.spend()
        target = self.references.find(ref)
        if target is None:
            what = "nothing" if str(ref).startswith("#") else "something outside the schema"
            raise NotMergeable(f"the reference {str(ref)[:80]!r} refers to {what}")
        return target

    def refer_to_definition(self, ref: Any) -> Converted:
        """A reference to a definition, which is made when all else is done; raises ``NotMergeable``."""
        target = self._follow_to_end(ref)
        name = self._by_place.get(target.pointer)
        if name is None:
            name = self._by_place[target.pointer] = self._choose_name(target.pointer)
            self._waiting.append(_WaitingDefinition(name, target))
        self._leads_to.setdefault(self._inside, set()).add(name)
        return Converted({"$ref": ROOT if name == ROOT else f"#/$defs/{name}"}, Defined(name))

    def convert_definitions(self) -> dict[str, Converted]:
        """All definitions that something leads to."""
        made: dict[str, Converted] = {}
        while self._waiting:
            definition = self._waiting.popleft()
            self._inside = definition.name
            made[definition.name] = self.convert(definition.target.schema, definition.target.pointer, 1)
        return made

    def refuse_recursion(self) -> None:
        """Records the definitions that contain themselves as problems."""
        for place, name in self._by_place.items():
            seen: set[str] = set()
            pending = [name]
            while pending:
                following = self._leads_to.get(pending.pop(), set()) - seen
                seen |= following
                pending += following
            if name in seen:
                self.fail(place, "the schema contains itself, which this strict mode does not support")

    def _follow_to_end(self, ref: Any) -> ReferenceTarget:
        """Where a reference leads in the end, when it leads to a mere reference."""
        seen = set()
        target = self._follow(ref)
        while isinstance(target.schema, dict) and set(target.schema) == {"$ref"}:
            if target.pointer in seen:
                raise NotMergeable("'$ref' is circular")
            seen.add(target.pointer)
            target = self._follow(target.schema["$ref"])
        return target

    def _choose_name(self, pointer: str) -> str:
        path = split_pointer(pointer)
        stem = (_ODD.sub("_", path[-1])[:60] if path else "root") or "schema"
        self._names[stem] += 1
        # No stem ends with two dashes and a number, so that made names differ from all others.
        return stem if self._names[stem] == 1 else f"{stem}--{self._names[stem]}"


class DescriptionText:
    """The title and description of a strict schema; keywords that strict mode does not have are written into the latter."""

    def __init__(self, state: TransformState, schema: JsonDict, pointer: str) -> None:
        self._state, self._schema, self._pointer = state, schema, pointer
        self._moved: list[str] = []

    def move(self, keyword: str) -> None:
        """Writes a keyword into the description."""
        text = compact(self._schema[keyword])
        if len(text) > MAX_VALUE_TEXT:
            text = f"{text[:MAX_VALUE_TEXT]}…"
        self.say(f"{keyword}: {text}", keyword, "moved", "written in the description")

    def say(self, text: str, keyword: str, effect: Effect, what: str) -> None:
        self._moved.append(text)
        self._state.note(self._pointer, keyword, effect, what)

    def move_all_but(self, served: tuple[str, ...]) -> None:
        """Writes every keyword into the description that is neither served nor about the document."""
        for word in self._schema:
            if word not in served and word not in _SILENT and not word.startswith("x-"):
                self.move(word)

    def add_to(self, strict: JsonDict) -> JsonDict:
        """The strict schema with title and description."""
        title, description = self._schema.get("title"), self._schema.get("description")
        text = description if isinstance(description, str) else ""
        if self._moved:
            text = f"{text} ({'; '.join(self._moved)})".strip()
        spoken = {"title": title if isinstance(title, str) else "", "description": text}
        added = {word: value for word, value in spoken.items() if value}
        if added and "$ref" in strict:
            return {"anyOf": [strict], **added}
        return {**strict, **added}
