"""Whether a field is ``Any`` only where its schema says nothing: a small reader of schemas next to the generated classes.

It knows nothing of how schemas are flattened. A class is read together with the places of the schema that describe it; where
a type is ``Any``, the places that describe the same value must say nothing, or the loss must be one of the findings.
"""

from __future__ import annotations

import types
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeAlias, Union, get_args, get_origin
from urllib.parse import unquote

from pydantic import BaseModel, RootModel
from typing_extensions import TypeAliasType

from tests.modules import documents, load_module
from toolkit.codegen.package.models import render_models
from toolkit.codegen.schema.document import Document
from toolkit.errors import SetupError

NOTHING_SAID: Final = "the schema says nothing"
_SILENT: Final = frozenset(
    {
        "$anchor", "$comment", "$defs", "$dynamicAnchor", "$id", "$schema", "$vocabulary", "contentEncoding",
        "contentMediaType", "contentSchema", "default", "definitions", "deprecated", "description", "discriminator", "example",
        "examples", "externalDocs", "format", "id", "nullable", "readOnly", "title", "writeOnly", "xml",
    }
)  # fmt: skip
"""Keywords that refuse no value."""
_IN_PLACE: Final = ("allOf", "anyOf", "oneOf")
_MOST_VIEWS: Final = 128


class Place(NamedTuple):
    """A part of a schema."""

    pointer: str
    schema: Any


View: TypeAlias = dict[str, Any]
"""The parts of a schema, by pointer, that describe one value together; unions have several."""


@dataclass(slots=True)
class StaticMeaning:
    """What the types of some tools say; instances can be added."""

    tools: int = 0
    fields: int = 0
    fields_with_any: int = 0
    """How many fields hold ``Any``, be it for one item, value or branch."""
    any_by_reason: Counter[str] = field(default_factory=Counter)
    """The same by the reason; "" where no finding reports it. A field may hold ``Any`` for several reasons."""
    losses: Counter[str] = field(default_factory=Counter)
    """How many places are reported as saying less than their schema, by the reason."""
    unreported: list[str] = field(default_factory=list)
    """Fields that hold ``Any`` although the schema says something, and no finding says so."""

    def add(self, other: StaticMeaning) -> None:
        self.tools += other.tools
        self.fields += other.fields
        self.fields_with_any += other.fields_with_any
        self.any_by_reason.update(other.any_by_reason)
        self.losses.update(other.losses)
        self.unreported += other.unreported


def static_meaning(row: dict[str, Any]) -> StaticMeaning:
    """What the types of one shared spec say; nothing for a tool that is refused."""
    inputs, outputs = row["inputSchema"], row.get("outputSchema")
    try:
        flat = documents(inputs, outputs)
    except SetupError:
        return StaticMeaning()
    module = load_module(render_models("x.json", "X", "A tool.", *flat), "generated_to_read_its_types")
    found = StaticMeaning(tools=1)
    for schema, document, model in ((inputs, flat[0], module.XInput), (outputs, flat[1], module.XOutput)):
        if schema is not None and document is not None:
            found.add(read_types(schema, document, model))
            found.unreported = [f"{row['key']}: {text}" for text in found.unreported]
    return found


def read_types(schema: Any, document: Document, model: type[BaseModel]) -> StaticMeaning:
    reader = _Reader(schema, document.losses)
    reader.found.losses.update(loss for loss, _ in document.losses)
    views = reader.views(Place("", schema))
    if issubclass(model, RootModel):
        reader.found.fields += 1
        reader.read_field(model.model_fields["root"].annotation, f"{model.__name__}.root", views, {""})
    else:
        reader.read_class(model, views)
    return reader.found


class _Reader:
    def __init__(self, root: Any, losses: Iterable[tuple[str, str]]) -> None:
        self.root = root
        self.losses = list(losses)
        self.found = StaticMeaning()
        self.seen: set[tuple[type, frozenset[str]]] = set()
        self.counted: set[type] = set()
        self.reasons: dict[str, set[str]] = {}

    def read_class(self, model: type[BaseModel], views: list[View]) -> None:
        names = {info.alias or name for name, info in model.model_fields.items()}
        mine = [view for view in views if _declared(view) | _required(view) == names] or views
        key = model, frozenset(pointer for view in mine for pointer in view)
        if key in self.seen:
            return
        self.seen.add(key)
        if model not in self.counted:
            self.counted.add(model)
            self.found.fields += len(model.model_fields)
        owners = {pointer for view in mine for pointer in view}
        for name, info in model.model_fields.items():
            wire = info.alias or name
            inner = [each for view in mine for place in _property(view, wire) for each in self.views(place)]
            hints = info.annotation if not info.metadata else Annotated[info.annotation, *info.metadata]
            self.read_field(hints, f"{model.__name__}.{wire}", inner, owners)

    def read_field(self, annotation: Any, name: str, views: list[View], owners: set[str]) -> None:
        known = self.reasons.setdefault(name, set())
        new = {*self.read(annotation, views, owners, frozenset())} - known
        self.found.fields_with_any += bool(new and not known)
        self.found.any_by_reason.update(new)
        known |= new
        if "" in new:
            self.found.unreported.append(f"{name} is {annotation} at {sorted({p for view in views for p in view})}")

    def read(self, annotation: Any, views: list[View], owners: set[str], passed: frozenset[str]) -> Iterator[str]:
        """The reason for each ``Any`` in a type; "" where the schema says something and no finding reports it."""
        origin, arguments = get_origin(annotation), get_args(annotation)
        if annotation is Any:
            yield self._reason(views, owners)
        elif isinstance(annotation, TypeAliasType):
            if annotation.__name__ not in passed:
                yield from self.read(annotation.__value__, views, owners, passed | {annotation.__name__})
        elif origin is Annotated:
            yield from self.read(arguments[0], views, owners, passed)
        elif origin in (Union, types.UnionType):
            for argument in arguments:
                yield from self.read(argument, views, owners, passed)
        elif origin is list:
            yield from self.read(arguments[0], self._inside(views, _items, "array"), owners, passed)
        elif origin is dict:
            yield from self.read(arguments[1], self._inside(views, _values, "object"), owners, passed)
        elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
            self.read_class(annotation, views)
        else:
            assert origin is Literal or annotation in (str, int, float, bool, None, type(None)), annotation

    def _inside(self, views: list[View], parts: Any, kind: str) -> list[View]:
        """What describes the items or values; an empty view for a branch of that type which says nothing about them."""
        found = [each for view in views for place in parts(view) for each in self.views(place)]
        silent = [view for view in views if not list(parts(view)) and _is_of(view, kind)]
        return [*found, {}] if silent else found

    def _reason(self, views: list[View], owners: set[str]) -> str:
        if {} in views or not any(map(_says_something, views)):
            return NOTHING_SAID
        contributing = {pointer for view in views for pointer in view}
        for loss, pointer in self.losses:
            if pointer in contributing or pointer in owners:
                return str(loss)
            around = any(each.startswith(f"{pointer}/") for each in contributing)
            if around and any(pointer.startswith(f"{owner}/") for owner in owners):
                return str(loss)
        return ""

    def views(self, place: Place, passed: frozenset[str] = frozenset()) -> list[View]:
        """Every way to choose branches: the parts that then describe the value."""
        pointer, schema = place
        if pointer in passed:
            return [{}]
        passed = passed | {pointer}
        found: list[View] = [{pointer: schema}]
        if not isinstance(schema, dict):
            return found
        ref = schema.get("$ref")
        if isinstance(ref, str) and (target := self._target(ref)) is not None:
            found = _combined(found, self.views(target, passed))
        for word in _IN_PLACE:
            branches = schema.get(word)
            made = [
                self.views(Place(f"{pointer}/{word}/{index}", branch), passed)
                for index, branch in enumerate(branches if isinstance(branches, list) else ())
            ]
            for several in made if word == "allOf" else [[view for some in made for view in some]] if made else []:
                found = _combined(found, several)
        return found

    def _target(self, ref: str) -> Place | None:
        if not ref.startswith("#"):
            return None
        node = self.root
        for part in unquote(ref[1:]).split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            if isinstance(node, list) and key.isdigit() and int(key) < len(node):
                node = node[int(key)]
            elif isinstance(node, dict) and key in node:
                node = node[key]
            else:
                return None
        return Place(unquote(ref[1:]), node)


def _combined(some: list[View], others: list[View]) -> list[View]:
    return [{**one, **other} for one in some for other in others][:_MOST_VIEWS]


def _says_something(view: View) -> bool:
    return any(
        schema is False or isinstance(schema, dict) and any(map(_refuses, schema, schema.values()))
        for schema in view.values()
    )


def _refuses(word: str, value: Any) -> bool:
    if word in _IN_PLACE or word.startswith("x-") or value in (True, {}, None):
        return False
    return word not in _SILENT and word != "$ref"


def _is_of(view: View, kind: str) -> bool:
    named = [schema["type"] for schema in view.values() if isinstance(schema, dict) and "type" in schema]
    return any(kind == each or isinstance(each, list) and kind in each for each in named)


def _maps(view: View, word: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for pointer, schema in view.items():
        if isinstance(schema, dict) and isinstance(schema.get(word), dict):
            yield f"{pointer}/{word}", schema[word]


def _declared(view: View) -> set[str]:
    return {name for _, properties in _maps(view, "properties") for name in properties}


def _required(view: View) -> set[str]:
    lists = [schema.get("required") for schema in view.values() if isinstance(schema, dict)]
    return {name for names in lists if isinstance(names, list) for name in names}


def _property(view: View, name: str) -> list[Place]:
    key = name.replace("~", "~0").replace("/", "~1")
    return [
        Place(f"{at}/{key}", properties[name]) for at, properties in _maps(view, "properties") if name in properties
    ]


def _values(view: View) -> Iterator[Place]:
    for pointer, patterns in _maps(view, "patternProperties"):
        for key, schema in patterns.items():
            yield Place(f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}", schema)
    for pointer, schema in _maps(view, "additionalProperties"):
        yield Place(pointer, schema)


def _items(view: View) -> Iterator[Place]:
    for pointer, schema in view.items():
        for word in ("items", "prefixItems", "additionalItems") if isinstance(schema, dict) else ():
            inner = schema.get(word)
            if isinstance(inner, list):
                yield from (Place(f"{pointer}/{word}/{index}", item) for index, item in enumerate(inner))
            elif inner is not None:
                yield Place(f"{pointer}/{word}", inner)
