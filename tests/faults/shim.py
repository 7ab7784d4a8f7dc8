"""The fault shim: from now on, the n-th system call of this process that can fail in one way does.

It stands between our code and the system: the functions of ``os`` and ``fcntl``, files opened with ``open``, and the two calls
that are made through ctypes. Python itself repeats a call that a signal interrupted (EINTR), so only the latter can end in
that way. It is for a process of its own: it changes modules, and never changes them back.
"""

from __future__ import annotations

import builtins
import ctypes
import errno
import fcntl
import io
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from toolkit.guard.files import resolve
from toolkit.guard.files import write as rename

_OPENS: Final = ("open", "scandir", "listdir")
_GROWS: Final = ("mkdir", "makedirs", "link", "symlink", "rename", "replace", "write", "pwrite", "pwritev", "ftruncate", "fsync")  # fmt: skip
_OTHERS: Final = ("read", "pread", "readlink", "stat", "lstat", "fstat", "chmod", "fchmod", "unlink", "rmdir")
_LOCKS: Final = ("flock", "fcntl")

# For each fault: the functions of `os` that can fail with it.
_CAN_FAIL: Final[Mapping[int, tuple[str, ...]]] = {
    errno.ENOSPC: ("create", *(name for name in _GROWS if name != "makedirs")),
    errno.EIO: (*_OPENS, "create", *(name for name in _GROWS if name != "makedirs"), *_OTHERS, *_LOCKS),
    errno.EMFILE: (*_OPENS, "create"),
    errno.EINTR: (),
}
FAULTS: Final = tuple(_CAN_FAIL)


class FaultShim:
    """Counts the calls that can fail with ``code``, and lets the n-th fail; ``failed`` says which one that was."""

    def __init__(self, number: int, code: int) -> None:
        self._left = number
        self._code = code
        self.failed = ""

    def install(self) -> None:
        for name in {*_OPENS, *_GROWS, *_OTHERS} - {"open", "makedirs"}:
            setattr(os, name, self._before(name, getattr(os, name)))
        for name in _LOCKS:
            setattr(fcntl, name, self._before(name, getattr(fcntl, name)))
        self._install_open()
        setattr(resolve, "_syscall", self._before_native("openat2", resolve._syscall))  # noqa: B010
        if rename._renameat2 is not None:
            rename._renameat2 = self._before_native("renameat2", rename._renameat2)

    def strike(self, name: str, path: object = None) -> None:
        """Raises if this is the call that fails; as the system does, with the path if one was given."""
        if name in _CAN_FAIL[self._code] and self._is_turn(name):
            raise OSError(self._code, os.strerror(self._code), *([path] if isinstance(path, str | os.PathLike) else []))

    def _is_turn(self, name: str) -> bool:
        self._left -= 1
        if self._left == 0:
            self.failed = name
        return self._left == 0

    def _before(self, name: str, act: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            self.strike(name, arguments[0] if arguments else None)
            return act(*arguments, **options)

        return call

    def _before_native(self, name: str, act: Callable[..., Any]) -> Callable[..., Any]:
        """A call through ctypes: it returns -1, and the error is in ``errno``."""
        fitting = (errno.EIO, errno.EINTR, errno.EMFILE if name == "openat2" else errno.ENOSPC)

        def call(*arguments: Any) -> Any:
            if self._code in fitting and self._is_turn(name):
                ctypes.set_errno(self._code)
                return -1
            return act(*arguments)

        return call

    def _install_open(self) -> None:
        really_open, shim = os.open, self

        def open_descriptor(path: Any, flags: int, *arguments: Any, **options: Any) -> int:
            shim.strike("create" if flags & os.O_CREAT else "open", path)
            return really_open(path, flags, *arguments, **options)

        class CountedFile(io.FileIO):
            """What ``open`` puts its buffers over."""

            def write(self, data: Any, /) -> int:
                shim.strike("write")
                return super().write(data)

            def read(self, size: int | None = -1, /) -> bytes:
                shim.strike("read")
                return super().read(size)

        def open_file(
            file: Any, mode: str = "r", buffering: int = -1, encoding: str | None = None, errors: str | None = None,
            newline: str | None = None, closefd: bool = True, opener: Any = None,
        ) -> Any:  # fmt: skip
            if not isinstance(file, int) and opener is None:
                shim.strike("open" if "r" in mode else "create", file)
            raw = CountedFile(file, mode.replace("b", "").replace("t", ""), closefd, opener)
            if buffering == 0:
                return raw
            writes = "r" not in mode
            buffered: Any = io.BufferedWriter(raw) if writes else io.BufferedReader(raw)
            return buffered if "b" in mode else io.TextIOWrapper(buffered, encoding or "utf-8", errors, newline)

        os.open = open_descriptor
        builtins.open = open_file
        io.open = open_file


def numbers(everything: bool) -> Iterator[int]:
    """Which calls fail: each of them, or in `make test` the first ones and then fewer and fewer (a fixed rule)."""
    number, step = 1, 1
    while True:
        yield number
        step = 1 if everything or number < 3 else number
        number += step
