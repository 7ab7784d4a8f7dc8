"""Run as a program: an operation whose n-th system call fails, what it said, and what the next start finds.

Each attempt is a child of its own over new directories; one JSON line reports each outcome.
"""

from __future__ import annotations

import errno
import itertools
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.builtin.killed_patches import PATCH, toolkit_over
from tests.faults.shim import FAULTS, FaultShim, numbers
from tests.files.killed import build, tree
from tests.projects import tool
from toolkit.codegen import find_settings, generate
from toolkit.errors import SetupError, ToolkitError
from toolkit.generated import SecurityPolicy, Toolkit, ToolkitContext, create_agent_toolkit
from toolkit.runtime.audit.verification import verify

LONG = "".join(f"line {number} of a long file\n" for number in range(5_000))
"""Too long to be shown whole, so that the output cache keeps it."""


Install = Callable[[], None]
"""From here on, calls are counted."""


@dataclass(frozen=True)
class Operation:
    """What is done, what it is done to, and what the next start does before anybody looks."""

    prepare: Callable[[Path], object]
    act: Callable[[Path, Install], object]
    next_start: Callable[[Path], list[str]]
    """Returns what is wrong by then; nothing if all is well."""
    directories_may_stay: bool = False
    """Whether directories that were made for a file stay, as ``SandboxFS.write_file`` says."""

    def look(self, base: Path) -> dict[str, str]:
        found = tree(base / "ws")
        files = {path: text for path, text in found.items() if not text.endswith(" directory")}
        return files if self.directories_may_stay else found


def new_file(base: Path, install: Install) -> None:
    with toolkit_over(base) as toolkit:
        install()
        toolkit.tools.write_file(path="new/deep/f.txt", content="new\n")


def replaced_file(base: Path, install: Install) -> None:
    with toolkit_over(base) as toolkit:
        install()
        toolkit.tools.write_file(path="a.txt", content="new a\n")


def patched(base: Path, install: Install) -> None:
    with toolkit_over(base) as toolkit:
        install()
        toolkit.tools.apply_patch(patch=PATCH)


def reopened(base: Path) -> list[str]:
    """A toolkit in the same workspace, which recovers what it finds."""
    toolkit_over(base).close()
    kept = (file.name for file in (base / "state").rglob("*") if file.is_file())
    return [name for name in kept if name.endswith((".journal", ".left"))]


def prepare_long_output(base: Path) -> None:
    build(base)
    (base / "ws/long.txt").write_text(LONG)


def long_output(base: Path, install: Install) -> None:
    """The store may fail, but the call does not; and a ref that is given out can be read."""
    with toolkit_over(base) as toolkit:
        message = toolkit.execute_raw(
            "read_file", json.dumps({"path": "long.txt", "max_lines": 5_000, "max_bytes": 200_000})
        )
        install()
        if "line 0 of" not in message.text():
            raise AssertionError(message.text()[:300])
        if message.output_ref is not None:
            found = toolkit.tools.tool_output_cache_grep(ref_id=message.output_ref, pattern="line 4999 of")
            if len(found.matches) != 1:
                raise AssertionError("a ref was given out, but its text is not there")


def no_leftover_of_the_cache(base: Path) -> list[str]:
    """The next toolkit that keeps something removes what a failed writer left unfinished."""
    long_output(base, lambda: None)
    return [file.name for file in (base / "state").rglob("*.part")]


def audited_toolkit(base: Path) -> Toolkit:
    policy: SecurityPolicy = SecurityPolicy(default="allow")
    return create_agent_toolkit(
        ToolkitContext(workspace=base / "ws", policy=policy, state_dir=base / "state", audit=base / "audit.jsonl")
    )


def audited(base: Path, install: Install) -> None:
    with audited_toolkit(base) as toolkit:
        install()
        toolkit.tools.write_file(path="a.txt", content="new a\n")


def opened(base: Path, install: Install) -> None:
    install()
    audited_toolkit(base).close()


def audited_again(base: Path) -> list[str]:
    """The next process writes to the same log, and the chain holds."""
    with audited_toolkit(base) as toolkit:
        toolkit.tools.read_file(path="a.txt")
    return list(verify(base / "audit.jsonl").problems)


PROJECT = '[project]\nname = "acme"\n\n[tool.toolkit]\nspecs = "tools"\npackage = "acme.generated"\n'


def prepare_project(base: Path) -> None:
    (base / "ws/tools").mkdir(parents=True)
    (base / "ws/acme").mkdir()
    (base / "ws/acme/__init__.py").touch()
    (base / "ws/pyproject.toml").write_text(PROJECT)
    (base / "ws/tools/one.json").write_text(json.dumps(tool("one")))
    os.environ["XDG_CACHE_HOME"] = str(base / "cache")
    generate(find_settings(base / "ws"))
    (base / "ws/tools/two.json").write_text(json.dumps(tool("two")))
    (base / "ws/tools/one.json").write_text(json.dumps({**tool("one"), "description": "Another text."}))


def generated(base: Path, install: Install) -> None:
    settings = find_settings(base / "ws")
    install()
    generate(settings)


def generated_again(base: Path) -> list[str]:
    """The next run finishes what the failed one began."""
    generate(find_settings(base / "ws"))
    return [path.name for path in (base / "ws").rglob("*") if "staging" in path.name]


OPERATIONS = {
    "new file": Operation(build, new_file, reopened, directories_may_stay=True),
    "replaced file": Operation(build, replaced_file, reopened),
    "patch": Operation(build, patched, reopened),
    "output cache": Operation(prepare_long_output, long_output, no_leftover_of_the_cache),
    "audit": Operation(build, audited, audited_again),
    "opening": Operation(build, opened, audited_again),
    "generate": Operation(prepare_project, generated, generated_again),
}


def attempt(operation: Operation, base: Path, number: int, code: int) -> dict[str, Any]:
    """What the child said; ``failed`` is empty if it made fewer calls than that."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        shim = FaultShim(number, code)
        really_write, said = os.write, {"error": "", "kind": ""}
        try:
            operation.act(base, shim.install)
        except BaseException as error:
            ours = isinstance(error, ToolkitError | SetupError) and getattr(error, "code", "") != "INTERNAL"
            said |= {"error": str(error), "kind": "ours" if ours else repr(error)}
        really_write(writing, json.dumps({**said, "failed": shim.failed}).encode())
        os._exit(0)
    os.close(writing)
    with open(reading, "rb") as pipe:
        answer: dict[str, Any] = json.load(pipe)
    os.waitpid(child, 0)
    return answer


def outcomes(operation: Operation, base: Path, code: int, everything: bool) -> Iterator[dict[str, Any]]:
    """``left`` and ``now`` say what the tree is as, at once and after the next start: ``before`` or ``after``."""
    shutil.rmtree(base.parent, ignore_errors=True)
    base.mkdir(parents=True)
    operation.prepare(base)
    base.rename(base.with_name("prepared"))
    states: dict[str, dict[str, str]] = {}
    for number in itertools.chain([0], numbers(everything)):
        shutil.rmtree(base, ignore_errors=True)
        shutil.copytree(base.with_name("prepared"), base, symlinks=True)
        if not number:
            states = {"before": operation.look(base)}
        said = attempt(operation, base, number, code)
        if not number:
            assert not said["kind"], said
            states["after"] = operation.look(base)
            continue
        left = name_state(operation.look(base), states)
        try:
            wrong: object = operation.next_start(base)
        except Exception as error:
            wrong = [repr(error)]
        yield {"number": number, **said, "left": left, "wrong": wrong, "now": name_state(operation.look(base), states)}
        if not said["failed"]:
            return


def name_state(found: dict[str, str], states: dict[str, dict[str, str]]) -> str:
    """Which state it is, else what differs from the one before."""
    before = states["before"]
    differs = {path: found.get(path) for path in before.keys() | found.keys() if before.get(path) != found.get(path)}
    return next((name for name, state in states.items() if state == found), json.dumps(differs)[:500])


def main(base: Path, name: str, codes: str, everything: bool) -> None:
    for code in FAULTS:
        if errno.errorcode[code] in codes.split(","):
            for outcome in outcomes(OPERATIONS[name], base, code, everything):
                sys.stdout.write(json.dumps({"fault": errno.errorcode[code], **outcome}) + "\n")


if __name__ == "__main__":
    os.umask(0o022)
    _, place, which, codes, whole = sys.argv
    main(Path(place), which, codes, whole == "all")
