"""The repositories that commands attack, and the user who runs git in them afterwards.

``ws`` is the workspace and a repository with a submodule (``sub``), a repository inside it (``nested``) that git ignores,
and a directory of sources. ``extra`` is a second root with a repository, ``bare`` a third that is a bare repository.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.guard.repositories import git
from tests.guard.ways import Way, guard_in
from toolkit.guard import GitMode, ProcessGuard, ProcessResult

IDENTITY = ("-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "protocol.file.allow=always")


def commit(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)
    git(folder, "add", name)
    git(folder, "commit", "-qm", f"{name} {text}")


def build(base: Path) -> None:
    """Everything the attacks start from; it may be copied elsewhere."""
    workspace = base / "ws"
    for folder in (workspace, workspace / "nested", base / "extra", base / "source"):
        folder.mkdir()
        git(folder, "init", "-q", "-b", "main")
        commit(folder, "tracked", "one\n")
    commit(base / "source", "marker", "written by the checkout of a submodule\n")
    git(base, "clone", "-q", "--bare", "source", "bare")
    for name in ("tools", "src"):
        (workspace / name).mkdir()
    (workspace / "src/code.txt").write_text("code\n")
    (workspace / ".git/info/exclude").write_text("nested\nevil.sh\n")
    git(workspace, *IDENTITY, "submodule", "--quiet", "add", "../source", "sub")
    (workspace / ".gitattributes").write_text("*.x filter=x diff=x merge=x\n")
    git(workspace, "add", ".")
    git(workspace, "commit", "-qm", "all")
    git(workspace, "checkout", "-qb", "other")
    commit(workspace, "tracked", "two\n")
    git(workspace, "checkout", "-q", "main")
    commit(workspace, "tracked", "three\n")
    commit(workspace, "more", "four\n")
    # Nearly all files are samples of hooks, which nothing here needs, and objects: each test copies what is left.
    for sample in base.rglob("hooks/*.sample"):
        sample.unlink()
    for folder in (workspace, workspace / "nested", workspace / "sub", base / "extra", base / "bare", base / "source"):
        git(folder, "repack", "-adq")


@dataclass
class Repositories:
    """One copy of that world; ``marker`` is the file that a hostile program makes."""

    base: Path

    @property
    def workspace(self) -> Path:
        return self.base / "ws"

    @property
    def marker(self) -> Path:
        return self.base / "marker"

    def guard(self, way: Way, git_mode: GitMode = "commit", keep: Sequence[str] = ()) -> ProcessGuard:
        roots = [str(self.base / "extra"), str(self.base / "bare")]
        return guard_in(
            way, self.workspace, write_roots=roots, git=git_mode, keep=keep, state_dir=str(self.base / "state")
        )

    def attack(self, guard: ProcessGuard, text: str) -> ProcessResult:
        """Run shell text with a hostile program at ``$E``, the second root at ``$X``, the third at ``$B`` and the user's
        HOME, which it cannot write, at ``$H``."""
        evil = self.workspace / "evil.sh"
        setup = (
            f"E={evil}; X={self.base}/extra; B={self.base}/bare; H={self.base}/home\n"
            "export GIT_AUTHOR_NAME=n GIT_AUTHOR_EMAIL=e@example.org GIT_COMMITTER_NAME=n GIT_COMMITTER_EMAIL=e@example.org\n"
            f"printf '#!/bin/sh\\ntouch {self.marker}\\n' > $E; chmod +x $E\n"
        )
        return guard.shell(setup + text, timeout=60)

    def user(self, text: str) -> str:
        """What the user does afterwards: shell text in the workspace, without any sandbox."""
        home = self.base / "home"
        home.mkdir(exist_ok=True)
        names = {f"GIT_{who}_{what}": "u" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        environment = {"PATH": os.environ["PATH"], "HOME": str(home), "X": str(self.base / "extra"), **names}
        environment |= {"B": str(self.base / "bare"), "GIT_EDITOR": "true", "GIT_TERMINAL_PROMPT": "0"}
        done = subprocess.run(
            ["sh", "-c", text],
            cwd=self.workspace,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        return done.stdout + done.stderr


def copy_world(template: Path, base: Path) -> Repositories:
    shutil.copytree(template, base, symlinks=True)
    return Repositories(base)
