"""Finds tools by words: BM25 over their names, titles, descriptions and parameters. No model and no network."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

_WEIGHTS: Final = {"name": 5, "title": 3, "description": 1, "parameters": 1}
"""How often a word counts, by where it stands."""
_SATURATION, _LENGTH = 1.2, 0.75
"""The usual constants of BM25: how soon more of a word counts less, and how much long texts count less."""
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
_SHORTEST_STEM: Final = 3
_EVERYWHERE: Final = frozenset(
    {
        "a", "an", "and", "are", "as", "at", "be", "by", "for", "from", "in", "is", "it",
        "its", "of", "on", "or", "that", "the", "this", "to", "with",
    }
)  # fmt: skip
"""Words that say nothing about a tool."""


class ToolIndex:
    """The words of the tools of one catalog."""

    def __init__(self, rows: Mapping[str, Mapping[str, Any]]) -> None:
        self._counts: Final = {name: _count_words(row) for name, row in rows.items()}
        self._lengths: Final = {name: counts.total() for name, counts in self._counts.items()}
        self._found_in: Final = Counter(word for counts in self._counts.values() for word in counts)
        self._mean_length: Final = sum(self._lengths.values()) / max(len(rows), 1)

    def search(self, query: str, among: Collection[str], limit: int) -> list[str]:
        """The names of the tools that share words with the query, the best first; equally good ones by name."""
        words = list(dict.fromkeys(words_of(query)))
        scores = {name: self._score(name, words) for name in among}
        found = [name for name in sorted(among) if scores[name] > 0 or name == query]
        return sorted(found, key=lambda name: (name != query, -scores[name]))[:limit]

    def _score(self, name: str, words: Iterable[str]) -> float:
        counts = self._counts[name]
        pull = _SATURATION * (1 - _LENGTH + _LENGTH * self._lengths[name] / self._mean_length)
        return sum(
            self._rarity(word) * counts[word] * (_SATURATION + 1) / (counts[word] + pull)
            for word in words
            if word in counts
        )

    def _rarity(self, word: str) -> float:
        found = self._found_in[word]
        return math.log(1 + (len(self._counts) - found + 0.5) / (found + 0.5))


def words_of(text: str) -> list[str]:
    """The stems of the words in a text or a name.

    >>> words_of("listFiles of HTTP-servers, matching"), words_of("list_file: an HTTP server that matches")
    (['list', 'fil', 'http', 'server', 'match'], ['list', 'fil', 'http', 'server', 'match'])
    """
    words = (word.lower() for word in _WORD.findall(text))
    return [_stem(word) for word in words if word not in _EVERYWHERE]


def _stem(word: str) -> str:
    """A word without the endings of plurals and verbs, and without a last "e", which such endings replace."""
    if word.endswith("ies"):
        word = word[:-3] + "y"
    elif word.endswith(("sses", "ches", "shes", "xes")):
        word = word[:-2]
    elif not word.endswith(("ss", "us", "is")) and len(word) > _SHORTEST_STEM:
        word = word.removesuffix("s")
    for ending in ("ing", "ed", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST_STEM:
            return word.removesuffix(ending)
    return word


def _count_words(row: Mapping[str, Any]) -> Counter[str]:
    parameters = " ".join(map(str, row["inputSchema"].get("properties", {})))
    texts = {
        "name": row["name"],
        "title": row.get("title") or "",
        "description": row["description"],
        "parameters": parameters,
    }
    counts: Counter[str] = Counter()
    for place, text in texts.items():
        for word in words_of(text):
            counts[word] += _WEIGHTS[place]
    return counts
