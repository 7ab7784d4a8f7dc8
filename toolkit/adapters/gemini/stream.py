"""Puts a streamed answer of Gemini together: each chunk is an answer with the parts that are new."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

from toolkit.adapters.answers import end_stream_early
from toolkit.adapters.gemini.codec import PROVIDER, decode_response, decode_usage, to_camel_case
from toolkit.adapters.streaming import StreamedAnswer
from toolkit.adapters.values import JsonDict, compact, plain
from toolkit.wire.call import ToolCall
from toolkit.wire.query import QueryResult

_MERGED: Final = frozenset({"text", "thought"})
# Keys of a candidate that have a meaning of their own; the others are sources, ratings and the like.
_READ: Final = frozenset({"content", "finishReason", "index"})
_STEP: Final = re.compile(r"\.([^.\[\]]+)|\[(\d{1,6})\]|\['((?:[^'\\]|\\.)*)'\]|\[\"((?:[^\"\\]|\\.)*)\"\]")
_ESCAPED: Final = re.compile(r"\\(.)")
_VALUES: Final = ("numberValue", "boolValue", "stringValue")
# Lists grow from the start; an index far past the end would only cost memory.
_MAX_GAP: Final = 1000
_MAX_STEPS: Final = 64


class Accumulator(StreamedAnswer):
    """Takes the chunks of a stream in their order, as JSON or as the SDK's objects.

    >>> answer = Accumulator()
    >>> answer.feed({"candidates": [{"content": {"parts": [{"text": "hello"}]}, "finishReason": "STOP"}]})
    'hello'
    """

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[JsonDict] = []
        self._rest: JsonDict = {}
        self._candidate: JsonDict = {}
        self._reported: str | None = None
        self._open_call: JsonDict | None = None
        self._broken: list[JsonDict] = []
        self._answered = False

    def _open(self, event: object) -> Any:
        return to_camel_case(plain(event))

    def _read(self, event: JsonDict) -> None:
        self._error = event.get("error") or self._error
        rest = {key: value for key, value in event.items() if key != "candidates" and value is not None}
        # Ids of calls are made from the first id of the answer.
        self._rest |= {key: value for key, value in rest.items() if key != "responseId" or key not in self._rest}
        for candidate in self._types.objects(event.get("candidates"), "candidates"):
            if not self._types.index(candidate.get("index"), "candidates[].index"):
                self._read_candidate(candidate)
        self._count(decode_usage(self._types.json_object(event.get("usageMetadata"), "usageMetadata")))

    def _read_candidate(self, candidate: JsonDict) -> None:
        self._answered = True
        more = {key: value for key, value in candidate.items() if key not in _READ and value is not None}
        self._candidate = {key: _merge(self._candidate.get(key), more.get(key)) for key in {**self._candidate, **more}}
        content = self._types.json_object(candidate.get("content"), "candidates[].content")
        for part in self._types.objects(content.get("parts"), "candidates[].content.parts"):
            self._read_part(part)
        reported = self._types.maybe_text(candidate.get("finishReason"), "candidates[].finishReason")
        if reported:
            self._reported = reported
            whole = self.result()
            if whole.finish_reason not in ("length", "error"):
                self._tell(self._call_events.complete_all(whole.tool_calls))

    # -- parts -------------------------------------------------------------------------------------------------------------

    def _read_part(self, part: JsonDict) -> None:
        where = "candidates[].content.parts[]"
        if part.get("functionCall") is not None:
            self._read_call(part, self._types.json_object(part["functionCall"], f"{where}.functionCall"))
            return
        text = self._types.maybe_text(part.get("text"), f"{where}.text")
        if text is None:
            other = {key: value for key, value in part.items() if key != "text"}
            self._parts += [other] if other else []
            return
        is_thought = self._types.flag(part.get("thought"), f"{where}.thought")
        self._add_text({**part, "thought": True} if is_thought else {k: v for k, v in part.items() if k != "thought"})
        if is_thought:
            self._think(text)
        else:
            self._say(text)

    def _add_text(self, part: JsonDict) -> None:
        before = self._parts[-1] if self._parts else {}
        # A signed part is not merged: its signature is for its own content.
        is_plain = "text" in before and before.keys() | part.keys() <= _MERGED
        if is_plain and before.get("thought") == part.get("thought"):
            self._parts[-1] = {**before, "text": before["text"] + part["text"]}
        elif part["text"] or part.keys() - _MERGED:
            self._parts.append(part)

    # -- calls -------------------------------------------------------------------------------------------------------------

    def _read_call(self, part: JsonDict, call: JsonDict) -> None:
        """Takes a whole call, or one that starts with its name and grows until a piece says that nothing follows."""
        where = "candidates[].content.parts[].functionCall"
        raw = dict(call)
        follows = self._types.flag(raw.pop("willContinue", False), f"{where}.willContinue")
        pieces = self._types.objects(raw.pop("partialArgs", None), f"{where}.partialArgs")
        if self._open_call is None or raw.get("name"):
            if self._open_call is not None:
                self._broken.append(self._open_call)
            self._open_call = self._start_call(part, raw)
        opened = self._open_call
        for piece in pieces:
            self._check_piece(piece, f"{where}.partialArgs[]")
            if not put_value(opened["functionCall"]["args"], piece):
                self._broken.append(opened)
        if "thoughtSignature" in part:
            opened["thoughtSignature"] = part["thoughtSignature"]
        if not follows:
            self._open_call = None
        self._report_call(opened, is_whole=not follows)

    def _check_piece(self, piece: JsonDict, where: str) -> None:
        self._types.text(piece.get("jsonPath"), f"{where}.jsonPath")
        self._types.text(piece.get("stringValue"), f"{where}.stringValue")
        self._types.number(piece.get("numberValue"), f"{where}.numberValue")
        self._types.flag(piece.get("boolValue"), f"{where}.boolValue")

    def _start_call(self, part: JsonDict, raw: JsonDict) -> JsonDict:
        where = "candidates[].content.parts[].functionCall"
        self._rest.setdefault("responseId", "")
        self._types.text(raw.get("name"), f"{where}.name")
        self._types.id(raw.get("id"), f"{where}.id")
        args = dict(self._types.json_object(raw.get("args"), f"{where}.args"))
        opened = {**part, "functionCall": {**raw, "args": args}}
        self._parts.append(opened)
        return opened

    def _report_call(self, opened: JsonDict, *, is_whole: bool) -> None:
        place = next(at for at, one in enumerate(_calls_in(self._parts)) if one is opened)
        call = self.result().tool_calls[place]
        if is_whole and not any(one is opened for one in self._broken):
            self._tell(self._call_events.complete(call))
        else:
            self._tell(self._call_events.grow(call.id, call.name, ()))

    def result(self) -> QueryResult:
        """The answer so far. A stream without a finish reason was cut, which is an error."""
        if not self._answered:
            whole = decode_response(self._rest)
            is_told = bool(self._rest) and self._failure is None
            return whole if is_told else end_stream_early(whole, PROVIDER, self._failure)
        candidate = {**self._candidate, "content": {"parts": self._parts}, "finishReason": self._reported}
        whole = decode_response({**self._rest, "candidates": [candidate]})
        whole = dataclasses.replace(whole, tool_calls=self._break_unfinished(whole.tool_calls))
        is_whole = self._failure is None and self._reported is not None
        return whole if is_whole else end_stream_early(whole, PROVIDER, self._failure)

    def _break_unfinished(self, calls: Sequence[ToolCall]) -> list[ToolCall]:
        """Gives a call that never came whole a text that is not valid JSON, so that it is refused when it is run."""
        unfinished = [*self._broken, *([self._open_call] if self._open_call is not None else ())]
        return [
            ToolCall(call.id, call.name, {}, call.metadata, compact(part["functionCall"]["args"])[:-1])
            if any(part is one for one in unfinished)
            else call
            for call, part in zip(calls, _calls_in(self._parts), strict=True)
        ]


def _calls_in(parts: Sequence[JsonDict]) -> list[JsonDict]:
    return [part for part in parts if isinstance(part.get("functionCall"), dict)]


def _merge(before: Any, more: Any) -> Any:
    """Sources and ratings of a candidate, which come in several chunks. Lists grow, unless they only come again."""
    if isinstance(before, dict) and isinstance(more, dict):
        return {key: _merge(before.get(key), more.get(key)) for key in {**before, **more}}
    if isinstance(before, list) and isinstance(more, list):
        return [*before, *(item for item in more if item not in before)]
    return before if more is None else more


# -- arguments that are streamed value by value, each with its path; a text may come in several pieces -------------------


def put_value(arguments: JsonDict, piece: JsonDict) -> bool:
    """Puts one value into the arguments; a text is appended. Returns False if the path cannot be read.

    >>> arguments = {}
    >>> put_value(arguments, {"jsonPath": "$.to[0].name", "stringValue": "A"})
    True
    >>> put_value(arguments, {"jsonPath": "$.to[0].name", "stringValue": "da"})
    True
    >>> arguments
    {'to': [{'name': 'Ada'}]}
    """
    steps = _parse_path(piece.get("jsonPath"))
    if not steps:
        return False
    value = next((piece[key] for key in _VALUES if piece.get(key) is not None), None)
    if value is None and "nullValue" not in piece:
        return True  # only says that a text has ended, or that more follows
    place: Any = arguments
    for step, following in pairwise(steps):
        if not _fits(place, step):
            return False
        place = _enter(place, step, [] if isinstance(following, int) else {})
    last = steps[-1]
    if not _fits(place, last):
        return False
    before = _get(place, last)
    if isinstance(value, str) and isinstance(before, str):
        value = before + value
    # The SDK reads every number as a float.
    _set(place, last, int(value) if isinstance(value, float) and value.is_integer() else value)
    return True


def _parse_path(path: object) -> list[str | int]:
    if not isinstance(path, str) or not path.startswith("$"):
        return []
    steps: list[str | int] = []
    at = 1
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None or len(steps) == _MAX_STEPS:
            return []
        quoted = found[3] if found[3] is not None else found[4]
        if found[2] is not None:
            steps.append(int(found[2]))
        else:
            steps.append(found[1] if quoted is None else _ESCAPED.sub(r"\1", quoted))
        at = found.end()
    return steps


def _fits(place: Any, step: str | int) -> bool:
    if isinstance(step, int):
        return isinstance(place, list) and step <= len(place) + _MAX_GAP
    return isinstance(place, dict)


def _enter(place: Any, step: str | int, empty: Any) -> Any:
    inner = _get(place, step)
    if not isinstance(inner, type(empty)):
        inner = empty
        _set(place, step, inner)
    return inner


def _get(place: Any, step: Any) -> Any:
    if isinstance(place, dict):
        return place.get(step)
    return place[step] if step < len(place) else None


def _set(place: Any, step: Any, value: Any) -> None:
    if isinstance(place, list):
        place += [None] * (step + 1 - len(place))
    place[step] = value
