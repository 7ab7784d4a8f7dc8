"""The command line in processes that begin with its imports done: forks of one process that has imported it.

Half a second less for each of some hundred commands. Tests about the start itself, about what is imported, or about what somebody
planted where Python looks for modules start an interpreter instead (``tests.projects.run``).
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from subprocess import CompletedProcess
from typing import IO, Any, NoReturn

REPOSITORY = Path(__file__).parent.parent
DOWNSTREAM = REPOSITORY / "tests" / "downstream"


def toolkit(folder: Path, *arguments: str, check: bool = False) -> CompletedProcess[str]:
    """``python -m toolkit`` in a folder, which can import the packages there as well as ours."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        files = [f"/proc/{os.getpid()}/fd/{file.fileno()}" for file in (out, err)]
        places = os.pathsep.join(map(str, (folder, REPOSITORY, DOWNSTREAM)))
        environment = {**os.environ, "PYTHONPATH": places, "NO_COLOR": "1"}
        code = _ask({"folder": str(folder), "arguments": arguments, "environment": environment, "files": files})
        printed = [_all_of(file) for file in (out, err)]
    if check and code:
        raise AssertionError(f"toolkit {arguments} ended with {code}\n{printed[0][-8000:]}\n{printed[1][-4000:]}")
    return CompletedProcess(arguments, code, *printed)


def _all_of(file: IO[str]) -> str:
    file.seek(0)
    return file.read()


def _ask(request: dict[str, Any]) -> int:
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
    import datamodel_code_generator  # noqa: F401
    import mcp  # noqa: F401

    import toolkit.cli.commands
    import toolkit.codegen  # noqa: F401

    gc.freeze()
    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        child = os.fork()
        if not child:
            _become(**json.loads(line))
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), file=answers, flush=True)


def _become(folder: str, arguments: list[str], environment: dict[str, str], files: list[str]) -> NoReturn:
    for number, (path, flags) in enumerate([(os.devnull, os.O_RDONLY), *((file, os.O_WRONLY) for file in files)]):
        opened = os.open(path, flags)
        os.dup2(opened, number)
        os.close(opened)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.path[0:1] = ["", folder]
    sys.argv = [str(REPOSITORY / "toolkit" / "__main__.py"), *arguments]
    sys.stdin = open(0)  # noqa: SIM115
    from toolkit.cli.app import main

    sys.modules["__main__"].__package__ = "toolkit"
    main()
    raise SystemExit(0)


if __name__ == "__main__":
    _serve()
