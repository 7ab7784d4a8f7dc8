"""From the texts of a schema to words of a class name. The texts are foreign: whatever they hold, a word is safe."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Final

from toolkit.codegen.package.python_names import singular

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
    for count in range(min(len(words), len(parts) - 1), 0, -1):
        rest = "".join(parts[count:])
        if words[-count:] == parts[:count] and rest[0].isupper() and rest.lower() not in _SAYS_NOTHING:
            return rest
    return word


def split_word(word: str) -> list[str]:
    """The words that a word is made of.

    >>> split_word("GetHTTPPage2")
    ['Get', 'HTTP', 'Page2']
    """
    return re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[^A-Z]+", word)
