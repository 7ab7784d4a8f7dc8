"""Repositories for the tests of git: one to start from, and what makes it hostile."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    # Fixed, so that a commit has the same digest on every machine.
    "GIT_AUTHOR_DATE": "2001-01-01T00:00:00Z",
    "GIT_COMMITTER_DATE": "2001-01-01T00:00:00Z",
    "GIT_AUTHOR_NAME": "n",
    "GIT_AUTHOR_EMAIL": "e@example.org",
    "GIT_COMMITTER_NAME": "n",
    "GIT_COMMITTER_EMAIL": "e@example.org",
}


def git(folder: Path, *arguments: str, check: bool = True, home: Path = Path("/nonexistent")) -> str:
    """Run plain git, without a guard."""
    command, environment = ["git", *arguments], {**ENVIRONMENT, "HOME": str(home)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=check).stdout


@dataclass
class Repository:
    root: Path

    @property
    def proof(self) -> Path:
        """The hostile program makes this file. It is inside the repository, so that no read-only mount hides it."""
        return self.root / ".git" / "proof"

    @property
    def evil(self) -> str:
        return str(self.root / "evil.sh")

    def config(self, *pairs: str) -> None:
        for key, value in zip(pairs[0::2], pairs[1::2], strict=True):
            git(self.root, "config", key, value)

    def edit_same_size(self) -> None:
        """An edit that only the content shows, so that git must read the file, and run its filters first."""
        (self.root / "tracked").write_text("TWO\n")
        os.utime(self.root / "tracked", (2_000_000_000, 2_000_000_000))


def new_repository(root: Path, program: str = "touch {proof}\ncat\n") -> Repository:
    """A repository with one commit and no changes. ``program`` is the hostile program, which git ignores."""
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    (root / "tracked").write_text("one\n")
    (root / "evil.sh").write_text("#!/bin/sh\n" + program.format(proof=root / ".git/proof"))
    (root / "evil.sh").chmod(0o755)
    (root / ".git/info/exclude").write_text("evil.sh\n")
    git(root, "add", "tracked")
    git(root, "commit", "-qm", "first")
    return Repository(root)


def fsmonitor(repository: Repository) -> None:
    repository.config("core.fsmonitor", repository.evil)


def hooks(repository: Repository) -> None:
    folder = repository.root / ".git" / "evil-hooks"
    folder.mkdir()
    (folder / "post-index-change").symlink_to(repository.evil)
    repository.config("core.hooksPath", str(folder))
    os.utime(repository.root / "tracked", (2_000_000_000, 2_000_000_000))  # the index is written again


def clean_filter(repository: Repository) -> None:
    (repository.root / ".gitattributes").write_text("tracked filter=X.y=z\n")
    repository.config("filter.X.y=z.clean", repository.evil)
    repository.edit_same_size()


def process_filter(repository: Repository) -> None:
    (repository.root / ".gitattributes").write_text("tracked filter=Long\n")
    repository.config("filter.Long.process", repository.evil, "filter.Long.required", "true")
    repository.edit_same_size()


def included_filter(repository: Repository) -> None:
    (repository.root / ".gitattributes").write_text("tracked filter=X\n")
    (repository.root / ".git/more").write_text(f'[filter "X"]\n\tclean = {repository.evil}\n')
    repository.config("include.path", "more")
    repository.edit_same_size()


def worktree_config(repository: Repository) -> None:
    repository.config("extensions.worktreeConfig", "true")
    git(repository.root, "config", "--worktree", "core.fsmonitor", repository.evil)


# Attacks a plain ``git status`` falls for.
RUN_CODE: dict[str, Callable[[Repository], None]] = {
    "103-fsmonitor": fsmonitor,
    "104-hooksPath": hooks,
    "105-clean": clean_filter,
    "105-process": process_filter,
    "107-include": included_filter,
    "107-worktree-config": worktree_config,
}


def nothing_in_it(inner: Path) -> None:
    inner.mkdir()


def head_missing(inner: Path) -> None:
    git(inner.parent, "init", "-q")
    (inner / "HEAD").unlink()


def head_without_meaning(inner: Path) -> None:
    git(inner.parent, "init", "-q")
    (inner / "HEAD").write_text("refs/heads/main\n")


def head_linked_elsewhere(inner: Path) -> None:
    head_missing(inner)
    (inner / "elsewhere").write_text("ref: refs/heads/main\n")
    (inner / "HEAD").symlink_to("elsewhere")


def objects_missing(inner: Path) -> None:
    git(inner.parent, "init", "-q")
    shutil.rmtree(inner / "objects")


def refs_missing(inner: Path) -> None:
    git(inner.parent, "init", "-q")
    shutil.rmtree(inner / "refs")


def no_file_at_all(inner: Path) -> None:
    os.mkfifo(inner)


# Git ignores these and continues above them.
INCOMPLETE = (
    nothing_in_it, head_missing, head_without_meaning, head_linked_elsewhere, objects_missing, refs_missing, no_file_at_all,
)  # fmt: skip
