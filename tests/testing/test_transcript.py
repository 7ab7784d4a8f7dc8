"""Transcripts: every kind of message as text, and nothing that differs from run to run."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolkit import (
    AssistantToolCallMessage,
    ChatMessage,
    ContentBlock,
    Conversation,
    TextMessage,
    ToolCall,
    ToolResult,
    ToolResultMessage,
)
from toolkit.testing import Transcript, render_transcript

EVERYTHING: list[ChatMessage] = [
    TextMessage("system", "Be brief."),
    TextMessage("user", [ContentBlock("text", text="Look:"), ContentBlock("image", "image/png", data="AAAA")]),
    AssistantToolCallMessage(
        "I write.\nThen I read.",
        [
            ToolCall("toolu_1", "write_file", {"path": "a.py", "content": "one\ntwo\n" + "#" * 80}),
            ToolCall("toolu_2", "read_file", {"path": "a.py", "limit": 3}),
            ToolCall("toolu_3", "read_file", {}, None, '{"path": '),
        ],
    ),
    ToolResultMessage(ToolResult("toolu_2", "read_file", "data", {"lines": ["ä"], "at": "2026-01-02T03:04:05.678Z"})),
    ToolResultMessage(
        ToolResult("toolu_1", "write_file", "error", "INTERNAL: the cause is in the log under 0a1b2c3d")
    ),
    ToolResultMessage(
        ToolResult("toolu_3", "read_file", "multimodal", (ContentBlock("document", url="https://example.org/a.pdf"),))
    ),
    TextMessage("assistant", "id 6f1c1f9e-9df6-4b29-8d4c-0123456789ab\x1b[31m, ref_id \"out-77\""),
]  # fmt: skip

RENDERED = """\
system:
    Be brief.

user:
    Look:
    [image image/png 4 characters of base64]

model:
    I write.
    Then I read.
    call_1: write_file(
        path="a.py"
        content=
            |one
            |two
            |################################################################################
    )
    call_2: read_file(path="a.py", limit=3)
    call_3: read_file with the arguments {"path":

call_2: data of read_file:
    {
      "lines": [
        "ä"
      ],
      "at": "<time>"
    }

call_1: error of write_file:
    INTERNAL: the cause is in the log under <id>

call_3: multimodal of read_file:
    [document https://example.org/a.pdf]

model:
    id <uuid>\\x1b[31m, ref_id "<ref>"
"""


def test_every_kind_of_message() -> None:
    assert render_transcript(EVERYTHING) == RENDERED


def test_how_a_conversation_ended_is_part_of_it() -> None:
    assert render_transcript(Conversation([TextMessage("user", "hi")])).endswith("\nended by: nothing yet\n")
    ended = Conversation([TextMessage("user", "hi"), TextMessage("assistant", "hello")], ended_by="stop")
    assert render_transcript(ended).endswith("    hello\n\nended by: stop\n")


def test_own_replacements_are_taken_literally() -> None:
    messages = [TextMessage("user", r"took 12 ms in C:\x")]
    assert render_transcript(messages, {r"\d+ ms": r"<\1 time>"}) == "user:\n    took <\\1 time> in C:\\x\n"


def test_several_transcripts_of_one_test(tmp_path: Path) -> None:
    first, second = [TextMessage("user", "one")], [TextMessage("user", "two")]
    writing = Transcript(tmp_path, "test_it", update=True)
    writing.check(first)
    writing.check(second, "second")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["test_it-second.txt", "test_it.txt"]
    reading = Transcript(tmp_path, "test_it")
    reading.check(first)
    with pytest.raises(AssertionError, match=r"(?s)differs from its transcript.*-    two.*\+    one"):
        reading.check(first, "second")
    reading.replace["one"] = "two"
    reading.check(first, "second")
