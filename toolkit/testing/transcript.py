"""Golden transcripts: a conversation is compared with a file that was written when somebody last looked at it."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from toolkit.visible import escape_hidden_lines
from toolkit.wire.call import ToolCall
from toolkit.wire.content import ContentBlock
from toolkit.wire.message import AssistantToolCallMessage, ChatMessage, TextMessage, ToolResultMessage
from toolkit.wire.query import Conversation

# ----------------------------------------------------------------------------------------------------------------------
# A conversation as readable text in which nothing changes from run to run: ids are numbered, paths and times replaced.

_INDENT: Final = "    "
_WIDTH: Final = 100
_SPEAKERS: Final = {"assistant": "model", "user": "user", "system": "system"}

VOLATILE: Final[Mapping[str, str]] = {
    r"\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b": "<uuid>",
    r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d([.,]\d+)?)?( ?(Z|[+-]\d\d:?\d\d)\b)?": "<time>",
    r"(?<=in the log under )[0-9a-f]{8}\b": "<id>",
    r"(?<=ref_id \")[^\"]+": "<ref>",
}
"""Patterns of what differs from run to run, and what stands in their place: UUIDs, times, ids of internal errors, references
to kept outputs."""


def render_transcript(
    conversation: Conversation | Sequence[ChatMessage], replace: Mapping[str, str] | None = None
) -> str:
    """A conversation as text. ``replace`` maps further regular expressions to what stands in their place.

    >>> from toolkit import AssistantToolCallMessage, ToolCall, ToolResult, ToolResultMessage
    >>> made = ToolCall("toolu_01A09q90qw", "read_file", {"path": "/tmp/x7/a.txt"})
    >>> result = ToolResultMessage(ToolResult("toolu_01A09q90qw", "read_file", "text", "hello"))
    >>> talk = [TextMessage("user", "Read it."), AssistantToolCallMessage("", [made]), result]
    >>> print(render_transcript(talk, {"/tmp/x7": "<tmp>"}), end="")
    user:
        Read it.
    <BLANKLINE>
    model:
        call_1: read_file(path="<tmp>/a.txt")
    <BLANKLINE>
    call_1: text of read_file:
        hello
    """
    messages = conversation.messages if isinstance(conversation, Conversation) else conversation
    text = render_messages(_number_ids(messages))
    if isinstance(conversation, Conversation):
        text += f"\nended by: {conversation.ended_by or 'nothing yet'}\n"
    for pattern, instead in {**VOLATILE, **(replace or {})}.items():
        text = re.sub(pattern, instead.replace("\\", r"\\"), text)
    return text


def render_messages(messages: Sequence[ChatMessage]) -> str:
    """Messages as text, with everything they hold as it is; hidden characters are shown as escapes."""
    return "\n".join("".join(f"{line}".rstrip() + "\n" for line in _lines(message)) for message in messages)


def _lines(message: ChatMessage) -> Iterator[str]:
    if isinstance(message, ToolResultMessage):
        result = message.result
        yield f"{result.tool_call_id}: {result.kind} of {result.name}:"
        yield from _indent(_value_text(result.value))
        return
    calls = message.tool_calls if isinstance(message, AssistantToolCallMessage) else ()
    yield "model:" if isinstance(message, AssistantToolCallMessage) else f"{_SPEAKERS[message.role]}:"
    if message.content or not calls:
        yield from _indent(_value_text(message.content))
    for made in calls:
        yield from _indent(_call_text(made))


def _indent(text: str) -> list[str]:
    return [f"{_INDENT}{line}" for line in escape_hidden_lines(text.removesuffix("\n")).split("\n")]


def _value_text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, tuple | list) and value and all(isinstance(one, ContentBlock) for one in value):
        return "\n".join(map(_block_text, value))
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)


def _block_text(block: ContentBlock) -> str:
    if block.text is not None:
        return block.text
    where = block.url or block.file_id or f"{len(block.data or '')} characters of base64"
    return f"[{' '.join(filter(None, (block.type, block.media_type, block.filename, where)))}]"


def _call_text(made: ToolCall) -> str:
    head = f"{made.id}: {made.name}"
    if made.unread_text is not None and not made.arguments:
        return f"{head} with the arguments {made.unread_text}"
    given = {key: json.dumps(value, ensure_ascii=False, default=str) for key, value in made.arguments.items()}
    inline = f"{head}({', '.join(f'{key}={text}' for key, text in given.items())})"
    if len(inline) <= _WIDTH:
        return inline
    lines = [line for key, value in made.arguments.items() for line in _argument_lines(key, value, given[key])]
    return "\n".join([f"{head}(", *(f"{_INDENT}{line}" for line in lines), ")"])


def _argument_lines(key: str, value: object, shown: str) -> list[str]:
    if isinstance(value, str) and "\n" in value:
        return [f"{key}=", *(f"{_INDENT}|{line}" for line in value.split("\n"))]
    return [f"{key}={shown}"]


def _number_ids(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """The messages with ``call_1``, ``call_2`` and so on for the ids of calls, in the order they come."""
    numbers: dict[str, str] = {}

    def number(id: str) -> str:
        return numbers.setdefault(id, f"call_{len(numbers) + 1}")

    def renamed(message: ChatMessage) -> ChatMessage:
        if isinstance(message, TextMessage):
            return message
        if isinstance(message, AssistantToolCallMessage):
            calls = [
                ToolCall(number(one.id), one.name, one.arguments, one.metadata, one.raw_arguments)
                for one in message.tool_calls
            ]
            return AssistantToolCallMessage(message.content, calls, message.metadata)
        result = message.result
        made = type(result)(number(result.tool_call_id), result.name, result.kind, result.value)
        return ToolResultMessage(made, message.metadata)

    return list(map(renamed, messages))


UPDATE: Final = "--update-transcripts"


class Transcript:
    """The transcripts of one test. The fixture ``transcript`` makes it; without pytest, make one yourself.

    ``folder`` holds the files, ``name`` begins their names. With ``update`` they are written instead of compared.
    ``replace`` maps regular expressions to what stands in their place, for what differs from run to run.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> Transcript(folder, "greeting", update=True).check(Conversation([]))
    >>> Transcript(folder, "greeting").check(Conversation([]))
    """

    def __init__(
        self, folder: Path, name: str, *, update: bool = False, replace: Mapping[str, str] | None = None
    ) -> None:
        self._folder: Final = folder
        self._name: Final = name
        self._update: Final = update
        self.replace: Final = dict(replace or {})

    def check(self, conversation: Conversation | Sequence[ChatMessage], name: str = "") -> None:
        """Compares a conversation with its file. A test with several of them gives each a ``name``."""
        file = self._folder / f"{'-'.join(filter(None, (self._name, name)))}.txt"
        text = render_transcript(conversation, self.replace)
        if self._update:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8", newline="\n")
            return
        if not file.is_file():
            raise AssertionError(f"there is no transcript {file}; run pytest {UPDATE}, and read what it writes")
        expected = file.read_text(encoding="utf-8")
        if text != expected:
            lines = expected.splitlines(), text.splitlines()
            diff = "\n".join(difflib.unified_diff(*lines, str(file), "this conversation", lineterm=""))
            raise AssertionError(
                f"the conversation differs from its transcript; if it should, run pytest {UPDATE}\n{diff}"
            )
