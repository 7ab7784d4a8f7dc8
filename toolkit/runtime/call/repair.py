"""Repair of what models commonly get wrong in arguments; used only with ``ToolkitContext(coerce=True)``.

Three repairs, each only where the schema refuses the argument as it is and accepts what it becomes: a number or boolean
written as text, JSON text where an object or array is wanted, null for an optional argument.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from toolkit.errors import InvalidArguments
from toolkit.jsonschema.pointer import join_pointer
from toolkit.jsonschema.values import json_type
from toolkit.runtime.call.argument_text import parse_arguments

if TYPE_CHECKING:
    from toolkit.schema.keywords import References

Failing: TypeAlias = Callable[[dict[str, Any]], frozenset[object]]
"""Which arguments of an object the tool's validator refuses, by name."""


@dataclass(frozen=True, slots=True)
class Repair:
    """One repair: where, and what was done."""

    pointer: str
    what: str

    def as_json(self) -> dict[str, str]:
        return {"pointer": self.pointer, "what": self.what}


Schema: TypeAlias = dict[str, Any]
Candidate: TypeAlias = tuple[Any, list[Repair]]


def repair_arguments(
    arguments: dict[str, Any], schema: Mapping[str, Any], failing: Failing
) -> tuple[dict[str, Any], list[Repair]]:
    """A repaired copy of the arguments, and the repairs; what is accepted as it is stays as it is."""
    from toolkit.schema.keywords import References  # few calls need it

    references = References(schema)
    properties, required = schema.get("properties", {}), schema.get("required", ())
    made, repairs = dict(arguments), list[Repair]()
    refused = failing(arguments)
    for name in [name for name in arguments if name in refused]:
        nodes = _alternatives(properties.get(name), references)
        place = join_pointer("", name)
        if not nodes:
            continue
        if arguments[name] is None and name not in required:
            del made[name]
            repairs.append(Repair(place, "null read as omitted"))
            continue
        for value, done in _candidates(arguments[name], nodes, references, place):
            if done and name not in failing({**made, name: value}):
                made[name] = value
                repairs += done
                break
    return made, repairs


def _candidates(value: Any, nodes: list[Schema], references: References, pointer: str) -> Iterator[Candidate]:
    """What a value may have been meant as, each with the repairs it takes, for each of the schemas it may fit."""
    for node in nodes:
        for name in _own_types(node):
            if isinstance(value, str) and name != "string":
                yield from _read_text(value, name, node, references, pointer)
            elif isinstance(value, dict) and name == "object":
                yield _repair_object(value, node, references, pointer)
            elif isinstance(value, list) and name == "array":
                yield _repair_array(value, node, references, pointer)


def _read_text(text: str, name: str, schema: Schema, references: References, pointer: str) -> Iterator[Candidate]:
    try:
        value = parse_arguments(text)
    except InvalidArguments:
        return
    found = json_type(value)
    if found == name or (found == "integer" and name == "number"):
        note = Repair(pointer, f"string read as {found}")
        yield value, [note]
        for inner, done in _candidates(value, [schema], references, pointer) if name in ("object", "array") else ():
            yield inner, [note, *done]


def _repair_object(value: dict[str, Any], schema: Schema, references: References, pointer: str) -> Candidate:
    properties, required = schema.get("properties", {}), schema.get("required", ())
    made, repairs = dict(value), list[Repair]()
    for key, item in value.items():
        nodes = _alternatives(properties.get(key, schema.get("additionalProperties")), references)
        place = join_pointer(pointer, key)
        types = {name for node in nodes for name in _own_types(node)}
        if not nodes:
            continue
        if item is None and key in properties and key not in required and "null" not in types:
            del made[key]
            repairs.append(Repair(place, "null read as omitted"))
        elif not _is_one_of(item, types) or isinstance(item, dict | list):
            made[key], done = next(_candidates(item, nodes, references, place), (item, []))
            repairs += done
    return made, repairs


def _repair_array(value: list[Any], schema: Schema, references: References, pointer: str) -> Candidate:
    nodes = _alternatives(schema.get("items"), references)
    made, repairs = list[Any](), list[Repair]()
    for index, item in enumerate(value):
        found, done = next(_candidates(item, nodes, references, join_pointer(pointer, index)), (item, []))
        made.append(found)
        repairs += done
    return made, repairs


def _alternatives(schema: Any, references: References) -> list[Schema]:
    """The schema behind references and those of its unions, innermost first; none where anything goes."""
    found: list[Schema] = []
    seen: set[int] = set()

    def add(node: Any) -> None:
        node = references.follow(node)
        if not isinstance(node, dict) or id(node) in seen:
            return
        seen.add(id(node))
        for word in ("anyOf", "oneOf"):
            branches = node.get(word)
            for branch in branches if isinstance(branches, list) else ():
                add(branch)
        found.append(node)

    add(schema)
    return found


def _own_types(schema: Schema) -> list[str]:
    """The types that a schema names itself, not those of its branches."""
    from toolkit.jsonschema.types import types_of

    types = types_of(schema)
    if types is not None:
        return types
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    return list(dict.fromkeys(map(json_type, values)))


def _is_one_of(value: Any, types: set[str]) -> bool:
    return json_type(value) in types or json_type(value) == "integer" and "number" in types
