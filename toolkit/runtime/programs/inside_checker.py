"""Runs a type checker inside the sandbox, for one program after the other. Run as a script: ``python -I -S
inside_checker.py SETTINGS``.

``SETTINGS`` is JSON: ``checker``, ``path`` (where mypy is installed), ``program`` (the file of ty or pyrefly) and
``version``, the Python version of the programs. A request is a frame (see ``frames.py``) whose body is JSON with ``text``,
the module to check, and ``stub``, the text of ``toolkit.pyi``. The answer's body is JSON: ``findings``, a list of
``[line, column, code, message]`` that count from 1, or ``failed``, why there is no verdict. Standard library and mypy only.
"""

from __future__ import annotations

import importlib
import json
import os
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any, BinaryIO

_LENGTHS = struct.Struct("!II")
_FILE = "program.py"

Row = list[Any]

# What mypy reports, but is not a reason to refuse a program: it would run all the same.
_MYPY_DISABLED = (
    "annotation-unchecked", "exit-return", "func-returns-value", "has-type", "import-not-found", "import-untyped",
    "method-assign", "no-redef", "override", "str-unpack", "unused-ignore", "valid-type", "var-annotated",
)  # fmt: skip
_TY_IGNORED = ("invalid-type-form", "invalid-method-override", "redundant-cast")
_TY_WARNINGS_THAT_COUNT = ("unused-awaitable",)
_PYREFLY_IGNORED = ("not-a-type", "bad-override", "missing-import", "redundant-cast")


class NoVerdict(Exception):
    """The checker did not do its work."""


def check_with_mypy(text: str, settings: dict[str, Any]) -> list[Row]:
    """Text on the command line is never read from mypy's cache, only the modules that it imports are."""
    from mypy import api

    options = ["--config-file=", "--no-site-packages", "--check-untyped-defs", "--allow-redefinition"]
    options += [f"--disable-error-code={code}" for code in _MYPY_DISABLED]
    options += [f"--python-version={settings['version']}", "--cache-dir=cache", "--output=json", "-c", text]
    output, complaints, status = api.run(options)
    rows = []
    for line in output.splitlines():
        found = json.loads(line)
        if found["severity"] == "error" and found["file"] == "<string>":
            rows.append(
                [found["line"], found["column"] + 1, found["code"] or "", _join(found["message"], found["hint"])]
            )
    if status not in (0, 1) and not rows:
        raise NoVerdict(complaints or output)
    return rows


def _join(message: str, hint: str | None) -> str:
    return message if not hint else f"{message}\n{hint}"


def check_with_ty(text: str, settings: dict[str, Any]) -> list[Row]:
    """ty writes the format of GitLab; its errors have the severity major."""
    options = ["--output-format=gitlab", f"--python-version={settings['version']}"]
    options += [f"--ignore={rule}" for rule in _TY_IGNORED]
    rows = []
    for found in _run_program(text, [settings["program"], "check", *options, _FILE]):
        begin = found["location"]["positions"]["begin"]
        code = found["check_name"]
        if found["severity"] in ("major", "critical", "blocker") or code in _TY_WARNINGS_THAT_COUNT:
            message = found["description"].removeprefix(f"{code}: ")
            rows.append([begin["line"], begin["column"], code, message])
    return rows


def check_with_pyrefly(text: str, settings: dict[str, Any]) -> list[Row]:
    with open("pyrefly.toml", "w", encoding="utf-8") as file:
        file.write('preset = "default"\n')
    options = ["--output-format=json", "--skip-interpreter-query", f"--python-version={settings['version']}"]
    options += [f"--ignore={rule}" for rule in _PYREFLY_IGNORED]
    answer = _run_program(text, [settings["program"], "check", *options, _FILE])
    return [
        [found["line"], found["column"], found["name"], found["description"]]
        for found in answer["errors"]
        if found["severity"] == "error"
    ]


def _run_program(text: str, command: list[str]) -> Any:
    """Check a file with a program that ends with 0 or 1 and writes JSON."""
    with open(_FILE, "w", encoding="utf-8") as file:
        file.write(text)
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if done.returncode not in (0, 1):
        raise NoVerdict(done.stderr.decode("utf-8", "replace"))
    return json.loads(done.stdout)


CHECKERS: dict[str, Callable[[str, dict[str, Any]], list[Row]]] = {
    "mypy": check_with_mypy,
    "ty": check_with_ty,
    "pyrefly": check_with_pyrefly,
}


def answer_request(request: dict[str, Any], settings: dict[str, Any]) -> dict[str, Any]:
    """The findings of the checker, or why there are none."""
    if not os.path.exists("toolkit.pyi"):
        with open("toolkit.pyi", "w", encoding="utf-8") as file:
            file.write(request["stub"])
    try:
        return {"findings": CHECKERS[settings["checker"]](request["text"], settings)}
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
    os.dup2(2, 1)  # what a checker prints by itself must not become a frame
    os.chdir(tempfile.mkdtemp())
    if settings["checker"] == "mypy":
        sys.path[:0] = settings["path"]
        importlib.import_module("mypy.main")
    while (body := read_frame(source)) is not None:
        answer_in_child(body, sink, settings)


if __name__ == "__main__":
    serve(json.loads(sys.argv[1]))
