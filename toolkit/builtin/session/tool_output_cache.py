"""``tool_output_cache``: reads lines of a cached output that was too long to show as a whole.

A page is never longer than what is shown of one output, so it is not cut again.
"""

from __future__ import annotations

from typing import Annotated, Final

from toolkit.builtin.text.diff import format_count
from toolkit.generated import ToolOutputCacheInput, ToolOutputCacheOutput
from toolkit.inject import Depends
from toolkit.runtime.stores.keys import OUTPUT_CACHE
from toolkit.runtime.stores.outputs import CachedLine, CachedOutput, OutputCache
from toolkit.runtime.tool_context import ToolContext
from toolkit.visible import escape_hidden
from toolkit.wire.content import ContentBlock

KEEPS_OUTPUT: Final = False
"""A page of a kept output is neither kept again nor cut: it would have to be read by this tool itself."""

MAX_PAGE_BYTES: Final = 48 * 1024


def run(
    args: ToolOutputCacheInput, ctx: ToolContext, cache: Annotated[OutputCache, Depends(OUTPUT_CACHE)]
) -> ToolOutputCacheOutput:
    with cache.open(ctx.session_id, args.ref_id) as output:
        media = [block for block in output.blocks() if block.text is None] if args.offset == 1 else []
        for block in media:
            ctx.attach(block)
        return _read_page(output.as_text(), args, media)


def _read_page(output: CachedOutput, args: ToolOutputCacheInput, media: list[ContentBlock]) -> ToolOutputCacheOutput:
    rows: list[str] = []
    clipped: list[int] = []
    room = MAX_PAGE_BYTES
    for line in output.lines(args.offset, args.limit):
        row = _format_line(line)
        room -= len(row.encode()) + 1
        if room < 0:
            break
        rows.append(row)
        if line.is_clipped:
            clipped.append(line.number)
    next_offset = args.offset + len(rows)
    return ToolOutputCacheOutput(
        ref_id=args.ref_id,
        content="\n".join(rows),
        line_count=len(rows),
        total_lines=output.total_lines,
        next_offset=next_offset if next_offset <= output.total_lines else None,
        clipped_lines=clipped,
        attached=[block.media_type or block.type for block in media],
    )


def _format_line(line: CachedLine) -> str:
    note = f"… [line clipped: {line.size} bytes]" if line.is_clipped else ""
    return f"{line.number:>6}\t{escape_hidden(line.text)}{note}"


def text(output: ToolOutputCacheOutput) -> str:
    shown = [output.content] if output.line_count else []
    shown += [f"[attached: {media_type}]" for media_type in output.attached]
    return "\n".join(shown + _notes(output))


def _notes(output: ToolOutputCacheOutput) -> list[str]:
    """A last line that says which lines these are and how to read the rest, unless they are the whole output."""
    count, total, next_offset = output.line_count, output.total_lines, output.next_offset
    if not count:
        return [] if output.attached else [_explain_empty(total)]
    last = total if next_offset is None else next_offset - 1
    first = last - count + 1
    if count == total and not output.clipped_lines:
        return []
    note = f"line {first} of {total}" if count == 1 else f"lines {first}-{last} of {total}"
    if output.clipped_lines:
        clipped = format_count(len(output.clipped_lines), "long line")
        note += f"; {clipped} clipped: search with tool_output_cache_grep"
    if next_offset is not None:
        note += f"; continue with offset={next_offset}"
    return [f"[{note}]"]


def _explain_empty(total: int) -> str:
    return f"[no such line: the output has {format_count(total, 'line')}]" if total else "[the output is empty]"
