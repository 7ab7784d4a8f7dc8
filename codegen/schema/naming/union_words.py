"""What tells the objects of a union apart: a constant, or a property that only one of them has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

from toolkit.codegen.schema.naming.class_words import class_word
from toolkit.jsonschema.keywords import Schema

_MAX_TAG: Final = 40
"""A longer constant is not a tag."""


def tags(objects: Mapping[str, Schema]) -> dict[str, str]:
    """By name, the word for the constant that an object has and no other object of the union, if there is one.

    >>> put = {"properties": {"op": {"enum": ["put"]}, "v": {"enum": ["one"]}}}
    >>> drop = {"properties": {"op": {"enum": ["drop_all"]}, "v": {"enum": ["one"]}}}
    >>> tags({"A": put, "B": drop, "C": {"properties": {"op": {"type": "string"}}}})
    {'A': 'Put', 'B': 'DropAll'}
    """
    constants = {name: _constants(node) for name, node in objects.items()}
    keys = Counter(key for own in constants.values() for key in own)
    words = Counter(pair for own in constants.values() for pair in own.items())
    found = {}
    for name, own in constants.items():
        # The constant that most of them have says what they are; another one may be a detail of one of them.
        for key in sorted(own, key=lambda key: -keys[key]):
            if words[key, own[key]] == 1:
                found[name] = own[key]
                break
    return found


def own_properties(objects: Mapping[str, Schema]) -> dict[str, str]:
    """By name, the word for a property that an object has and no other object of the union, a required one if possible.

    >>> at_line, at_position = {"properties": {"path": {}, "line": {}}}, {"properties": {"path": {}, "position": {}}}
    >>> own_properties({"A": at_line, "B": at_position, "C": {"properties": {"path": {}}}})
    {'A': 'Line', 'B': 'Position'}
    """
    keys = Counter(key for node in objects.values() for key in node.get("properties", {}))
    found = {}
    for name, node in objects.items():
        required = set(node.get("required", ()))
        own = [key for key in node.get("properties", {}) if keys[key] == 1 and class_word(key)]
        if own:
            found[name] = class_word(min(own, key=lambda key: key not in required))
    return found


def _constants(node: Schema) -> dict[str, str]:
    """The words for the properties that have one possible value, a text."""
    found = {}
    for key, value in node.get("properties", {}).items():
        values = value.get("enum", ())
        if len(values) == 1 and isinstance(values[0], str) and values[0].isascii() and len(values[0]) <= _MAX_TAG:
            word = class_word(values[0])
            if word and not word.isdigit():
                found[key] = word
    return found
