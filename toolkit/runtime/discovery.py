"""What a model may be told about the tools of a toolkit: signatures and search, of the tools that the policy may allow."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from toolkit.errors import ToolNotAllowed
from toolkit.runtime import path
from toolkit.runtime.signatures import prompt_text

if TYPE_CHECKING:
    from toolkit.runtime.signatures import ToolSignature
    from toolkit.runtime.toolkit import Core


class ToolMatch(NamedTuple):
    """A tool that a search found."""

    name: str
    doc: str
    """The first sentence of its description."""


class ToolTexts:
    """The tools of one toolkit, for models."""

    def __init__(self, core: Core) -> None:
        self._core: Final = core
        self._catalog: Final = core.catalog
        self._offered: Final = {info.name: info for info in core.offered_tools()}

    def signatures(self, names: Iterable[str] | None = None) -> list[ToolSignature]:
        """The signatures of these tools, or of all that the policy may allow, in the order of their names."""
        wanted = self._offered if names is None else {self._find(name) for name in names}
        return [self._catalog.signatures.of(name) for name in sorted(wanted)]

    def describe(self, names: Iterable[str] | None = None, budget: int | None = None) -> str:
        """The same as text for a model, of at most ``budget`` characters."""
        return prompt_text(self.signatures(names), budget, ways=self._offered)

    def search(self, query: str, limit: int) -> list[ToolMatch]:
        """The tools that share words with the query, the best first."""
        found = self._catalog.word_index.search(query, self._offered, limit)
        return [ToolMatch(name, self._catalog.signatures.of(name).doc) for name in found]

    def _find(self, name: str) -> str:
        """The name in the catalog; the error of a call if there is no such tool, or if no call of it can be allowed."""
        info = self._catalog.tools.get(self._catalog.aliases.get(name, name))
        if info is None:
            raise path.not_found(name, self._catalog.tools)
        reason = None if info.name in self._offered else self._core.why_not_offered(info)
        if reason is not None:
            raise ToolNotAllowed(reason, tool_name=info.name)
        return info.name


# ----------------------------------------------------------------------------------------------------------------------
# Finds tools by words: BM25 over their names, titles, descriptions and parameters. No model and no network.

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
