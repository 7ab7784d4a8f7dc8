"""What runs tools that were described elsewhere: the generated types are those of any other tool."""

from __future__ import annotations

from acme.generated import (
    LibraryFindInput,
    LibraryFindOutput,
    LibraryLendBookInput,
    LibraryLendBookOutput,
    ShapesSearchInput,
    ShapesSearchOutput,
)
from toolkit import ToolContext


def find_book(args: LibraryFindInput, ctx: ToolContext) -> LibraryFindOutput:
    return LibraryFindOutput(text=f"{args.title} in {args.shelf or 'any shelf'}")


def lend_book(args: LibraryLendBookInput, ctx: ToolContext) -> LibraryLendBookOutput:
    return LibraryLendBookOutput(text=f"{args.reader.name} has {args.id}")


async def search_shapes(args: ShapesSearchInput, ctx: ToolContext) -> ShapesSearchOutput:
    return ShapesSearchOutput(names=[f"a {args.type}"], area=args.larger_than)
