"""``search_tools``: tools by words, for a model that was not told all their names."""

from __future__ import annotations

from toolkit.generated import SearchToolsInput, SearchToolsOutput
from toolkit.generated.models.search_tools import SearchToolsOutputMatch
from toolkit.runtime.tool_context import ToolContext


def run(args: SearchToolsInput, ctx: ToolContext) -> SearchToolsOutput:
    found = ctx._tool_texts.search(args.query, args.limit)
    ctx.metadata(title=f"Found {len(found)} tools for {args.query!r}")
    return SearchToolsOutput(matches=[SearchToolsOutputMatch(name=match.name, summary=match.doc) for match in found])


def text(output: SearchToolsOutput) -> str:
    if not output.matches:
        return "No tool has these words. Try other words for what the tool should do."
    return "\n".join(f"{match.name}: {match.summary}" for match in output.matches)
