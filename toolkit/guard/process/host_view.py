"""What a command of the full tier sees of the machine, whoever builds it.

Beside this table, ``SYSTEM`` (``program.py``) holds the directories of programs. What is in neither is not there.
"""

from __future__ import annotations

import os
from typing import Final

# What programs look up there; the rest of /etc (shadow, keys, ...) is nobody's business.
ETC: Final = tuple(
    f"/etc/{name}"
    for name in (
        "alternatives",
        "bash.bashrc",
        "ca-certificates",
        "ca-certificates.conf",
        "debian_version",
        "fonts",
        "gai.conf",
        "gitattributes",
        "gitconfig",
        "group",
        "host.conf",
        "hosts",
        "inputrc",
        "java",
        "ld.so.cache",
        "ld.so.conf",
        "ld.so.conf.d",
        "locale.alias",
        "locale.conf",
        "localtime",
        "lsb-release",
        "magic",
        "mime.types",
        "nsswitch.conf",
        "os-release",
        "passwd",
        "perl",
        "pki/ca-trust",
        "pki/tls/certs",
        "profile",
        "protocols",
        "resolv.conf",
        "services",
        "ssl/certs",
        "ssl/openssl.cnf",
        "terminfo",
        "timezone",
        "xdg",
    )
)
DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
DEV_LINKS: Final = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
    "shm": "/tmp/.shm",
}

TMP: Final = "/tmp"
HOME: Final = "/tmp/home"
TMP_BYTES: Final = 1 << 30

# Where a repository says what to run: kept as it is, where it exists.
GIT_RUNS: Final = ("config", "hooks", "config.worktree")


def make_folders() -> None:
    """What commands expect in a ``/tmp`` that is new."""
    for folder in (HOME, f"{TMP}/.shm"):
        os.makedirs(folder, 0o700, exist_ok=True)
