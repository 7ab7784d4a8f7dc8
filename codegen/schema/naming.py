"""Names for the types of a document, as a person would choose them.

A name is that of the root (``GrepOutput``) with a word for the type. The word comes from what the author wrote, in this
order: the key in ``$defs``; the title; where a union has several objects, the constant that tells this one from the others
(``{"type": {"const": "delete_text"}}`` is ``DeleteText``); the property that holds it (``matches`` holds a ``Match``).
Where a property holds one of several objects without such words, a property tells them apart (``CommentWithLine``).

If two types share a word, the one closer to the root keeps it, and the other gets as many words of the places around it as
it needs (``SortRange``). So a type that is added deeper or later renames no other type. Numbers are the last resort, where
no place differs. A name depends on this document alone: input and output share no class, so a change of
one never renames types of the other.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Final

from toolkit.codegen.package.python_names import singular
from toolkit.codegen.schema.document import (
    Document,
    NameHint,
    alternatives,
    map_nodes,
    reference_to,
    references,
    referred_name,
    sole_name,
)
from toolkit.schema.keywords import Schema

MAX_NAME: Final = 60
"""Words of the places around a type make its name no longer than this, if that can be avoided."""


def name_types(document: Document) -> Document:
    """The document with final names. Types that the root does not lead to are left out: nobody could get a value of them."""
    if not document.objects and not document.aliases:
        return document
    return rename_types(document, _Names(document).choose())


@dataclass(frozen=True, slots=True)
class _Use:
    """A place where a type is used."""

    parent: str
    word: str
    """From the property; empty at the root."""
    union: tuple[str, ...]
    """The objects of the union there, if there are several."""
    is_branch: bool
    """Whether other values than this type and null are accepted there."""
    is_one_of_many: bool
    """Whether it is an item of a list, or a value of a map."""


@dataclass(frozen=True, slots=True)
class _UnionWords:
    """The words that tell the objects of one union apart, by their names."""

    titles: dict[str, str]
    tags: dict[str, str]
    properties: dict[str, str]


@dataclass(slots=True)
class _Named:
    """A type and the words for it: its own, then those of the places around it, from the inside out."""

    uses: list[_Use] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    is_defined: bool = False


class _Names:
    """The names of one document's types."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.objects = {document.name: document.root, **document.objects}
        # In the order in which they are found from the root, level by level.
        self.types: dict[str, _Named] = {}
        self.unions: dict[tuple[str, ...], _UnionWords] = {}

    def choose(self) -> dict[str, str]:
        self.find_uses()
        for name, named in self.types.items():
            self.find_words(name, named)
        order = sorted(self.types, key=self.rank)
        chosen: dict[str, str] = {}
        taken: set[str] = set()
        for name in order:
            free = next((text for text in self.candidates(name) if text not in taken), None)
            if free is not None:
                chosen[name] = free
                taken.add(free)
        numbers: dict[str, Iterator[int]] = {}
        for name in (name for name in order if name not in chosen):
            word = self.types[name].words[0]
            numbered = (f"{self.document.name}{word}{number}" for number in numbers.setdefault(word, count(2)))
            chosen[name] = next(text for text in numbered if text not in taken)
        return chosen

    def rank(self, name: str) -> tuple[bool, int, bool, bool]:
        """Which type gets a word that several have: the one with the fewest other words. The order decides the rest."""
        named = self.types[name]
        return not named.is_defined, len(named.words), name in self.document.aliases, named.uses[0].is_one_of_many

    def candidates(self, name: str) -> list[str]:
        """The possible names of a type, the best first."""
        named, root = self.types[name], self.document.name
        own, *around = named.words
        tool = root.removesuffix("Input").removesuffix("Output")
        if named.is_defined and (own.startswith(tool) or len(root + own) > MAX_NAME):
            own = without_overlap(own, tool)
        texts = [own]
        for word in around:
            if own == word or not own.startswith(word):
                texts.append(word + texts[-1])
        names = [root + text for text in texts]
        if needs_context(own) and len(names) > 1 and len(names[1]) <= MAX_NAME:
            del names[0]
        short = [text for text in names if len(text) <= MAX_NAME]
        shortened = [f"{root}{word}{own}" for word in around if not own.startswith(word)]
        item = [f"{root}{own}Item"] if named.uses[0].is_one_of_many else []
        return [name for name in (*(short or names[:1]), *shortened, *names, *item) if _is_normal(name)]

    # -- uses --------------------------------------------------------------------------------------------------------

    def find_uses(self) -> None:
        """Finds where each type is used, level by level."""
        pending = [self.document.name]
        for parent in pending:
            node = self.objects[parent]
            places = [(class_word(key) or "Field", value) for key, value in node.get("properties", {}).items()]
            for word, value in places or [("", node)]:
                pending += self.add_uses(value, _Use(parent, word, (), False, False))
            if places and isinstance(node.get("additionalProperties"), dict):
                pending += self.add_uses(node["additionalProperties"], _Use(parent, "Value", (), False, True))

    def add_uses(self, node: Schema, use: _Use) -> Iterator[str]:
        """Notes the types that a node uses. Yields the classes that were not known."""
        name = referred_name(node)
        if name is not None:
            if name == self.document.name:
                return
            is_new = name not in self.types
            self.types.setdefault(name, _Named()).uses.append(use)
            if is_new and name in self.objects:
                yield name
            elif is_new:
                alias = self.defined_words(name)
                inner = replace(use, word=(alias or [use.word])[0], union=(), is_branch=False)
                yield from self.add_uses(self.document.aliases[name], inner)
        elif "anyOf" in node:
            yield from self.add_branches(alternatives(node), use)
        else:
            for key, otherwise in (("items", "Item"), ("additionalProperties", "Value")):
                if isinstance(node.get(key), dict):
                    word = word_of_one(use.word, otherwise)
                    yield from self.add_uses(node[key], _Use(use.parent, word, (), False, True))

    def add_branches(self, branches: list[Schema], use: _Use) -> Iterator[str]:
        named = [name for branch in branches if (name := referred_name(branch)) is not None and name in self.objects]
        union = tuple(dict.fromkeys(named)) if len(set(named)) > 1 else ()
        for branch in branches:
            yield from self.add_uses(branch, replace(use, union=union, is_branch=len(branches) > 1))

    # -- words -------------------------------------------------------------------------------------------------------

    def find_words(self, name: str, named: _Named) -> None:
        defined = self.defined_words(name)
        use = named.uses[0]
        around = self.types[use.parent].words if use.parent != self.document.name else []
        if defined:
            named.is_defined = True
            named.words = defined
        else:
            own = self.own_word(name)
            named.words = [own]
        if use.word and use.word not in named.words:
            named.words.append(use.word)
        named.words += around

    def defined_words(self, name: str) -> list[str]:
        """The words of a definition's key."""
        found = [words for key in self.hint(name).definitions if (words := definition_words(key))]
        if len(found) < 2:
            return found[0] if found else []
        return [common_word([words[0] for words in found])]

    def hint(self, name: str) -> NameHint:
        return self.document.hints.get(name, NameHint())

    def own_word(self, name: str) -> str:
        """The best word for a type that has no key in ``$defs``."""
        uses = self.types[name].uses
        unions = [self.union_words(use.union) for use in uses if use.union]
        title = self.title(name)
        if title and all(name in union.titles for union in unions):
            return title
        for union in unions:
            if name in union.tags:
                return union.tags[name]
        if name in self.document.aliases:
            kind = class_word(self.document.aliases[name].get("type", ""))
            return common_word([use.word for use in uses]) + (kind if uses[0].is_branch else "") or "Root"
        words = [use.word for use in uses if not use.union]
        if not words and name in unions[0].properties:
            return f"{uses[0].word}With{unions[0].properties[name]}"
        return common_word(words or [uses[0].word]) or "Root"

    def title(self, name: str) -> str:
        words = {title_word(title) for title in self.hint(name).titles}
        return words.pop() if len(words) == 1 else ""

    def union_words(self, union: tuple[str, ...]) -> _UnionWords:
        if union not in self.unions:
            objects = {name: self.objects[name] for name in union}
            titles = {name: self.title(name) for name in union}
            often = Counter(titles.values())
            distinct = {name: title for name, title in titles.items() if often[title] == 1}
            self.unions[union] = _UnionWords(distinct, tags(objects), own_properties(objects))
        return self.unions[union]


def _is_normal(name: str) -> bool:
    """Whether Python reads the name as it is written: letters of two words may combine."""
    return name.isascii() or unicodedata.normalize("NFKC", name) == name


# ----------------------------------------------------------------------------------------------------------------------
# From a schema's texts to words of a class name. The texts are foreign: whatever they hold, a word is safe.

_MAX_TITLE: Final = 32
_MAX_TITLE_WORDS: Final = 4
"""A longer title is a sentence."""

_SAYS_NOTHING: Final = frozenset(
    {
        "", "any", "array", "input", "inputs", "item", "items", "model", "object", "output", "outputs", "root", "schema",
        "string", "type", "value", "values",
    }
)  # fmt: skip
"""Titles and keys of definitions that tell no type from another."""

_MADE_BY_PROGRAMS: Final = re.compile(r"_*(def|definition|model|object|ref|schema|type)?_*\d*")

_NEEDS_CONTEXT: Final = frozenset(
    {
        "args", "arguments", "attributes", "config", "data", "details", "from", "info", "input", "items", "meta", "metadata",
        "object", "options", "output", "parameters", "params", "properties", "settings", "to", "value", "values",
    }
)  # fmt: skip
"""Names of properties that a person would not give to a type without saying what it belongs to."""

_ENDS_NO_NAME: Final = frozenset(
    {
        "And", "As", "At", "By", "For", "From", "Id", "In", "Into", "Item", "Of", "On", "Option", "Or", "To", "Value",
        "With",
    }
)  # fmt: skip
"""Words that no noun ends with: 'created_by' and 'updated_by' are not two kinds of 'by'."""


def class_word(text: str) -> str:
    """A text as part of a class name; empty if no letter or digit is in it. Inner capitals stay.

    >>> [class_word(text) for text in ("read_file", "getHTTP-page", "3d", "größe", "$search", "#")]
    ['ReadFile', 'GetHTTPPage', '3d', 'Größe', 'Search', '']
    """
    words = re.split(r"[\W_]+", unicodedata.normalize("NFKC", text))
    joined = "".join(word[:1].upper() + word[1:] for word in words)
    # A few characters count as letters, but may not be in an identifier, or only with another letter before them.
    is_safe = f"X{joined}X".isidentifier() and unicodedata.normalize("NFKC", f"X{joined}X") == f"X{joined}X"
    return joined if is_safe else ""


def title_word(title: str) -> str:
    """A title as a class name; empty if it is a sentence, says nothing or is not English.

    >>> [title_word(title) for title in ("Search filter", "object", "The filter that is used to search", "筛选")]
    ['SearchFilter', '', '', '']
    """
    is_name = title.isascii() and len(title) <= _MAX_TITLE and len(title.split()) <= _MAX_TITLE_WORDS
    word = class_word(title)
    return word if is_name and word[:1].isalpha() and word.lower() not in _SAYS_NOTHING else ""


def definition_words(key: str) -> list[str]:
    """The key of a definition as words, the last one first; none if a program made it up.

    What comes before the name of a type is a package, unless it is the name of another type.

    >>> [definition_words(key) for key in ("tree-node", "acme.api.v1.Pet", "app__models__User", "Pet.Info", "__schema0")]
    [['TreeNode'], ['Pet', 'V1', 'Api', 'Acme'], ['User', 'Models', 'App'], ['PetInfo'], []]
    """
    if _MADE_BY_PROGRAMS.fullmatch(key.lower()):
        return []
    parts = re.split(r"[./:#]|__", key)
    is_package = len(parts) > 2 or parts[0][:1].islower()
    words = [class_word(part) for part in parts] if is_package and parts[-1][:1].isupper() else [class_word(key)]
    return [word for word in reversed(words) if word]


def word_of_one(word: str, otherwise: str) -> str:
    """The word for one of what a property holds many of: its singular, or the word with a suffix.

    >>> word_of_one("Users", "Value"), word_of_one("ByKey", "Value"), word_of_one("", "Item")
    ('User', 'ByKeyValue', 'Item')
    """
    return singular(word) or word + otherwise


def common_word(words: Sequence[str]) -> str:
    """One word for a type that has all of these names: how all of them end, else the first that is a noun.

    >>> common_word(["BillingAddress", "ShippingAddress"]), common_word(["Filters", "Filter"])
    ('Address', 'Filter')
    >>> common_word(["CreatedBy", "UpdatedBy"]), common_word(["At", "Start", "End"])
    ('CreatedBy', 'Start')
    """
    if len(set(words)) == 1:
        return words[0]
    parts = [split_word(singular(word) or word) for word in words]
    common: list[str] = []
    for ends in zip(*(reversed(part) for part in parts), strict=False):
        if len(set(ends)) > 1:
            break
        common.insert(0, ends[0])
    if common and _is_noun(common[-1]):
        return "".join(common)
    return next((word for word, part in zip(words, parts, strict=True) if part and _is_noun(part[-1])), words[0])


def _is_noun(word: str) -> bool:
    """Whether a type may be named by a word, as far as its letters tell."""
    return word not in _ENDS_NO_NAME and word[0].isupper() and len(word) > 1


def needs_context(word: str) -> bool:
    """Whether a word alone does not say what it names."""
    return word.lower() in _NEEDS_CONTEXT


def without_overlap(word: str, before: str) -> str:
    """A word without its beginning, if that is how the name before it ends.

    >>> without_overlap("LendBookRequest", "LendBook"), without_overlap("BookRequest", "LendBook")
    ('Request', 'Request')
    >>> without_overlap("LendBookItem", "LendBook"), without_overlap("Bookmark", "LendBook")
    ('LendBookItem', 'Bookmark')
    """
    words, parts = split_word(before), split_word(word)
    for shared in range(min(len(words), len(parts) - 1), 0, -1):
        rest = "".join(parts[shared:])
        if words[-shared:] == parts[:shared] and rest[0].isupper() and rest.lower() not in _SAYS_NOTHING:
            return rest
    return word


def split_word(word: str) -> list[str]:
    """The words that a word is made of.

    >>> split_word("GetHTTPPage2")
    ['Get', 'HTTP', 'Page2']
    """
    return re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[^A-Z]+", word)


# ----------------------------------------------------------------------------------------------------------------------
# What tells the objects of a union apart: a constant, or a property that only one of them has.

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
        # The constant that most of them have says what they are; any other may be a detail of one of them.
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


# ----------------------------------------------------------------------------------------------------------------------
# A document with other names for its types.


def rename_types(document: Document, names: Mapping[str, str]) -> Document:
    """The document with these names. Of types that get one name, the first stays; types without a name are left out."""
    hints: dict[str, NameHint] = {}
    for name, new in names.items():
        hints[new] = hints.get(new, NameHint()) | document.hints.get(name, NameHint())
    return replace(
        document,
        root=_renamed(document.root, names),
        objects=_all_renamed(document.objects, names),
        aliases=_all_renamed(document.aliases, names),
        recursive={names[name] for name in document.recursive if name in names},
        hints=hints,
    )


def _all_renamed(types: Mapping[str, Schema], names: Mapping[str, str]) -> dict[str, Schema]:
    found: dict[str, Schema] = {}
    for name, node in types.items():
        if name in names and names[name] not in found:
            found[names[name]] = _renamed(node, names)
    return found


def _renamed(node: Schema, names: Mapping[str, str]) -> Schema:
    def change(inner: Schema) -> Schema:
        name = referred_name(inner)
        if name is not None:
            return {**inner, **reference_to(names.get(name, name))}
        return _without_repetition(inner) if "anyOf" in inner else inner

    return map_nodes(node, change)


def _without_repetition(union: Schema) -> Schema:
    """A union with each of its branches once: two of them may have become one type."""
    branches = [branch for index, branch in enumerate(union["anyOf"]) if branch not in union["anyOf"][:index]]
    rest = {word: value for word, value in union.items() if word != "anyOf"}
    return {**rest, **(branches[0] if len(branches) == 1 else {"anyOf": branches})}


# ----------------------------------------------------------------------------------------------------------------------
# Equal types of one document become one type.
#
# Two types are equal if the code for them would be the same but for their names, all the way down. So the descriptions and
# defaults of properties count: editors show them, and a default is behaviour. The description of a class counts unless
# every property that holds the class shows the same text: what a place is for is said at that place. An alias is only a
# name for its type; two of them are equal only if they belong to properties of one name, because a shared name would be
# wrong for one of them and save nothing.
#
# Types are first taken for equal if they look alike apart from the types inside them, then told apart by the types inside
# them until nothing changes. That way, types that contain themselves can be compared. The root is never merged with
# another type: it alone is judged by the validator.


def share_equal_types(document: Document) -> Document:
    """The document with each type once. A type keeps the first of its names."""
    while len(document.objects) + len(document.aliases) > 1:
        representatives = _representatives(document)
        if all(name == first for name, first in representatives.items()):
            break
        # Unions may have become equal now, because two of their branches did.
        document = _merged(document, representatives)
    return document


def _representatives(document: Document) -> dict[str, str]:
    """For each named type but the root, the first type that is equal to it."""
    described = _described_where_used(document)
    keys = _keys_of_aliases(document)
    looks: dict[str, object] = {document.name: None}
    looks |= {name: _look(node, described=name in described) for name, node in document.objects.items()}
    looks |= {name: (_look(node, described=False), frozenset(keys[name])) for name, node in document.aliases.items()}
    inner = {name: tuple(references(node)) for name, node in document.nodes().items()}
    kinds = _number(looks)
    while True:
        finer = _number({name: (kind, *(kinds[part] for part in inner[name])) for name, kind in kinds.items()})
        if len(set(finer.values())) == len(set(kinds.values())):
            break
        kinds = finer
    first: dict[int, str] = {}
    return {name: first.setdefault(kind, name) for name, kind in kinds.items() if name != document.name}


def _look(node: Schema, *, described: bool) -> str:
    """All that counts in a node, except for which types it refers to."""
    bare = map_nodes(node, lambda inner: inner if referred_name(inner) is None else {**inner, **reference_to("")})
    if "required" in bare:
        bare["required"] = sorted(bare["required"])
    if described:
        bare.pop("description", None)
    return json.dumps(bare)


def _keys_of_aliases(document: Document) -> dict[str, set[str]]:
    """The properties that use each alias."""
    keys: dict[str, set[str]] = {name: set() for name in document.aliases}
    for node in document.nodes().values():
        for key, value in node.get("properties", {}).items():
            for name in references(value):
                if name in keys:
                    keys[name].add(key)
    return keys


def _number(keys: Mapping[str, object]) -> dict[str, int]:
    """A number for each name: the same where the keys are the same."""
    numbers: dict[object, int] = {}
    return {name: numbers.setdefault(key, len(numbers)) for name, key in keys.items()}


def _described_where_used(document: Document) -> set[str]:
    """The classes whose description is also that of every property that holds them."""
    shown: set[str] = set()
    hidden: set[str] = set()
    for node in document.nodes().values():
        properties = node.get("properties", {})
        for value in properties.values():
            name = sole_name(value)
            if name in document.objects and document.objects[name].get("description") == value.get("description"):
                shown.add(name)
            else:
                hidden.update(references(value))
        hidden.update(references({word: value for word, value in node.items() if word != "properties"}))
    return shown - hidden


def _merged(document: Document, representatives: Mapping[str, str]) -> Document:
    merged = rename_types(document, representatives)
    descriptions: dict[str, set[str | None]] = {}
    for name, first in representatives.items():
        if name in document.objects:
            descriptions.setdefault(first, set()).add(document.objects[name].get("description"))
    for name in (name for name, found in descriptions.items() if len(found) > 1):
        merged.objects[name].pop("description", None)
    return merged
