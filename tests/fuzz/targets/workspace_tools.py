"""Patches and edits, through the tools, over a workspace that is put back after each input."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

from tests.builtin.patches import files_in, write
from tests.builtin.workspace import toolkit_for
from toolkit import InternalError, ToolkitError
from toolkit.generated import Toolkit

FILES = {
    "ws/a.txt": b"one\ntwo\nthree\n",
    "ws/sub/b.py": b"def f():\n\treturn 1\n",
    "ws/crlf.txt": b"x\r\ny\r\n",
    "outside/a.txt": b"SECRET\n",
}


@cache
def _base() -> Path:
    folder = tempfile.mkdtemp(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    base = Path(folder)
    _restore(base)
    return base


@cache
def _toolkit() -> Toolkit:
    opened = toolkit_for(_base() / "ws")
    atexit.register(opened.close)
    return opened


def _restore(base: Path) -> None:
    """Only what is in the workspace is removed: the toolkit holds its directory open."""
    for name in os.listdir(base / "ws") if (base / "ws").exists() else ():
        path = base / "ws" / name
        if path.is_symlink() or not path.is_dir():
            path.unlink()
        else:
            shutil.rmtree(path)
    write(base, FILES)
    if not (base / "ws/out").is_symlink():
        (base / "ws/out").symlink_to("../outside")


def check_patch(data: bytes) -> None:
    """Applied or refused: a refused patch changes nothing, none changes anything outside, a dry run says the same."""
    patch = data.decode(errors="replace")
    before = files_in(_base())
    rehearsed = _outcome(patch, dry_run=True)
    assert files_in(_base()) == before, "a dry run changed something"
    applied = _outcome(patch, dry_run=False)
    after = files_in(_base())
    assert after["outside/a.txt"] == FILES["outside/a.txt"] and {p for p in after if p.startswith("outside")} == {
        "outside/a.txt"
    }, "something outside changed"
    assert rehearsed == applied, "the dry run said something else"
    if applied != "done":
        assert after == before, "a refused patch changed something"
    if after != before:
        _restore(_base())


def _outcome(patch: str, *, dry_run: bool) -> str:
    try:
        _toolkit().tools.apply_patch(patch=patch, dry_run=dry_run)
    except InternalError:
        raise
    except ToolkitError as error:
        assert str(error).strip()
        return str(error)
    return "done"


def check_edit(data: bytes) -> None:
    """The bytes are a file, the old and the new text, divided by a byte that UTF-8 never has.

    A refused edit changes nothing. One that matched exactly replaced the old text by the new one, and nothing else.
    """
    parts = data.split(b"\xff")
    content, old, new = [*parts, b"", b"", b""][:3]
    file = _base() / "ws/edited"
    file.write_bytes(content)
    try:
        done = _toolkit().tools.edit(
            path="edited", old_string=old.decode(errors="replace"), new_string=new.decode(errors="replace")
        )
    except InternalError:
        raise
    except ToolkitError as error:
        assert str(error).strip()
        assert file.read_bytes() == content, "a refused edit changed something"
        return
    after = file.read_bytes()
    assert after != content, "it said that it had changed something"
    if done.match_mode == "exact" and b"\r" not in data:
        wanted, instead = (text.decode(errors="replace").encode() for text in (old, new))
        assert after == content.replace(wanted, instead, 1), "it changed something else"
