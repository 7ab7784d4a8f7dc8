"""What a command of the full tier sees of the machine, whether bubblewrap or our own code builds it.

Besides these tables, ``SYSTEM`` (``program.py``) lists the directories of programs. What is in neither does not exist
for a command.
"""

from __future__ import annotations

import os
from typing import Final

# What programs look up in /etc; the rest (shadow, keys, ...) stays hidden.
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
        # Where Debian keeps what every Java program reads; passwords for remote management are next to it.
        *(
            f"java-{version}-openjdk/{name}"
            for version in (11, 17, 21, 25)
            for name in ("logging.properties", "net.properties", "security")
        ),
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


def fill_tmp(gitconfig: str) -> None:
    """Make the directories that commands expect in a new ``/tmp``, and write the settings of git in HOME."""
    for folder in (HOME, f"{TMP}/.shm"):
        os.makedirs(folder, 0o700, exist_ok=True)
    write_gitconfig(HOME, gitconfig)


def write_gitconfig(home: str, text: str) -> None:
    """Write ``.gitconfig``, unless there is nothing to write."""
    if text:
        with open(f"{home}/.gitconfig", "x", errors="surrogateescape") as file:
            file.write(text)
