"""The command line in processes that begin with its imports done: forks of one process that has imported it.

Half a second less for each of some hundred commands. Tests about the start itself, about what is imported, or about what somebody
planted where Python looks for modules start an interpreter instead (``tests.projects.run``).
"""

from __future__ import annotations

import atexit
import gc
import io
import json
import os
import pty
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from subprocess import CompletedProcess
from typing import IO, NoReturn

REPOSITORY = Path(__file__).parent.parent
DOWNSTREAM = REPOSITORY / "tests" / "downstream"


def toolkit(folder: Path, *arguments: str, check: bool = False, first: str = "") -> CompletedProcess[str]:
    """``python -m toolkit`` in a folder, which can import the packages there as well as ours; ``first`` is code run before."""
    return _run(folder, arguments, f"{first}\n{_COMMAND}", check=check)


def python(folder: Path, code: str, *, check: bool = True) -> CompletedProcess[str]:
    """``python -c`` in a folder, as ``Project.python``; for code to which it is the same whether we are imported already."""
    return _run(folder, (), code, check=check)


_COMMAND = "from toolkit.cli.app import main; main()"


def _run(folder: Path, arguments: Sequence[str], code: str, *, check: bool) -> CompletedProcess[str]:
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        files = [f"/proc/{os.getpid()}/fd/{file.fileno()}" for file in (out, err)]
        ended = _ask(folder, arguments, [os.devnull, *files], code)
        printed = [_all_of(file) for file in (out, err)]
    if check and ended:
        raise AssertionError(f"toolkit {arguments} ended with {ended}\n{printed[0][-8000:]}\n{printed[1][-4000:]}")
    return CompletedProcess(arguments, ended, *printed)


def toolkit_on_terminal(folder: Path, *arguments: str, typed: bytes = b"") -> tuple[int, str]:
    """The same on a terminal of its own: the exit code, and all that the terminal got. What is typed waits to be read."""
    ours, theirs = pty.openpty()
    pieces: list[bytes] = []

    def read() -> None:
        with suppress(OSError):  # how Linux reports that nobody has the terminal open any more
            while piece := os.read(ours, 65536):
                pieces.append(piece)

    reader = threading.Thread(target=read)
    reader.start()
    os.write(ours, typed)
    code = _ask(folder, arguments, [os.ttyname(theirs)] * 3, _COMMAND)
    os.close(theirs)
    reader.join()
    os.close(ours)
    return code, b"".join(pieces).decode()


def _all_of(file: IO[str]) -> str:
    file.seek(0)
    return file.read()


def _ask(folder: Path, arguments: Sequence[str], files: Sequence[str], code: str) -> int:
    places = os.pathsep.join(map(str, (folder, REPOSITORY, DOWNSTREAM)))
    environment = {**os.environ, "PYTHONPATH": places, "NO_COLOR": "1"}
    request = {
        "folder": str(folder),
        "arguments": arguments,
        "environment": environment,
        "files": files,
        "code": code,
    }
    process = _ready_process()
    assert process.stdin and process.stdout
    process.stdin.write(json.dumps(request) + "\n")
    process.stdin.flush()
    return int(process.stdout.readline())


@cache
def _ready_process() -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.command_line"]
    environment = {**os.environ, "PYTHONPATH": f"{REPOSITORY}{os.pathsep}{DOWNSTREAM}", "NO_COLOR": "1"}
    process = subprocess.Popen(
        command, cwd=REPOSITORY, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    atexit.register(process.__exit__, None, None, None)  # it ends when its input does
    return process


def _serve() -> None:
    import datamodel_code_generator.model.pydantic_v2
    import datamodel_code_generator.parser.jsonschema  # noqa: F401
    import mcp  # noqa: F401

    import toolkit.cli.commands
    import toolkit.codegen.imports.run
    import toolkit.codegen.lint
    import toolkit.codegen.package.classes
    import toolkit.codegen.package.plan
    import toolkit.codegen.package.write
    import toolkit.codegen.run
    import toolkit.generated_support
    import toolkit.runtime.catalog  # noqa: F401

    gc.freeze()
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        child = os.fork()
        if not child:
            _become(**json.loads(line))
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), file=answers, flush=True)


def _become(folder: str, arguments: list[str], environment: dict[str, str], files: list[str], code: str) -> NoReturn:
    for number, path in enumerate(files):
        opened = os.open(path, (os.O_WRONLY if number else os.O_RDONLY) | os.O_NOCTTY)
        os.dup2(opened, number)
        os.close(opened)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.path[0:1] = ["", folder]
    sys.argv = [str(REPOSITORY / "toolkit" / "__main__.py"), *arguments]
    sys.stdin = open(0)  # noqa: SIM115
    assert isinstance(sys.stdout, io.TextIOWrapper)
    sys.stdout.reconfigure(line_buffering=os.isatty(1))
    sys.modules["__main__"].__package__ = "toolkit"
    status: object = None
    try:
        exec(code, {"__name__": "__main__"})
    except SystemExit as ended:
        status = ended.code
    if isinstance(status, str):
        sys.stderr.write(f"{status}\n")
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    # An interpreter that ends by itself frees all it has imported, which takes longer than many a command.
    os._exit(status if isinstance(status, int) else int(status is not None))


if __name__ == "__main__":
    _serve()
