"""The events of streamed calls: each call starts once, its argument text comes in pieces, and it completes once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from toolkit.adapters.answers.surrogates import mend_text
from toolkit.adapters.values import compact
from toolkit.wire.call import ToolCall
from toolkit.wire.events import AnswerEvent, ArgumentsCame, CallCompleted, CallStarted


class CallEvents:
    """Remembers what was reported of each call, so that no event comes twice or too early."""

    def __init__(self) -> None:
        self._reported: dict[str, list[str]] = {}
        self._completed: Counter[str] = Counter()

    def grow(self, id: str, name: str, pieces: Sequence[str]) -> Iterator[AnswerEvent]:
        """What is new of a call with these pieces of argument text."""
        if id in self._completed and id not in self._reported:
            return
        if id not in self._reported:
            yield CallStarted(id, name)
        before = self._reported.setdefault(id, [])
        for piece in pieces[len(before) :]:
            before.append(piece)
            if piece:
                yield ArgumentsCame(id, mend_text(piece))

    def complete(self, call: ToolCall) -> Iterator[AnswerEvent]:
        """The rest of a call whose arguments are complete."""
        if call.id not in self._reported:
            yield CallStarted(call.id, call.name)
        before = "".join(self._reported.pop(call.id, ()))
        text = _argument_text(call)
        if text.startswith(before) and text != before:
            yield ArgumentsCame(call.id, text[len(before) :])
        self._completed[call.id] += 1
        yield CallCompleted(call)

    def complete_if_sound(self, call: ToolCall) -> Iterator[AnswerEvent]:
        """The same, unless the answer may have been cut in the middle of the call, or its end came before. For these, and
        for another call with the same id, ``complete_all`` follows."""
        if call.arguments and call.id not in self._completed:
            yield from self.complete(call)

    def complete_all(self, calls: Sequence[ToolCall]) -> Iterator[AnswerEvent]:
        """The rest of all calls that are not complete yet."""
        done = Counter(self._completed)
        for call in calls:
            if done[call.id]:
                done[call.id] -= 1
            else:
                yield from self.complete(call)


def _argument_text(call: ToolCall) -> str:
    """The text that pieces add up to: the provider's own, or the JSON of arguments that came as an object."""
    if call.raw_arguments is not None:
        return call.raw_arguments
    is_custom = any(isinstance(kept, dict) and kept.get("type") == "custom" for kept in call.metadata.values())
    text = call.arguments.get("input") if is_custom else None
    return text if isinstance(text, str) else compact(call.arguments)
