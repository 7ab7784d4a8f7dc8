"""Reporting a command's output as progress events while it runs.

No clock is used: output is reported line by line at first, and the more has been reported, the more is collected before
the next event. So even a program that writes letter by letter makes only a few hundred events per megabyte.
"""

from __future__ import annotations

from typing import Final

from toolkit.builtin.shell.output_buffer import STREAMS, Stream
from toolkit.runtime.tool_context import ToolContext

PIECES: Final = 64
"""A piece is at least this fraction (1/64) of what was reported before it."""
MAX_PIECE: Final = 1 << 16
LONG_LINE: Final = 80
"""A line of this many characters is reported before its end has come."""
MAX_REPORTED: Final = 1 << 24
"""After this many characters of a stream only their number is reported: a listener may be slower than the command."""
COUNT_EVERY: Final = 1 << 20


class ProgressReporter:
    """Reports to one call's listeners: ``stream`` and ``text``, or past a limit ``stream`` and the ``characters`` so far."""

    def __init__(self, ctx: ToolContext) -> None:
        self._ctx = ctx
        self._streams = {name: _StreamProgress() for name in STREAMS}

    def report(self, stream: Stream, text: str) -> None:
        state = self._streams[stream]
        state.characters += len(text)
        if state.sent >= MAX_REPORTED:
            if state.characters - state.counted >= COUNT_EVERY:
                state.counted = state.characters
                self._ctx.progress(stream=stream, characters=state.characters)
            return
        state.waiting.append(text)
        waiting = state.characters - state.sent
        if waiting >= min(MAX_PIECE, state.sent // PIECES) and ("\n" in text or waiting >= LONG_LINE):
            self._send(stream)

    def finish(self) -> None:
        """Report what is still waiting."""
        for stream in STREAMS:
            self._send(stream)

    def _send(self, stream: Stream) -> None:
        state = self._streams[stream]
        if state.waiting:
            self._ctx.progress(stream=stream, text="".join(state.waiting))
            state.waiting.clear()
            state.sent = state.counted = state.characters


class _StreamProgress:
    """How much of one stream has been reported."""

    def __init__(self) -> None:
        self.waiting: list[str] = []
        self.characters = 0
        self.sent = 0
        self.counted = 0
