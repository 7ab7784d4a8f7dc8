"""A client for pyright's language server: enough of the protocol to ask what an editor would offer at a place."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

BIN = Path(sys.executable).parent


@dataclass(frozen=True, slots=True)
class Offer:
    """One entry of a completion list."""

    label: str
    documentation: str


class LanguageServer:
    """Pyright's server for one folder. Messages are a header with a length, and JSON."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._last_id = 0
        self._process = subprocess.Popen(
            [str(BIN / "pyright-langserver"), "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder
        )

    def __enter__(self) -> Self:
        root = {"uri": self._folder.as_uri(), "name": self._folder.name}
        plain = ["plaintext"]
        understood = {
            "completion": {"completionItem": {"documentationFormat": plain}},
            "hover": {"contentFormat": plain},
        }
        capabilities = {"workspace": {"configuration": True}, "textDocument": understood}
        self._ask("initialize", {"rootUri": root["uri"], "workspaceFolders": [root], "capabilities": capabilities})
        self._tell("initialized", {})
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self._ask("shutdown", None)
            self._tell("exit", None)
        else:
            self._process.kill()
        self._process.communicate()

    def complete(self, text: str) -> list[Offer]:
        """What is offered where ``|`` stands in the program, in the order of an editor."""
        with self._opened(text) as place:
            found = self._ask("textDocument/completion", place) or {"items": []}
            items = sorted(found["items"], key=lambda item: item.get("sortText", item["label"]))
            return [Offer(item["label"], self._document(item)) for item in items]

    def hover(self, text: str) -> str:
        """What is shown for the word at ``|``."""
        with self._opened(text) as place:
            found = self._ask("textDocument/hover", place)
            return str(found["contents"]["value"]) if found else ""

    @contextmanager
    def _opened(self, text: str) -> Iterator[dict[str, Any]]:
        """The program without its mark is open in the editor; gives the place of the mark."""
        before, _, after = text.partition("|")
        document = {"uri": (self._folder / "edited.py").as_uri()}
        opened = {**document, "languageId": "python", "version": 1, "text": before + after}
        self._tell("textDocument/didOpen", {"textDocument": opened})
        position = {"line": before.count("\n"), "character": len(before.rpartition("\n")[2])}
        yield {"textDocument": document, "position": position}
        self._tell("textDocument/didClose", {"textDocument": document})

    def _document(self, item: dict[str, Any]) -> str:
        if item["label"].startswith("__"):
            return ""
        text = self._ask("completionItem/resolve", item).get("documentation", "")
        return str(text["value"] if isinstance(text, dict) else text)

    def _tell(self, method: str, parameters: Any) -> None:
        self._send({"method": method, "params": parameters})

    def _ask(self, method: str, parameters: Any) -> Any:
        self._last_id += 1
        self._send({"id": self._last_id, "method": method, "params": parameters})
        while True:
            message = self._receive()
            if message.get("id") == self._last_id and "method" not in message:
                if "error" in message:
                    raise AssertionError(f"{method}: {message['error']}")
                return message.get("result")
            if "id" in message:  # a question of the server's, such as for the editor's settings
                asked = message["params"].get("items", ()) if isinstance(message.get("params"), dict) else ()
                self._send({"id": message["id"], "result": [{} for _ in asked] or None})

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._process.stdin
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self._process.stdin.flush()

    def _receive(self) -> dict[str, Any]:
        assert self._process.stdout
        length = 0
        while line := self._process.stdout.readline().strip():
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        if not length:
            raise AssertionError("the language server ended")
        message: dict[str, Any] = json.loads(self._process.stdout.read(length))
        return message
