"""Blocks that are streamed in pieces, put together by index and id, never by their position in a list."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from toolkit.adapters.argument_text import compact
from toolkit.adapters.plain_json import JsonDict


@dataclass(slots=True)
class GrowingBlock:
    """A block so far. ``kind`` says which pieces belong to it; ``arguments`` are the pieces of a call's argument text."""

    answer: int
    index: int | None
    kind: str
    id: str | None
    block: JsonDict
    arguments: list[str] = field(default_factory=list)
    is_whole: bool = False

    def add_arguments(self, piece: Any) -> None:
        self.arguments.append(piece if isinstance(piece, str) else "" if piece is None else compact(piece))

    def argument_text(self, given: object, is_cut: bool) -> str | None:
        """The text of a call's arguments; None if there is none, or if they were ``given`` whole at the start."""
        text = "".join(self.arguments)
        if given and not text:
            return None
        if is_cut and not self.is_whole and not text.strip():
            # The arguments were still to come. An empty text would be run as a call without arguments.
            return "{"
        return text if self.arguments else None


class BlocksInPieces:
    """A piece belongs to the last block of its index and kind; without an index, to the last block of its kind."""

    def __init__(self) -> None:
        self._blocks: Final[list[GrowingBlock]] = []
        self._answer = 0

    def next_answer(self) -> None:
        """What comes now belongs to another answer, whose blocks are numbered from the beginning."""
        self._answer += 1

    def start(self, index: int | None, kind: str, block: JsonDict, id: str | None = None) -> GrowingBlock:
        """Starts a block. One that is announced again goes on; another id at its index is another block."""
        known = self._find_by_id(id) if index is None else self.find_last(index, kind)
        if known is None or known.is_whole or (known.id and id and known.id != id):
            known = GrowingBlock(self._answer, index, kind, id, block)
            self._blocks.append(known)
        else:
            known.id = known.id or id
            known.block = _merge_blocks(known.block, block)
        return known

    def find_last(self, index: int | None, kind: str | None = None) -> GrowingBlock | None:
        """The block a piece belongs to, if it was announced; a piece of an unknown kind belongs to any."""
        for block in reversed(self._blocks):
            if block.answer == self._answer and index in (None, block.index) and kind in (None, block.kind):
                return block
        return None

    def _find_by_id(self, id: str | None) -> GrowingBlock | None:
        return next((block for block in self._blocks if id and block.id == id), None)

    def stop(self, index: int | None) -> None:
        block = self.find_last(index)
        if block is not None:
            block.is_whole = True

    def in_order(self) -> list[GrowingBlock]:
        """All blocks by index; those without one in the order they came."""

        def place(at: int) -> tuple[int, int, int]:
            block = self._blocks[at]
            return block.answer, at if block.index is None else block.index, at

        return [self._blocks[at] for at in sorted(range(len(self._blocks)), key=place)]


def _merge_blocks(known: JsonDict, again: JsonDict) -> JsonDict:
    """A block that is announced again: what was empty in it is taken from the second announcement."""
    made = {**again, **{key: value for key, value in known.items() if value not in (None, "", {})}}
    both = [key for key in made if isinstance(known.get(key), dict) and isinstance(again.get(key), dict)]
    return {**made, **{key: _merge_blocks(known[key], again[key]) for key in both}}
