"""``tool_output_cache_grep``: matching lines of a cached output, found in linear time and constant memory."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Annotated, Final

from toolkit.builtin.search.lines import Hit, Search
from toolkit.builtin.search.regex import Matcher, compile
from toolkit.generated import ToolOutputCacheGrepInput, ToolOutputCacheGrepOutput
from toolkit.generated.models.tool_output_cache_grep import ToolOutputCacheGrepOutputMatch
from toolkit.inject import Depends
from toolkit.runtime.stores.keys import OUTPUT_CACHE
from toolkit.runtime.stores.outputs import CachedOutput, OutputCache
from toolkit.runtime.tool_context import ToolContext
from toolkit.visible import escape_hidden

KEEPS_OUTPUT: Final = False
"""Matches in a kept output are neither kept again nor cut: they would have to be searched by this tool itself."""

MAX_SHOWN_BYTES: Final = 48 * 1024
_GAP: Final = "--"


def run(
    args: ToolOutputCacheGrepInput, ctx: ToolContext, cache: Annotated[OutputCache, Depends(OUTPUT_CACHE)]
) -> ToolOutputCacheGrepOutput:
    matcher = compile(args.pattern, regex=args.regex)
    with cache.open(ctx.session_id, args.ref_id) as cached:
        output = cached.as_text()
        matches, is_all = _first_matches(output, matcher, args, ctx)
        # The rest is only counted, which is several times as fast as finding each line.
        rest = output.start_of(matches[-1].line + 1) if matches else 0
        total = len(matches) + (0 if is_all else _count(matcher, _chunks(output, ctx, rest)))
    return ToolOutputCacheGrepOutput(ref_id=args.ref_id, matches=matches, truncated=total > len(matches), total=total)


def _first_matches(
    output: CachedOutput, matcher: Matcher, args: ToolOutputCacheGrepInput, ctx: ToolContext
) -> tuple[list[ToolOutputCacheGrepOutputMatch], bool]:
    """As many matches as may be shown, and whether these are all."""
    matches: list[ToolOutputCacheGrepOutputMatch] = []
    room = MAX_SHOWN_BYTES
    for hit in Search(matcher, before=args.before, after=args.after).hits(_chunks(output, ctx)):
        if not matches:
            _shorten(hit, room)
        room -= _size(hit)
        if len(matches) == args.max_matches or room < 0:
            return matches, False
        matches.append(ToolOutputCacheGrepOutputMatch(line=hit.line, text=hit.text, before=hit.before, after=hit.after))
    return matches, True


def _count(matcher: Matcher, chunks: Iterator[bytes]) -> int:
    counting = Search(matcher, wanted=0)
    for _ in counting.hits(chunks):
        pass
    return counting.total


def _chunks(output: CachedOutput, ctx: ToolContext, position: int = 0) -> Iterator[bytes]:
    for chunk in output.chunks(position):
        ctx.signal.check()
        yield chunk


def _shorten(hit: Hit, room: int) -> None:
    """Drop context lines until the match fits; the match itself is always shown."""
    while _size(hit) > room and (hit.before or hit.after):
        hit.before = hit.before[(len(hit.before) + 1) // 2 :]
        hit.after = hit.after[: len(hit.after) // 2]


def _size(hit: Hit) -> int:
    lines = (*hit.before, hit.text, *hit.after)
    number = len(str(hit.line + len(lines)))
    return sum(len(escape_hidden(line).encode()) + number + 2 for line in lines) + len(_GAP) + 1


def text(output: ToolOutputCacheGrepOutput) -> str:
    if not output.matches:
        return "[no matching line in the output]"
    lines: dict[int, str] = {}
    for match in output.matches:
        lines.update(enumerate(match.before, match.line - len(match.before)))
        lines.update(enumerate(match.after, match.line + 1))
    # Last, because a long matching line is clipped around the match.
    matching = {match.line: match.text for match in output.matches}
    return "\n".join([*_rows(lines | matching, matching), *_notes(output)])


def _rows(lines: dict[int, str], matching: Container[int]) -> Iterator[str]:
    """Numbered lines in order; with context lines, each gap has a mark."""
    has_context = any(number not in matching for number in lines)
    before = min(lines)
    for number in sorted(lines):
        if has_context and number > before + 1:
            yield _GAP
        yield f"{number}{':' if number in matching else '-'}{escape_hidden(lines[number])}"
        before = number


def _notes(output: ToolOutputCacheGrepOutput) -> list[str]:
    if not output.truncated:
        return []
    shown = f"the first {len(output.matches)} of {output.total} matching lines"
    return [f"[{shown}; narrow the pattern, raise max_matches, or read the lines with tool_output_cache]"]
