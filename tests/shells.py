"""What bash and dash run for a text, word by word: every program of it only writes down its arguments."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Final

from toolkit.guard.policy.shell_text import ShellCommand, ShellGlob, Word

PROGRAMS: Final = ("a", "b", "git", "a.b", "x", "1", "2", "12", "ab", "aa", "ba", "bb")
_END: Final = b"\1"
# Nothing is on the PATH, and no builtin is left: every program is one that was not found.
_BASH_SETUP: Final = r"""
command_not_found_handle() { printf '%s\0' "$@" $'\1' >>"$RECORD"; return "$STATUS"; }
for name in $(compgen -b); do [ $name = printf ] || [ $name = return ] || [ $name = enable ] || [ $name = "[" ] || enable -n $name; done
enable -n [ enable
"""
_DASH_PROGRAM: Final = r"""#!/bin/dash
printf '%s\0' "${0##*/}" "$@" >"$RECORD.$$"
printf '\1\0' >>"$RECORD.$$"
exit "$STATUS"
"""


class Shell:
    """bash or dash in a directory of its own."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self._folder = folder
        self._programs = folder / "programs"
        self._programs.mkdir(parents=True)
        self._place = folder / "place"
        self._record = folder / "records" / "r"
        (folder / "setup").write_text(_BASH_SETUP)
        if name == "dash":
            (folder / "recorder").write_text(_DASH_PROGRAM)
            (folder / "recorder").chmod(0o755)
            for program in PROGRAMS:
                (self._programs / program).symlink_to(folder / "recorder")

    def run(self, text: str) -> tuple[list[tuple[str, ...]], set[str]]:
        """The commands that ran, when each succeeds and when each fails, and the files that redirections made."""
        seen: list[tuple[str, ...]] = []
        files: set[str] = set()
        for status in "01":
            for folder in (self._place, self._record.parent):
                shutil.rmtree(folder, ignore_errors=True)
                folder.mkdir()
            options = ("--noprofile", "--norc") if self.name == "bash" else ()
            done = subprocess.run(
                [shutil.which(self.name) or self.name, *options, "-c", *(["--"] if options else []), text],
                cwd=self._place,
                env={
                    "PATH": str(self._programs),
                    "BASH_ENV": str(self._folder / "setup"),
                    "RECORD": str(self._record),
                    "STATUS": status,
                    "LANG": "C.UTF-8",
                    "HOME": "/home",
                },
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=20,
            )
            assert b"yntax error" not in done.stderr, (text, done.stderr)
            for file in self._record.parent.iterdir():
                rows = file.read_bytes().split(_END + b"\0")[:-1]
                seen += [tuple(word.decode() for word in row.split(b"\0")[:-1]) for row in rows]
            files |= {file.name for file in self._place.iterdir()}
        return seen, files


def is_run_by(command: ShellCommand, argv: tuple[str, ...]) -> bool:
    """Whether these arguments are those of the command; what the shell computes may be any words."""
    return _fit(command.words, argv)


def _fit(words: tuple[Word, ...], argv: tuple[str, ...]) -> bool:
    if not words:
        return not argv
    if isinstance(words[0], str):
        return argv[:1] == words[:1] and _fit(words[1:], argv[1:])
    least = 1 if isinstance(words[0], ShellGlob) else 0
    return any(_fit(words[1:], argv[place:]) for place in range(least, len(argv) + 1))
