"""What bubblewrap starts: the keeper of one command, as first process of its namespaces.

Everything it needs comes with it (``bubblewrap.py``); nothing of ours is read from a file that a command could write.
It is started anew for each command, so it and all it imports load as little as they can.
"""

from __future__ import annotations

import marshal
import os
import signal
from types import SimpleNamespace
from typing import Any, NoReturn

from toolkit.guard.process.host_view import make_folders
from toolkit.guard.process.kernel.syscall import PR_SET_DUMPABLE, Unsupported, prctl
from toolkit.guard.process.supervisor import Keeper


def main(message_fd: int) -> NoReturn:
    """Keep the command the message tells of."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    prctl("dumpable", PR_SET_DUMPABLE, 0)  # the command must not look into this process
    with open(message_fd, "rb") as file:
        message = marshal.loads(file.read())
    setup = _plain({"full": True, "roots": _plain(message["roots"])})
    keeper = Keeper(setup, _plain(message["plan"]), -1, message["job"], message["server"], {})
    keeper.run(message["stdio"], lambda: _make_private(message["mounts"]))


def _plain(values: dict[str, object]) -> Any:
    """The same attributes as the class in ``plan.py``, whose making takes longer than all the rest."""
    return SimpleNamespace(**values)


def _make_private(mounts: dict[str, list[int]]) -> bool:
    """Compare what was mounted with what was meant; the processes are then ours to count."""
    for place, known in mounts.items():
        info = os.lstat(place)
        if [info.st_dev, info.st_ino] != known:
            raise Unsupported("what should have been mounted was moved or replaced meanwhile")
    make_folders()
    return False
