"""Blocks that are streamed in pieces, put together by index and id, never by their position in a list."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from toolkit.adapters.plain_json import JsonDict
from toolkit.adapters.streaming.calls import UNFINISHED_TEXT


@dataclass(slots=True)
class GrowingBlock:
    """A block so far. ``kind`` says which pieces belong to it; ``arguments`` are the pieces of a call's argument text.

    ``is_replaceable``: the answer was announced again. If the same index is announced again, that block replaces this one.
    ``is_repeated``: it was announced again after it was whole, or after its answer was. If pieces follow, they are the same
    once more.
    """

    answer: int
    index: int | None
    kind: str
    id: str | None
    block: JsonDict
    arguments: list[str] = field(default_factory=list)
    is_whole: bool = False
    is_repeated: bool = False
    is_replaceable: bool = False
    other_indexes: set[int] = field(default_factory=set)

    def is_at(self, index: int | None) -> bool:
        return index is None or index == self.index or index in self.other_indexes

    def add_arguments(self, piece: str) -> None:
        if self.is_repeated:
            self.arguments, self.is_repeated = [], False
        self.arguments.append(piece)

    def argument_text(self, given: object, is_cut: bool) -> str | None:
        """The text of a call's arguments; None if there is none, or if they were ``given`` whole at the start."""
        text = "".join(self.arguments)
        if given and not text:
            return None
        if is_cut and not self.is_whole and not text.strip():
            return UNFINISHED_TEXT
        return text if self.arguments else None


class BlocksInPieces:
    """A piece belongs to the last block of its index and kind; without an index, to the last block of its kind."""

    def __init__(self) -> None:
        self._blocks: Final[list[GrowingBlock]] = []
        self._answer = 0

    def next_answer(self) -> None:
        """What comes now belongs to another answer, whose blocks are numbered from the beginning."""
        self._answer += 1

    def repeat_answer(self) -> None:
        """The answer was announced again; what comes now may repeat its blocks."""
        for block in self._current():
            block.is_replaceable = True

    def drop_answer(self) -> None:
        """The answer was given up: another one comes in its place."""
        self._blocks[:] = [block for block in self._blocks if block.answer != self._answer]

    def start(self, index: int | None, kind: str, block: JsonDict, id: str | None = None) -> GrowingBlock:
        """Starts a block. One that is announced again goes on; another id at its index is another block."""
        known = self._find_known(index, kind, id)
        if known is None:
            self._blocks[:] = [one for one in self._blocks if not self._is_replaced(one, index)]
            known = GrowingBlock(self._answer, index, kind, id, block)
            self._blocks.append(known)
            return known
        known.id = known.id or id
        known.block = _merge_blocks(known.block, block)
        known.is_repeated = known.is_whole or known.is_replaceable
        if index is not None and index != known.index:
            known.other_indexes.add(index)
        return known

    def find_last(self, index: int | None, kind: str | None = None) -> GrowingBlock | None:
        """The block a piece belongs to, if it was announced; a piece of an unknown kind belongs to any."""
        found = [block for block in self._current() if block.is_at(index) and kind in (None, block.kind)]
        return found[-1] if found else None

    def stop(self, index: int | None) -> GrowingBlock | None:
        """Ends the last block of an index, and returns it."""
        block = self.find_last(index)
        if block is not None:
            block.is_whole = True
        return block

    def in_order(self) -> list[GrowingBlock]:
        """All blocks by index; those without one in the order they came."""

        def place(at: int) -> tuple[int, int, int]:
            block = self._blocks[at]
            return block.answer, at if block.index is None else block.index, at

        return [self._blocks[at] for at in sorted(range(len(self._blocks)), key=place)]

    def _current(self) -> list[GrowingBlock]:
        return [block for block in self._blocks if block.answer == self._answer]

    def _find_known(self, index: int | None, kind: str, id: str | None) -> GrowingBlock | None:
        """The block that is announced again: the one with this id, or one at this index that is still open."""
        if id:
            same = [block for block in self._current() if block.id == id and block.kind == kind]
            if same:
                return same[-1]
        known = None if index is None else self.find_last(index, kind)
        if known is None or known.is_whole or known.is_replaceable or (known.id and id):
            return None
        return known

    def _is_replaced(self, block: GrowingBlock, index: int | None) -> bool:
        return block.is_replaceable and block.answer == self._answer and index is not None and block.index == index


def _merge_blocks(known: JsonDict, again: JsonDict) -> JsonDict:
    """A block that is announced again: what was empty in it is taken from the second announcement."""
    made = {**again, **{key: value for key, value in known.items() if value not in (None, "", {})}}
    both = [key for key in made if isinstance(known.get(key), dict) and isinstance(again.get(key), dict)]
    return {**made, **{key: _merge_blocks(known[key], again[key]) for key in both}}
