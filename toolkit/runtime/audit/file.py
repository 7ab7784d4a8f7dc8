"""The audit log in a file: each record is in it when ``append`` returns.

Several threads and processes may append. They take turns with a lock that is not on the log itself: whoever may open the
log to read it could hold such a lock. The file that the path leads to is looked at before each write. If it is another one,
because somebody renamed, removed or replaced the log, the chain goes on in a new file, and that is reported.
"""

from __future__ import annotations

import atexit
import heapq
import logging
import os
import stat
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from queue import Empty, SimpleQueue
from typing import Any, Final, Protocol

from toolkit.errors import SetupError, ToolCancelled, ToolFailed, ToolTimeout
from toolkit.files.locks import ProcessLock
from toolkit.runtime.audit.settings import AuditFile, Check, MakeRecord, MustWait
from toolkit.runtime.audit.verification import (
    AUDIT_BEGINNING,
    chain_lines,
    count_records,
    is_older_file,
    older_file,
    read_end,
    records_before,
    shift_files,
    write_record,
)

logger: Final = logging.getLogger("toolkit")

_OPEN: Final = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_MAX_SECONDS: Final = 30.0
"""How long a writer waits for others: they hold the lock for less than milliseconds, unless they were stopped."""
_SECONDS_BETWEEN_CHECKS: Final = 0.05
_FIRST_LINE: Final = 64 * 1024


class FileSink:
    """An open log."""

    def __init__(self, settings: AuditFile, roots: Iterable[str]) -> None:
        self._settings: Final = settings
        self._roots: Final = tuple(roots)
        self._path: Final = os.path.realpath(settings.path)
        self._file, self._identity = _open_log(settings.path, self._roots)
        self._between: Final = ProcessLock(f"audit log {self._path}")
        self._turn = threading.RLock()
        self._writes = False
        self._end = -1
        self._head = AUDIT_BEGINNING
        self._first: dict[str, Any] = {}
        """What the next record says as the first one of its file."""
        _open_sinks.add(self)

    @property
    def blocking(self) -> bool:
        return self._settings.fsync

    def append(self, record: Mapping[str, Any], check: Check, /) -> None:
        self.write(lambda: [write_record(record)], check)

    def write(self, take: Callable[[], Sequence[bytes]], check: Check, done: Callable[[], None] | None = None) -> None:
        """Writes the lines that ``take`` returns; both functions are called while it is the turn of this thread."""
        check_time = _limited(check)
        while not self._turn.acquire(timeout=_SECONDS_BETWEEN_CHECKS if check is not _may_not_wait else 0):
            check_time()
        try:
            if self._writes:
                # A signal handler interrupted this thread while it was writing.
                raise MustWait
            self._writes = True
            try:
                self._between.acquire(check_time)
                try:
                    if self._file >= 0 and (lines := take()):
                        self._write(lines)
                        if done is not None:
                            done()
                finally:
                    self._between.release()
            finally:
                self._writes = False
        finally:
            self._turn.release()

    def flush(self) -> None:
        """Everything is written already."""

    def close(self) -> None:
        with self._turn:
            if self._file >= 0:
                os.close(self._file)
            # The number may be given to another file, so nothing may be written to it any more.
            self._file = -1
            self._between.forget()

    def start_again_in_child(self) -> None:
        """In a forked child: the locks are those of the parent, and its threads are not here."""
        self._turn = threading.RLock()
        self._writes = False
        self._end = -1
        self._between.forget()

    # -- while no other writer writes ----------------------------------------------------------------------------------

    def _write(self, lines: Sequence[bytes]) -> None:
        torn, newline = self._find_end()
        limit = self._settings.max_bytes
        if limit is not None and self._end >= limit:
            self._rotate()
            torn = newline = False
        marks = {**self._first, "torn": True} if torn else self._first
        if marks:
            lines = [b"%b,%b" % (lines[0][:-1], write_record(marks)[1:]), *lines[1:]]
        data, head = chain_lines(lines, self._head)
        self._put(b"\n" + data if newline else data)
        self._head = head
        self._first = {}

    def _put(self, data: bytes) -> None:
        before = self._end
        try:
            if os.write(self._file, data) != len(data):
                raise OSError("the disk is full")
            if self._settings.fsync:
                os.fsync(self._file)
        except OSError:
            # What was refused must not be found in the file, and a batch is written again.
            os.ftruncate(self._file, before)
            raise
        self._end = before + len(data)

    def _find_end(self) -> tuple[bool, bool]:
        """Reads the last hash if the file has changed. Whether a writer died, and whether a newline is missing."""
        try:
            info = os.stat(self._path, follow_symlinks=False)
        except FileNotFoundError:
            info = None
        if info is None or (info.st_dev, info.st_ino) != self._identity:
            return self._follow_path()
        if info.st_size == self._end:
            return False, False
        return self._read_end(info.st_size)

    def _read_end(self, size: int) -> tuple[bool, bool]:
        self._end, self._first = size, {}
        if not size:
            self._head = AUDIT_BEGINNING
            self._continue_older()
            return False, False
        end = read_end(self._file, size)
        self._head = end.hash or AUDIT_BEGINNING
        return end.torn, not end.has_newline

    def _continue_older(self) -> None:
        """A new log goes on where the one before it ended, if that is kept beside it: ``audit.jsonl.1``."""
        try:
            older = os.open(older_file(self._path, 1), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        except FileNotFoundError:
            return
        try:
            self._continue(older)
        finally:
            os.close(older)

    def _continue(self, older: int) -> None:
        info = os.fstat(older)
        end = read_end(older, info.st_size) if stat.S_ISREG(info.st_mode) else None
        if end is not None and end.hash is not None:
            self._head = end.hash
            self._first = {"before": count_records(older)}

    def _follow_path(self) -> tuple[bool, bool]:
        """The path leads to another file, or to none: opens what is there."""
        old, old_identity = self._file, self._identity
        rotated = is_older_file(self._path, old_identity)
        removed = os.fstat(old).st_nlink == 0
        file, identity = _open_log(self._settings.path, self._roots)
        size = os.fstat(file).st_size
        if size and read_end(file, size).hash is None:
            os.close(file)
            raise OSError(f"{self._settings.path} was replaced by a file that is not an audit log")
        self._file, self._identity = file, identity
        try:
            found = self._read_end(size)
            if not size and not rotated:
                self._continue(old)
                if removed and self._first:
                    self._first["lost"] = True
            if not rotated and not (size and records_before(os.pread(file, _FIRST_LINE, 0).partition(b"\n")[0])):
                what = "removed" if removed else "renamed or replaced"
                logger.error("the audit log %s was %s while it was in use; a new file is used", self._path, what)
            return found
        finally:
            os.close(old)

    def _rotate(self) -> None:
        """Keeps the file under another name, and begins a new one that continues its chain."""
        count = count_records(self._file)
        shift_files(self._path, self._settings.keep)
        file, identity = _open_log(self._settings.path, self._roots)
        os.close(self._file)
        self._file, self._identity = file, identity
        self._end, self._first = 0, {"before": count}
        if self._settings.fsync:
            _sync_folder(os.path.dirname(self._path))


def _may_not_wait() -> None:
    raise MustWait


may_not_wait: Final[Check] = _may_not_wait
"""A check that allows no wait."""


def _limited(check: Check) -> Check:
    """The check, which also raises when the wait is too long."""
    give_up = time.monotonic() + _MAX_SECONDS

    def limited() -> None:
        check()
        if time.monotonic() > give_up:
            problem = f"another process has kept the audit log for more than {_MAX_SECONDS:g} s; try again"
            raise ToolFailed("CONFLICT", f"nothing was run: {problem}")

    return limited


def _open_log(path: str, roots: Iterable[str]) -> tuple[int, tuple[int, int]]:
    """The open file, and its device and number."""
    real = os.path.realpath(path)
    for root in roots:
        inside = os.path.realpath(root)
        if os.path.commonpath([inside, real]) == inside:
            raise SetupError(
                f"the audit log {path!r} is inside {root!r}, where tools can reach it; give a path outside of it"
            )
    try:
        file = os.open(real, _OPEN, 0o600)
    except FileNotFoundError as error:
        raise SetupError(f"the audit log {path!r} cannot be made: its folder does not exist; create it") from error
    except OSError as error:
        raise SetupError(f"the audit log {path!r} cannot be opened: {error.strerror}") from error
    info = os.fstat(file)
    if not stat.S_ISREG(info.st_mode):
        os.close(file)
        raise SetupError(f"the audit log {path!r} is not a regular file")
    return file, (info.st_dev, info.st_ino)


def _sync_folder(folder: str) -> None:
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(number)
    finally:
        os.close(number)


_open_sinks: Final[weakref.WeakSet[FileSink]] = weakref.WeakSet()


def _reopen_in_child() -> None:
    for sink in list(_open_sinks):
        sink.start_again_in_child()


os.register_at_fork(after_in_child=_reopen_in_child)


# ----------------------------------------------------------------------------------------------------------------------
# One thread of the process that writes what audit logs still have to write, at the time that each of them names.
#
# Nothing here takes a lock, so that a signal handler may call tools at any moment.


class Pending(Protocol):
    """Something that has records to write."""

    def write_pending(self) -> None:
        """Writes them, or says in the log of the program why not."""
        ...


_requests: SimpleQueue[tuple[float, Pending]] = SimpleQueue()
_thread: threading.Thread | None = None
_start: threading.Lock = threading.Lock()
_all: Final[weakref.WeakSet[Pending]] = weakref.WeakSet()


def register(pending: Pending) -> None:
    """From now on, what it has to write is written when the program ends."""
    _all.add(pending)


def write_later(pending: Pending, seconds: float) -> bool:
    """Writes what is pending after so many seconds. Returns False if there can be no thread for it any more."""
    global _thread
    if _thread is None and _start.acquire(blocking=False):
        try:
            if _thread is None:
                thread = threading.Thread(target=_serve, args=(_requests,), name="toolkit-audit", daemon=True)
                thread.start()
                _thread = thread
        except RuntimeError:  # too many threads, or the interpreter is ending
            return False
        finally:
            _start.release()
    _requests.put((time.monotonic() + seconds, pending))
    return True


def _serve(requests: SimpleQueue[tuple[float, Pending]]) -> None:
    due: list[tuple[float, int, Pending]] = []
    number = 0
    while True:
        try:
            at, pending = requests.get(timeout=max(0.0, due[0][0] - time.monotonic()) if due else None)
            heapq.heappush(due, (at, number, pending))
            number += 1
            del pending
        except Empty:
            pass
        while due and due[0][0] <= time.monotonic():
            _write(heapq.heappop(due)[2])


def _write(pending: Pending) -> None:
    try:
        pending.write_pending()
    except Exception:
        logger.exception("audit records could not be written")


def _write_all() -> None:
    for pending in list(_all):
        _write(pending)


def _start_writer_again_in_child() -> None:
    global _requests, _thread, _start
    _requests, _thread, _start = SimpleQueue(), None, threading.Lock()


atexit.register(_write_all)
os.register_at_fork(after_in_child=_start_writer_again_in_child)


# ----------------------------------------------------------------------------------------------------------------------
# The audit log in a file, written in batches: records are handed over, and a thread writes them together.
#
# Promise: a record is handed over before its call runs, and written at latest after ``batch_seconds``, after ``MAX_LINES``
# records, when the toolkit is closed and when the program ends. If a batch cannot be written, calls are refused until it is.
# A process that is killed loses what was not written yet.

MAX_LINES: Final = 1000
"""How many records wait at most for the time at which they are written."""
_MAX_WAITING: Final = 10 * MAX_LINES
"""How many records wait at most for a thread that writes too slowly; then the callers write."""
_RETRY_SECONDS: Final = 1.0


class BatchedSink:
    """An open log that is written in batches."""

    blocking: Final = False

    def __init__(self, file: FileSink, seconds: float) -> None:
        self._file: Final = file
        self._seconds: Final = seconds
        self.waiting: deque[MakeRecord] = deque()
        self._taken: list[bytes] = []
        """The batch that is being written, or could not be written."""
        self.is_stuck = False
        """Whether the last batch could not be written: nothing more may be handed over before it is."""
        self.is_due = False
        """Whether somebody will write what waits."""
        self._hurries = False
        _batched_sinks.add(self)
        register(self)

    @property
    def unwritten(self) -> int:
        """How many records were handed over, but not written yet."""
        return len(self.waiting) + len(self._taken)

    def append(self, record: MakeRecord, check: Check) -> None:
        if self.is_stuck or self.is_full():
            self._write(check)
        self.waiting.append(record)
        if not self.is_due:
            self.write_soon()

    def is_full(self) -> bool:
        """Whether who hands a record over must write first. If there are many, they are written at once."""
        count = len(self.waiting)
        if count >= MAX_LINES and not self._hurries:
            self._hurries = True
            write_later(self, 0)
        return count >= _MAX_WAITING

    def write_soon(self) -> None:
        """Asks for a batch in time: called by who hands a record over and finds that none is due."""
        self.is_due = True
        if not write_later(self, self._seconds):
            self.write_pending()

    def flush(self) -> None:
        self._write(_wait)

    def write_pending(self) -> None:
        self.is_due = self._hurries = False  # first: who hands a record over from now on asks for another batch
        try:
            self._write(_wait)
        except Exception as error:
            logger.error("audit records could not be written; calls are refused until they are", exc_info=error)
            self.is_due = True
            write_later(self, _RETRY_SECONDS)

    def close(self) -> None:
        try:
            self._write(_wait)
        except Exception as error:
            logger.critical("%d records are missing in the audit log", self.unwritten, exc_info=error)
        finally:
            self._file.close()

    def start_again_in_child(self) -> None:
        """In a forked child: what waits is written by the parent."""
        self.waiting.clear()
        self._taken = []
        self.is_stuck = self.is_due = self._hurries = False

    def _write(self, check: Check) -> None:
        """Writes what waits; raises if that is not possible, and nothing is lost."""
        if self.waiting or self._taken:
            try:
                self._file.write(self._take, check, self._forget_taken)
            except (MustWait, ToolTimeout, ToolCancelled):
                raise  # nothing is wrong with the file
            except Exception:
                self.is_stuck = True
                raise
        self.is_stuck = False

    def _take(self) -> Sequence[bytes]:
        taken, waiting = self._taken, self.waiting
        for _ in range(len(waiting)):
            taken.append(write_record(waiting[0]()))
            waiting.popleft()  # not before: a record for which no line can be made is not lost
        return taken

    def _forget_taken(self) -> None:
        self._taken = []


def _wait() -> None:
    """Waits for other writers, as long as the file does."""


_batched_sinks: Final[weakref.WeakSet[BatchedSink]] = weakref.WeakSet()


def _start_batches_again_in_child() -> None:
    for sink in list(_batched_sinks):
        sink.start_again_in_child()


os.register_at_fork(after_in_child=_start_batches_again_in_child)
