"""The review of commands: what a command must leave as it was is compared after it, put back, and reported.

Promise: when a command has ended and nothing of it is alive, no file below a root that a command may write makes git run
something that git would not have run before; this covers what did not exist, repositories inside others, new ones, moved
ones, and pointers and links to them. Entries that a ``keep`` pattern covers are as they were. What was removed or
replaced is kept below ``state_dir``, and a note says what was done. What cannot be checked is named in a note as well.

Limits: this is after the command. While it runs, another program of the user that runs git in a repository which no mount
holds may see the change, and so may the user's git if this process is killed before the review. A change that the user
makes at the same time, where no mount tells the two apart, is put back like the command's own. While commands run beside
each other, what the first of them found counts.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from toolkit.errors import ToolNotAllowed
from toolkit.guard.fs.deny_globs import Globs
from toolkit.guard.permission import GitMode
from toolkit.guard.process.program import is_below
from toolkit.guard.review.baseline import (
    Baseline,
    HeldPart,
    pointer_target,
    read_entry,
    read_git_folder,
    real_path,
    take_baseline,
)
from toolkit.guard.review.git_state import COMMON, PARTS, StateReview
from toolkit.guard.review.mounts import MAX_MOUNTS, HeldMount, mounts_of_everything, mounts_of_roots
from toolkit.guard.review.node import Node, NodeReader, PutBackStore
from toolkit.guard.review.notes import describe
from toolkit.guard.review.put_back import Change, put_back
from toolkit.guard.review.scan import Identity, Place, Root, Scan, Scanner


@dataclass(eq=False, slots=True)
class RunningReview:
    """One command that runs: what to mount for it, and which parts no running command can write because of that."""

    mounts: list[HeldMount]
    held: frozenset[HeldPart] = field(default_factory=frozenset)


class Review:
    """Reviews the commands of one guard. May be used by several threads.

    ``roots`` are all directories that commands may write, ``skip`` those below them that they may not. ``mounts``: whether
    the tier can hold anything.
    """

    def __init__(
        self,
        roots: Sequence[str],
        *,
        git: GitMode,
        keep: Iterable[str],
        skip: Collection[str],
        state_dir: str | None,
        mounts: bool,
    ) -> None:
        outermost = [path for path in roots if not any(path != other and is_below(path, other) for other in roots)]
        self._paths: Final = list(dict.fromkeys(outermost))
        self._all_paths: Final = roots
        self._git: Final = git
        self._mounts: Final = mounts
        self._keep: Final = Globs(keep)
        self._store: Final = PutBackStore(state_dir)
        self._lock: Final = threading.Lock()
        self._roots = [Root(path) for path in self._paths] if self.is_needed else []
        self._scanner = Scanner(self._roots, self._keep, skip)
        self._running: set[RunningReview] = set()
        self._baseline = Baseline()
        self._closed = False

    @property
    def is_needed(self) -> bool:
        """Whether there is anything to compare."""
        return self._git != "write" or bool(self._keep.globs)

    def begin(self, *, long: bool = False) -> RunningReview:
        """Before a command: remember how everything is. ``long``: it runs until it is closed."""
        with self._lock, _refusing_os_errors():
            scan = self._scanner.scan()
            if self._git == "read-only" and scan.git_folders and not self._mounts:
                raise ToolNotAllowed(
                    'commands cannot run: git="read-only" cannot be kept in the reduced sandbox, where there are no '
                    'read-only mounts; use git="commit", or a machine with the full sandbox'
                )
            fresh = take_baseline(scan, self._roots, self._scanner.seen())
            before = self._held_by_all()
            self._baseline = fresh.with_older(self._baseline, before) if self._running else fresh
            running = self._prepare(scan, long=long)
            if self._running:
                running.held &= before
            self._running.add(running)
            return running

    def end(self, running: RunningReview) -> list[str]:
        """After a command, when nothing of it is alive: put things back. Returns notes for whoever ran it."""
        with self._lock:
            held = self._held_by_all()
            self._running.discard(running)
            self._store.start_batch()
            changes: list[Change] = []
            kept_changes: list[Change] = []
            problems: list[str] = []
            try:
                scan = self._scanner.scan()
                if scan.unread:
                    problems.append(f"{scan.unread} directories could not be read, or were too many")
                if self._git != "write":
                    for change in self._review_git(scan, held):
                        changes.append(change)
                for change in self._review_kept(scan, held):
                    kept_changes.append(change)
            except Exception as error:  # whatever fails, the output of the command is not lost, and the note is loud
                number = error.errno if isinstance(error, OSError) else None
                problems.append(os.strerror(number) if number else type(error).__name__)
            if not self._running:
                self._baseline = Baseline()
                if self._closed:
                    self._close_roots()
            return describe(changes, kept_changes, problems, self._store.batch)

    def root_path(self, place: Place) -> str:
        """The path of the root that a place is below, as commands see it."""
        return self._paths[place.root]

    def close(self) -> None:
        """Close the roots, once no command runs any more."""
        with self._lock:
            self._closed = True
            if not self._running:
                self._close_roots()

    def _close_roots(self) -> None:
        for root in self._roots:
            root.close()
        self._roots.clear()

    def _held_by_all(self) -> frozenset[HeldPart]:
        return frozenset.intersection(*(one.held for one in self._running)) if self._running else frozenset()

    def _prepare(self, scan: Scan, *, long: bool) -> RunningReview:
        if not self._mounts or self._git == "write":
            return RunningReview([])
        if long or self._git == "read-only":
            mounts = mounts_of_everything(scan, self._roots)
        else:
            mounts = mounts_of_roots(scan, self._roots, self._tops())
        if len(mounts) > MAX_MOUNTS:
            if self._git == "read-only":
                raise ToolNotAllowed(
                    f'commands cannot run: git="read-only" holds at most {MAX_MOUNTS} repositories, and there are more; '
                    'use git="commit", or a smaller workspace'
                )
            mounts = mounts[:MAX_MOUNTS]
        return RunningReview(mounts, frozenset(mount.part for mount in mounts))

    def _tops(self) -> list[Place]:
        """The place of every root; one may be inside another."""
        tops = []
        for path in self._all_paths:
            for number, outer in enumerate(self._paths):
                if is_below(path, outer):
                    tops.append(Place(number, path[len(outer) + 1 :]))
                    break
        return tops

    # --- repositories

    def _review_git(self, scan: Scan, held: Collection[HeldPart]) -> Iterator[Change]:
        for place, identity in scan.git_folders.items():
            yield from self._review_folder(place, identity, held)
        valid = {real_path(place, self._roots) for place in scan.git_folders} | self._baseline.targets
        for place, identity in scan.git_folders.items():
            if self._baseline.state_of(place, identity) is None:
                yield from self._review_pointer(place.child(COMMON), None, valid)
        for place in scan.pointers:
            if place not in held:
                yield from self._review_pointer(place, self._baseline.pointers.get(place), valid)

    def _review_folder(self, place: Place, identity: Identity, held: Collection[HeldPart]) -> Iterator[Change]:
        try:
            folder = self._roots[place.root].open_folder(place.path)
        except FileNotFoundError:
            return
        try:
            now = read_git_folder(place, self._roots, NodeReader())
            before = self._baseline.state_of(place, identity)
            review = StateReview(folder, place, self._shown(place), self._store)
            if now is None:
                return
            if before is not None:
                kept = [name for name in PARTS if (identity, name) in held or (identity, "") in held]
                yield from review.restore(before, now, kept)
            elif place.name.lower() == ".git" or review.is_clean(now) or not self._was_there(place, identity):
                yield from review.clean(now)
            else:
                yield from review.disarm()
        finally:
            os.close(folder)

    def _was_there(self, place: Place, identity: Identity) -> bool:
        return self._baseline.seen is not None and self._baseline.seen.contains(place, identity)

    def _review_pointer(self, place: Place, before: Node | None, valid: Collection[str]) -> Iterator[Change]:
        now = read_entry(place, self._roots, NodeReader(1))
        if now is None or now == before or pointer_target(place, now, self._roots) in valid:
            return
        folder = self._roots[place.root].open_folder(place.parent.path)
        try:
            yield from put_back(folder, place.name, before, now, self._shown(place), self._store)
        finally:
            os.close(folder)

    # --- kept entries

    def _review_kept(self, scan: Scan, held: Collection[HeldPart]) -> Iterator[Change]:
        reader = NodeReader()
        for place in sorted({*self._baseline.kept, *scan.kept}):
            if place in held:
                continue
            before, now = self._baseline.kept.get(place), read_entry(place, self._roots, reader)
            if before == now:
                continue
            try:
                folder = self._roots[place.root].open_folder(place.parent.path)
            except OSError:
                continue  # removed with the directory it was in
            try:
                yield from put_back(folder, place.name, before, now, self._shown(place), self._store)
            finally:
                os.close(folder)

    def _shown(self, place: Place) -> str:
        """A path for people and models: relative to the workspace, which is the first root."""
        path = place.path or "."
        workspace = self._all_paths[0]
        full = os.path.join(self._roots[place.root].path, path) if place.path else self._roots[place.root].path
        if is_below(full, workspace):
            return os.path.relpath(full, workspace)
        return full


@contextlib.contextmanager
def _refusing_os_errors() -> Iterator[None]:
    """A command does not run if what it must leave as it was cannot be read."""
    try:
        yield
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else "unknown error"
        raise ToolNotAllowed(f"commands cannot run: the state of the repositories could not be read ({why})") from None
