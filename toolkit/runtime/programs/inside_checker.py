"""Runs mypy inside the sandbox, for one program after the other: ``python -I -S inside_checker.py SETTINGS``.

``SETTINGS`` is JSON: ``packages``, where mypy is installed, and ``version``, the Python version of the programs. A request is
a frame (see ``frames.py``) whose body is JSON with ``text``, the module to check, and ``stub``, the text of ``toolkit.pyi``.
The answer's body is JSON: ``findings``, a list of ``[line, column, message]`` that count from 1, or ``failed``, why there is
no verdict. Standard library and mypy only.
"""

from __future__ import annotations

import importlib
import json
import os
import struct
import sys
import tempfile
from typing import Any, BinaryIO

_LENGTHS = struct.Struct("!II")

# What mypy reports, but is not a reason to refuse a program: it would run all the same.
_DISABLED = (
    "annotation-unchecked", "exit-return", "func-returns-value", "has-type", "import-not-found", "import-untyped",
    "method-assign", "no-redef", "override", "str-unpack", "unused-ignore", "valid-type", "var-annotated",
)  # fmt: skip


class NoVerdict(Exception):
    """mypy did not do its work."""


def find_mistakes(text: str, version: str) -> list[list[Any]]:
    """Text on the command line is never read from mypy's cache, only the modules that it imports are."""
    from mypy import api

    options = ["--config-file=", "--no-site-packages", "--check-untyped-defs", "--allow-redefinition"]
    options += [f"--disable-error-code={code}" for code in _DISABLED]
    options += [f"--python-version={version}", "--cache-dir=cache", "--output=json", "-c", text]
    output, complaints, status = api.run(options)
    rows = []
    for line in output.splitlines():
        found = json.loads(line)
        if found["severity"] == "error" and found["file"] == "<string>":
            rows.append([found["line"], found["column"] + 1, _join(found["message"], found["hint"])])
    if status not in (0, 1) and not rows:
        raise NoVerdict(complaints or output)
    return rows


def _join(message: str, hint: str | None) -> str:
    return message if not hint else f"{message}\n{hint}"


def answer_request(request: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """mypy's findings, or why there are none."""
    if not os.path.exists("toolkit.pyi"):
        with open("toolkit.pyi", "w", encoding="utf-8") as file:
            file.write(request["stub"])
    try:
        return {"findings": find_mistakes(request["text"], settings["version"])}
    except (Exception, SystemExit) as error:
        return {"failed": f"{type(error).__name__}: {error}"[-2000:]}


def read_frame(source: BinaryIO) -> bytes | None:
    """The body of the next frame; None at the end of the input."""
    lengths = source.read(_LENGTHS.size)
    if len(lengths) < _LENGTHS.size:
        return None
    head, body = _LENGTHS.unpack(lengths)
    return source.read(head + body)[head:]


def send_answer(sink: BinaryIO, answer: dict[str, Any]) -> None:
    body = json.dumps(answer).encode()
    sink.write(_LENGTHS.pack(2, len(body)) + b"{}" + body)
    sink.flush()


def answer_in_child(body: bytes, sink: BinaryIO, settings: dict[str, Any]) -> None:
    """Each check has a process of its own, because a run of mypy leaves about 10 MB behind, and nothing of one program
    should be there for the next. What was imported before is shared with it."""
    child = os.fork()
    if child == 0:
        send_answer(sink, answer_request(json.loads(body), settings))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if status != 0:
        send_answer(sink, {"failed": f"the process of the check ended with {status}"})


def serve(settings: dict[str, Any]) -> None:
    """Answer requests until the input ends."""
    source, sink = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what mypy prints by itself must not become a frame
    os.chdir(tempfile.mkdtemp())
    sys.path.insert(0, settings["packages"])
    importlib.import_module("mypy.main")
    while (body := read_frame(source)) is not None:
        answer_in_child(body, sink, settings)


if __name__ == "__main__":
    serve(json.loads(sys.argv[1]))
