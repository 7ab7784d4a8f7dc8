"""Several threads that start at the same moment, and waiting for what must happen."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

T = TypeVar("T")

ODD_NAMES: Final[Sequence[str]] = ("", "a", "A", "../../a", "a\nb", "a:b", "{a}", "*", "ü", "\udc80", "a" * 10_000)
"""Names of sessions, keys and ids may be any text; each must be another one."""

_WATCHDOG: Final = 60.0


def call_at_once(number: int, act: Callable[[int], T]) -> list[T]:
    """What ``act`` returns for 0, 1, 2, ..., each in a thread of its own. The first error is raised."""
    results: list[T] = []
    errors: list[BaseException] = []
    start = threading.Barrier(number)

    def run(index: int) -> None:
        try:
            start.wait(_WATCHDOG)
            results.append(act(index))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(index,), daemon=True) for index in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(_WATCHDOG)
        assert not thread.is_alive(), f"the store did not answer within {_WATCHDOG:g} s"
    if errors:
        raise errors[0]
    return results


def wait_until(is_so: Callable[[], object], what: str) -> None:
    """Waits for something that must happen sooner or later, such as expiry."""
    give_up = time.monotonic() + _WATCHDOG
    while not is_so():
        assert time.monotonic() < give_up, what
        time.sleep(0.01)
