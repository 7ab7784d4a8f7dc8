"""The type checkers of a toolkit: each runs in a process in the sandbox, which stays alive for the next program.

Promise: a program passes only if the checker answered, and found the mistake that every text contains as a probe. A
checker that takes too long or too much memory, ends, or answers nonsense is killed, the program is refused, and the next
program gets a new process.
"""

from __future__ import annotations

import ast
import hashlib
import json
import math
import os
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from toolkit.errors import ToolCancelled, ToolFailed
from toolkit.guard.forks import start_again_in_child
from toolkit.guard.process.program import SYSTEM, helper_interpreter, is_below
from toolkit.guard.restarts import count_restart
from toolkit.runtime.programs.check.checked_text import CheckedText, build_checked_text
from toolkit.runtime.programs.check.installed import CheckerName, InstalledChecker, find_checker
from toolkit.runtime.programs.check.messages import CheckerFinding
from toolkit.runtime.programs.check_messages import word_findings
from toolkit.runtime.programs.error_list import shorten_errors
from toolkit.runtime.programs.frames import BrokenFrame, Frame
from toolkit.runtime.programs.gate import ParsedProgram
from toolkit.runtime.programs.process import FramedProcess, ProcessEnded
from toolkit.runtime.programs.result import ProgramError
from toolkit.runtime.programs.settings import Checker
from toolkit.runtime.signals import CancelSignal

if TYPE_CHECKING:
    from toolkit.guard.process.guard import ProcessGuard

SECONDS: Final = 20.0
"""How long one check may take. The first one of a process takes mypy about a second."""
_MAX_ANSWER: Final = 16 << 20
_MAX_KEPT: Final = 256
_SCRIPT: Final = os.path.join(os.path.dirname(os.path.realpath(__file__)), "inside_checker.py")


class Checkers:
    """Checks programs, with one process for each checker that is asked for. May be used by several threads.

    The processes run in the sandbox of ``guard``, which should show them no workspace.
    """

    def __init__(self, guard: ProcessGuard, seconds: float = SECONDS) -> None:
        self._guard: Final = guard
        self._seconds: Final = seconds
        self._lock = threading.Lock()
        self._processes: Final[dict[CheckerName, FramedProcess]] = {}
        self._kept: Final[OrderedDict[bytes, tuple[ProgramError, ...]]] = OrderedDict()
        self._closed = False
        start_again_in_child(self)

    def start_again_in_child(self) -> None:
        """The processes belong to the parent."""
        self._lock = threading.Lock()
        self._processes.clear()

    def check(
        self,
        program: ParsedProgram,
        prelude: str,
        errors_stub: str,
        previous: Sequence[str],
        choice: Checker,
        until: float = math.inf,
        signal: CancelSignal | None = None,
    ) -> tuple[ProgramError, ...]:
        """What is wrong with the types of a program that passed the gate.

        ``prelude`` declares its tools and inputs, ``previous`` are the earlier programs of its session. ``until`` (of the
        monotonic clock) and ``signal`` end the check early; then the program is refused.
        """
        if choice == "off":
            return ()
        checker = find_checker(choice)
        key = _digest(checker.name, checker.version, program.source, prelude, errors_stub, *previous)
        if not self._lock.acquire(timeout=min(max(0.0, until - time.monotonic()), threading.TIMEOUT_MAX)):
            return (_not_checked("there was no time left"),)
        try:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
            text = build_checked_text(prelude, program, previous)
            findings = self._ask(checker, {"text": text.text, "stub": errors_stub}, until, signal or CancelSignal())
            if isinstance(findings, ProgramError):
                return (findings,)
            errors = _read_findings(findings, text, program.tree, prelude)
            self._kept[key] = errors
            if len(self._kept) > _MAX_KEPT:
                self._kept.popitem(last=False)
            return errors
        finally:
            self._lock.release()

    def close(self) -> None:
        """End the processes; a check that is running is refused, and so are later ones."""
        self._closed = True
        for process in list(self._processes.values()):
            process.wake()
        with self._lock:
            while self._processes:
                self._processes.popitem()[1].close()

    def _ask(
        self, checker: InstalledChecker, request: dict[str, str], until: float, signal: CancelSignal
    ) -> list[CheckerFinding] | ProgramError:
        """The findings of the checker, or an error if there is no verdict; then its process is gone."""
        latest = time.monotonic() + self._seconds
        process = self._processes.get(checker.name)
        if process is None or not process.is_alive:
            if process is not None:
                count_restart("program_checker")
            self._end(checker.name)
            process = self._processes[checker.name] = self._start(checker)
        forget = signal.listen(process.wake)
        try:
            process.send({}, json.dumps(request).encode())
            frames: list[Frame] = []
            while not frames:
                self._check_open()
                frames = process.receive(min(until, latest), signal.check)
            [frame] = frames
            return [CheckerFinding(*row) for row in _read_rows(frame.body)]
        except TimeoutError:
            limit = f"{checker.name} took longer than {self._seconds:g} s; make the program simpler"
            why = limit if latest < until else "there was no time left"
        except ToolCancelled as error:
            why = error.message
        except ProcessEnded as error:
            why = f"{checker.name} gave no answer ({error}); make the program simpler"
        except (BrokenFrame, ValueError):
            why = f"{checker.name} gave no answer that can be used; make the program simpler"
        finally:
            forget()
        self._end(checker.name)
        return _not_checked(why)

    def _end(self, name: CheckerName) -> None:
        process = self._processes.pop(name, None)
        if process is not None:
            process.close()

    def _start(self, checker: InstalledChecker) -> FramedProcess:
        self._check_open()
        settings = {
            "checker": checker.name,
            "path": [checker.packages],
            "program": checker.program,
            "version": f"{sys.version_info.major}.{sys.version_info.minor}",
        }
        roots = [os.path.dirname(_SCRIPT), checker.packages, os.path.dirname(checker.program)]
        command = [helper_interpreter(), "-I", "-S", _SCRIPT, json.dumps(settings)]
        needed = [root for root in roots if not any(is_below(root, place) for place in SYSTEM)]
        return FramedProcess(self._guard.start(command, read_roots=needed), _MAX_ANSWER)

    def _check_open(self) -> None:
        if self._closed:
            raise ToolFailed("IO", "the toolkit has been closed")


def _not_checked(why: str) -> ProgramError:
    return ProgramError(0, 0, f"the program was not checked: {why}", "type")


def _read_rows(body: bytes) -> list[tuple[int, int, str, str]]:
    """The findings of an answer; ``ValueError`` if it has none, or is not what the script inside writes."""
    try:
        rows = json.loads(body)["findings"]
        found = [(line, column, code, message) for line, column, code, message in rows]
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError(str(error)) from None
    if not all(list(map(type, row)) == [int, int, str, str] for row in found):
        raise ValueError("a finding has other types")
    return found


def _read_findings(
    findings: Sequence[CheckerFinding], text: CheckedText, tree: ast.Module, prelude: str
) -> tuple[ProgramError, ...]:
    """The errors in lines of the program itself."""
    if not any(finding.line == text.probe_line for finding in findings):
        return (_not_checked("the earlier programs never end; reset the session"),)
    placed = []
    for finding in findings:
        place = text.place(finding.line, finding.column)
        if place is not None:
            placed.append(finding._replace(line=place[0], column=place[1]))
    return shorten_errors(word_findings(placed, tree, text.lines, prelude))


def _digest(*parts: str) -> bytes:
    made = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        made.update(len(data).to_bytes(8) + data)
    return made.digest()
