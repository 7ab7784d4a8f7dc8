"""Names for the types of a document, as a person would choose them.

A name is that of the root (``GrepOutput``) with a word for the type. The word comes from what the author wrote, in this
order: the key in ``$defs``; the title; where a union has several objects, the constant that tells this one from the others
(``{"type": {"const": "delete_text"}}`` is ``DeleteText``); the property that holds it (``matches`` holds a ``Match``).
Where a property holds one of several objects without such words, a property tells them apart (``CommentWithLine``).

If two types have one word, the one that is closer to the root keeps it, and the other one gets the words of the places
around it, as many as are needed (``SortRange``). So a type that is added deeper or later does not rename another one. Only
where no place differs, numbers do it. A name depends on this document alone.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Final

from toolkit.codegen.schema.document import Document
from toolkit.codegen.schema.naming.class_words import (
    class_word,
    common_word,
    definition_words,
    needs_context,
    title_word,
    without_overlap,
    word_of_one,
)
from toolkit.codegen.schema.naming.flat_nodes import alternatives, referred_name
from toolkit.codegen.schema.naming.name_hint import NameHint
from toolkit.codegen.schema.naming.rename import rename_types
from toolkit.codegen.schema.naming.union_words import own_properties, tags
from toolkit.jsonschema.keywords import Schema

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
