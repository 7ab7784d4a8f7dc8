"""Golden transcripts: a conversation is compared with a file that was written when somebody last looked at it."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from toolkit.testing.transcript_text import render_transcript
from toolkit.wire.conversation import Conversation
from toolkit.wire.message import ChatMessage

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
