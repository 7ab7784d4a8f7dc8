"""The user's name and e-mail address for commits that a command makes. Read in the agent's process.

Promise: of the user's own git configuration only ``user.name`` and ``user.email`` reach a command, as a file in its
private HOME that has nothing else in it; a setting of the repository wins over them. Limits: values that apply only in
some directories (``includeIf``) are not used, nor are those in the environment.
"""

from __future__ import annotations

import os
import re
import subprocess
from typing import Final

from toolkit.guard.process.program import SYSTEM_PATH, find
from toolkit.guard.review.git_config import Setting, write_config

_SECONDS: Final = 5.0
_MAX_VALUE: Final = 1000
_NAMES: Final = (b"name", b"email")
_COMMAND: Final = ("config", "--global", "--includes", "-z", "--get-regexp", r"^user\.(name|email)$")
# Where the user's own configuration is. Nothing else of the environment decides what this git loads or prints.
_VARIABLES: Final = ("HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL")
_CONTROL: Final = re.compile(rb"[\0-\x1f\x7f]+")


def author_settings() -> str:
    """The text of a ``.gitconfig`` with the user's name and address; empty if there are none, or no git."""
    try:
        # Only lists settings, which runs nothing; from "/", so that no directory of a repository matters.
        done = subprocess.run(
            [find("git", ":".join(SYSTEM_PATH), "/"), *_COMMAND],
            cwd="/",
            env={name: os.environ[name] for name in _VARIABLES if name in os.environ},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    found = dict(item.partition(b"\n")[::2] for item in done.stdout.split(b"\0"))
    values = {name: _CONTROL.sub(b" ", found.get(b"user." + name, b""))[:_MAX_VALUE].strip() for name in _NAMES}
    settings = [Setting(b"user", None, name, value) for name, value in values.items() if value]
    return os.fsdecode(write_config(settings))
