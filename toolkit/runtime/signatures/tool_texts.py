"""What a model may be told about the tools of a toolkit: signatures and search, of the tools that the policy may allow."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from toolkit.errors import ToolNotAllowed
from toolkit.runtime import path as steps
from toolkit.runtime.call.offers import offered_tools, why_not_offered
from toolkit.runtime.signatures.prompt_text import prompt_text

if TYPE_CHECKING:
    from toolkit.runtime.signatures.signature import ToolSignature
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
        self._offered: Final = {info.name: info for info in offered_tools(core)}

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
            raise steps.not_found(name, self._catalog.tools)
        reason = None if info.name in self._offered else why_not_offered(self._core, info)
        if reason is not None:
            raise ToolNotAllowed(reason, tool_name=info.name)
        return info.name
