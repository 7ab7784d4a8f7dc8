"""Repair of what models commonly get wrong in arguments; used only with ``ToolkitContext(coerce=True)``.

Three repairs, each only where the schema refuses the argument as it is and accepts what it becomes: a number or boolean
written as text, JSON text where an object or array is wanted, null for an optional argument.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from toolkit.errors import InvalidArguments
from toolkit.runtime.call.argument_text import parse_arguments

Failing: TypeAlias = Callable[[dict[str, Any]], frozenset[object]]
"""Which arguments of an object the tool's validator refuses, by name."""


@dataclass(frozen=True, slots=True)
class Repair:
    """One repair: where, and what was done."""

    pointer: str
    what: str

    def as_json(self) -> dict[str, str]:
        return {"pointer": self.pointer, "what": self.what}


Candidate: TypeAlias = tuple[Any, list[Repair]]


def repaired(
    arguments: dict[str, Any], schema: Mapping[str, Any], failing: Failing
) -> tuple[dict[str, Any], list[Repair]]:
    """A mended copy of the arguments and the list of what was mended; what is accepted as it is stays as it is."""
    properties, required = schema.get("properties", {}), schema.get("required", ())
    mended, repairs = dict(arguments), list[Repair]()
    for name in [name for name in arguments if name in failing(arguments)]:
        node = _resolved(properties.get(name), schema)
        if node is None:
            continue
        place = f"/{name.replace('~', '~0').replace('/', '~1')}"
        if arguments[name] is None and name not in required:
            del mended[name]
            repairs.append(Repair(place, "null taken as left out"))
            continue
        for value, done in _candidates(arguments[name], node, schema, place):
            if done and name not in failing({**mended, name: value}):
                mended[name] = value
                repairs += done
                break
    return mended, repairs


def _candidates(value: Any, schema: Mapping[str, Any], root: Mapping[str, Any], pointer: str) -> Iterator[Candidate]:
    """What a value may have been meant as, each with the repairs it takes; every branch of a union has its say."""
    branches = [branch for word in ("anyOf", "oneOf") for branch in schema.get(word, ())]
    for branch in branches:
        node = _resolved(branch, root)
        if node is not None:
            yield from _candidates(value, node, root, pointer)
    for kind in _types(schema):
        if isinstance(value, str) and kind != "string":
            yield from _read_text(value, kind, schema, root, pointer)
        elif isinstance(value, dict) and kind == "object":
            yield _object(value, schema, root, pointer)
        elif isinstance(value, list) and kind == "array":
            yield _array(value, schema, root, pointer)


def _read_text(
    text: str, kind: str, schema: Mapping[str, Any], root: Mapping[str, Any], pointer: str
) -> Iterator[Candidate]:
    try:
        value = parse_arguments(text)
    except InvalidArguments:
        return
    found = _kind(value)
    if found == kind or (found == "integer" and kind == "number"):
        note = Repair(pointer, f"text read as {found}")
        yield value, [note]
        for inner, done in _candidates(value, schema, root, pointer) if kind in ("object", "array") else ():
            yield inner, [note, *done]


def _object(value: dict[str, Any], schema: Mapping[str, Any], root: Mapping[str, Any], pointer: str) -> Candidate:
    properties, required = schema.get("properties", {}), schema.get("required", ())
    mended, repairs = dict(value), list[Repair]()
    for key, item in value.items():
        node = _resolved(properties.get(key, schema.get("additionalProperties")), root)
        place = f"{pointer}/{str(key).replace('~', '~0').replace('/', '~1')}"
        if node is None:
            continue
        if item is None and key in properties and key not in required and "null" not in _all_types(node, root):
            del mended[key]
            repairs.append(Repair(place, "null taken as left out"))
        elif _kind(item) not in _all_types(node, root) or isinstance(item, dict | list):
            mended[key], done = next(_candidates(item, node, root, place), (item, []))
            repairs += done
    return mended, repairs


def _array(value: list[Any], schema: Mapping[str, Any], root: Mapping[str, Any], pointer: str) -> Candidate:
    node = _resolved(schema.get("items"), root)
    repairs: list[Repair] = []
    if node is None:
        return value, repairs
    mended = []
    for index, item in enumerate(value):
        made, done = next(_candidates(item, node, root, f"{pointer}/{index}"), (item, []))
        mended.append(made)
        repairs += done
    return mended, repairs


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return "integer"
    if isinstance(value, float):
        return "number"
    if isinstance(value, str):
        return "string"
    if isinstance(value, dict | list):
        return "object" if isinstance(value, dict) else "array"
    return "null"


def _resolved(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The schema behind references; None where anything goes."""
    for _ in range(32):
        if not isinstance(schema, Mapping):
            return None
        ref = schema.get("$ref")
        if not isinstance(ref, str):
            return schema
        _, section, name = ref.split("/", 2)
        schema = root.get(section, {}).get(name.replace("~1", "/").replace("~0", "~"))
    return None


def _types(schema: Mapping[str, Any]) -> list[str]:
    """The types a schema names itself, not those of its branches."""
    kind = schema.get("type")
    if isinstance(kind, str):
        return [kind]
    if isinstance(kind, list):
        return kind
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    return list(dict.fromkeys(_kind(value) for value in values))


def _all_types(schema: Mapping[str, Any], root: Mapping[str, Any]) -> set[str]:
    found = set(_types(schema))
    for branch in (branch for word in ("anyOf", "oneOf") for branch in schema.get(word, ())):
        node = _resolved(branch, root)
        found |= _all_types(node, root) if node is not None else set()
    return found | ({"integer"} if "number" in found else set())
