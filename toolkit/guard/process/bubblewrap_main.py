"""The program that bubblewrap starts: the supervisor of one command, as first process of its namespaces.

Everything it needs comes with it (``bubblewrap.py``); none of our code is read from a file that a command could write.
It is started again for each command, so it and everything it imports must load fast.
"""

from __future__ import annotations

import marshal
import os
import signal
from types import SimpleNamespace
from typing import Any, NoReturn

from toolkit.guard.process.kernel import PR_SET_DUMPABLE, Unsupported, prctl
from toolkit.guard.process.supervisor import Supervisor, fill_tmp


def main(message_fd: int) -> NoReturn:
    """Supervise the command in the message."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    prctl("dumpable", PR_SET_DUMPABLE, 0)  # the command must not look into this process
    with open(message_fd, "rb") as file:
        message = marshal.loads(file.read())
    setup = _namespace(
        {"is_full": True, "roots": _namespace(message["roots"]), "limits": _namespace(message["limits"])}
    )
    supervisor = Supervisor(setup, _namespace(message["request"]), -1, message["client"], message["server"], {})
    mounts, hidden, gitconfig = message["mounts"], message["hidden"], message["request"]["gitconfig"]
    supervisor.run(message["stdio"], lambda: _prepare(mounts, hidden, gitconfig))


def _namespace(values: dict[str, object]) -> Any:
    """The same attributes as the dataclass in ``messages.py``, which takes longer to import than all the rest."""
    return SimpleNamespace(**values)


def _prepare(mounts: dict[str, list[int]], hidden: list[str], gitconfig: str) -> None:
    """Refuse mounts that are not of the directories that were meant, or that hide nothing, and fill the new ``/tmp``."""
    for place, known in mounts.items():
        info = os.lstat(place)
        if [info.st_dev, info.st_ino] != known:
            raise Unsupported("a directory was moved or replaced while it was being mounted")
    for place in hidden:
        if os.lstat(place).st_mode & 0o777:
            raise Unsupported("a path that a rule hides was replaced while the command was being started; run it again")
    fill_tmp(gitconfig)
