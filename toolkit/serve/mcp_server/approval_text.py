"""What a person reads before they approve a call."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Final

from toolkit.visible import escape_hidden, escape_hidden_lines

if TYPE_CHECKING:
    from toolkit.runtime.call.approval import ApprovalRequest

_MAX_CHARACTERS: Final = 20_000


def approval_text(request: ApprovalRequest) -> str:
    """The tool, why it is asked about, and what it would do: the command, the diff, the URL or the arguments.

    Characters that could hide something are shown as escapes. What is too long to be shown is said to be cut.
    """
    preview = request.preview
    parts = [f"Run {request.tool_name}?", f"Asked because {escape_hidden(request.because)}."]
    if preview.argv is not None:
        parts.append(f"Command: {escape_hidden(shlex.join(preview.argv))}")
    if preview.shell is not None:
        parts.append(f"Shell text:\n{_block(preview.shell)}")
    if preview.argv is not None or preview.shell is not None:
        variables = f" (sets {', '.join(map(escape_hidden, preview.variables))})" if preview.variables else ""
        parts.append(f"In the folder: {escape_hidden(preview.cwd)}{variables}")
    if preview.url is not None:
        parts.append(f"URL: {escape_hidden(preview.url)}")
    if preview.tools:
        parts.append(f"A program that can call: {escape_hidden(', '.join(preview.tools))}")
    if preview.writes:
        parts.append(f"Writes: {_paths(preview.writes, request)}")
    if preview.reads:
        parts.append(f"Reads: {_paths(preview.reads, request)}")
    if preview.diff is not None:
        parts.append(f"Changes:\n{_block(preview.diff)}")
    else:
        shown = request.arguments.model_dump(mode="json", by_alias=True, exclude_unset=True)
        parts.append(f"Arguments:\n{_block(json.dumps(shown, ensure_ascii=False, indent=2))}")
    return "\n".join(parts)


def _paths(paths: tuple[str, ...], request: ApprovalRequest) -> str:
    """Paths as the call names them, and where they really lead if that is elsewhere."""
    shown = (f"{path} -> {request.real_paths[path]}" if path in request.real_paths else path for path in paths)
    return escape_hidden(", ".join(shown))


def _block(text: str) -> str:
    shown = escape_hidden_lines(text)
    if len(shown) <= _MAX_CHARACTERS:
        return shown
    return f"{shown[:_MAX_CHARACTERS]}\n[{len(shown) - _MAX_CHARACTERS} more characters are not shown]"
