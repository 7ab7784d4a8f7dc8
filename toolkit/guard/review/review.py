"""The review of commands: what a command must leave as it was is compared after it, put back, and reported.

Promise: when a command has ended and nothing of it is alive, no file below a root that a command may write makes git run
something that git would not have run before; this covers what did not exist, repositories inside others, new ones, moved
ones, and pointers and links to them. Entries that a ``keep`` pattern covers are as they were. What was removed or
replaced is kept below ``state_dir``, and a note says what was done. What cannot be checked is named in a note as well.

Limits: this is after the command. Until then, the user's git sees the change in a repository that no mount holds, and
keeps seeing it if this process is killed before the review. A change that the user makes at the same time, where no
mount tells the two apart, is put back like the command's own. While commands overlap, what the first one found counts.

Why afterwards: a mount cannot hold a name that does not exist yet, and read-only repositories would break ``mv``, ``rm`` and
``git checkout``. Mounts hold what they can meanwhile.

How it is built: ``scan.py`` finds what is to be compared, without following a link, and reads and restores single entries.
``git_state.py`` says what in one git directory may change. ``comparison.py`` compares everything with the ``Baseline`` from
before the command, and names what mounts can hold meanwhile.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from toolkit.errors import ToolkitError, ToolNotAllowed
from toolkit.forks import start_again_in_child
from toolkit.guard.files.consent import Globs, escape_pattern
from toolkit.guard.files.path import Accept
from toolkit.guard.files.protect import Root
from toolkit.guard.permission import GitMode
from toolkit.guard.process.program import is_below
from toolkit.guard.review.comparison import (
    MAX_MOUNTS,
    Baseline,
    Comparison,
    HeldMount,
    HeldPart,
    held_parts,
    mounts_of_everything,
    mounts_of_roots,
    take_baseline,
)
from toolkit.guard.review.scan import (
    Change,
    EntryPlace,
    GoneFolders,
    Node,
    NodeReader,
    PutBackStore,
    Scan,
    Scanner,
    ScanRoot,
    place_of,
    read_entry,
)
from toolkit.system_faults import OsErrorTranslation, describe_errno, find_system_fault
from toolkit.visible import display

_SHOWN: Final = 10
_MAX_TEXT: Final = 250


@dataclass(eq=False, slots=True)
class RunningReview:
    """One command that runs: what to mount for it, and which parts no running command can write because of that."""

    mounts: list[HeldMount]
    held: frozenset[HeldPart] = field(default_factory=frozenset)


class Review:
    """Reviews the commands of one guard. May be used by several threads.

    ``roots`` are all directories that commands may write, ``skip`` those below them that they may not. ``keep`` are patterns;
    ``code`` are paths, kept as well, from which an interpreter outside would load code: files that do not exist, and links.
    ``mounts``: whether the tier can hold anything.
    """

    def __init__(
        self,
        roots: Sequence[Root],
        *,
        git: GitMode,
        keep: Iterable[str],
        code: Sequence[str] = (),
        skip: Collection[str],
        state_dir: str | None,
        mounts: bool,
    ) -> None:
        by_path = {root.real: root for root in roots}
        self._all_paths: Final = list(by_path)
        self._paths: Final = [
            path for path in by_path if not any(path != other and is_below(path, other) for other in by_path)
        ]
        self._git: Final = git
        self._mounts: Final = mounts
        self._keep: Final = Globs([*keep, *map(escape_pattern, code)])
        self._store: Final = PutBackStore(state_dir)
        self._lock = threading.Lock()
        self._roots = [ScanRoot(by_path[path]) for path in self._paths] if self.is_needed else []
        places = (place_of(path, self._roots) for path in code)
        self._code: Final = frozenset(place for place in places if place is not None)
        self._scanner = Scanner(self._roots, self._keep, skip)
        self._running: set[RunningReview] = set()
        self._gone = GoneFolders()
        self._baseline = Baseline()
        self._closed = False
        start_again_in_child(self)

    def start_again_in_child(self) -> None:
        """The commands that run belong to the parent, which reviews them."""
        self._lock = threading.Lock()
        self._running.clear()
        self._baseline = Baseline()

    @property
    def is_needed(self) -> bool:
        """Whether there is anything to compare."""
        return self._git != "write" or bool(self._keep.globs)

    def begin(self, *, long: bool = False) -> RunningReview:
        """Before a command: remember how everything is. ``long``: it runs until it is closed."""
        with self._lock, _ScanErrors():
            scan = self._scanner.scan()
            if self._git == "read-only" and scan.git_folders and not self._mounts:
                raise ToolNotAllowed(
                    'commands cannot run: git="read-only" cannot be kept in the reduced sandbox, where there are no '
                    'read-only mounts; use git="commit", or a machine with the full sandbox'
                )
            self._gone.forget(self._scanner.seen())
            fresh = take_baseline(scan, self._roots, self._scanner.seen(), self._code)
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
            comparison = Comparison(
                self._roots, self._baseline, self._store, held, self._gone, self._all_paths[0], self._code
            )
            comparison.run(self._scanner, git=self._git != "write")
            self._gone.remember(self._baseline.folders, self._scanner.seen(), self._baseline.kept)
            # To the commands that still run, what this one left counts as how it was: it has been reviewed.
            self._baseline.kept |= comparison.came
            self._baseline.folders = self._scanner.seen()
            if not self._running:
                self._baseline = Baseline()
                if self._closed:
                    self._close_roots()
            return describe(comparison.git, comparison.kept, comparison.code, comparison.problems, self._store.batch)

    @contextlib.contextmanager
    def accept_changes(self) -> Iterator[Accept]:
        """While somebody who may changes kept files: no review takes place meanwhile.

        Yields a function for the real path and the content of each file, None if it was removed. The running commands
        found it so. The content is given, because a command may have changed the file since.
        """
        with self._lock:
            yield self._accept

    def _accept(self, path: str, data: bytes | None) -> None:
        place = place_of(path, self._roots) if self._running else None
        top = None if place is None else self._scanner.kept_around(place)
        if place is None or top is None:
            return
        now = read_entry(place, self._roots, NodeReader(1))
        mode = now.mode if now is not None and now.kind == "file" else 0o644
        self._baseline.accept(top, place, None if data is None else Node("file", mode, data))

    def root_path(self, place: EntryPlace) -> str:
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
        return RunningReview(mounts, held_parts(mounts))

    def _tops(self) -> list[EntryPlace]:
        """The place of every root; one may be inside another."""
        tops = []
        for path in self._all_paths:
            for number, outer in enumerate(self._paths):
                if is_below(path, outer):
                    tops.append(EntryPlace(number, path[len(outer) + 1 :]))
                    break
        return tops


class _ScanErrors(OsErrorTranslation):
    """A command does not run if what it must leave as it was cannot be read."""

    __slots__ = ()

    def translate(self, error: OSError) -> ToolkitError:
        what = "the state of the repositories could not be read"
        fault = find_system_fault(error, f"the command was not run: {what}")
        return fault or ToolNotAllowed(f"commands cannot run: {what} ({describe_errno(error.errno)})")


# -- notes -------------------------------------------------------------------------------------------------------------


def describe(
    git: Sequence[Change], kept: Sequence[Change], code: Sequence[Change], problems: Sequence[str], batch: str
) -> list[str]:
    """The notes for whoever ran the command, short and with a way out: one for repositories, one for kept files, one for
    the interpreter's code, one for what could not be checked. ``batch`` is where copies are."""
    copies = f" A copy is in the state directory, in put-back/{batch}." if batch else ""
    notes = []
    if git:
        notes.append(
            f"put back: {_list(git)}. Git would run it, or be led elsewhere, later.{copies} "
            'Use ToolkitContext(git="write") if commands may change this'
        )
    if kept:
        notes.append(
            f"put back: {_list(kept)}. Such files can run code for the user later, so commands do not change them.{copies} "
            "Use write_file, edit or apply_patch, which ask for approval, or FileSettings(ask_before_writing=[...])"
        )
    if code:
        notes.append(
            f"put back: {_list(code)}. The toolkit or its interpreter loads code or settings from there, so tools cannot "
            f"change it.{copies}"
        )
    if problems:
        where = "; ".join(map(_shorten, problems[:_SHOWN]))
        notes.append(
            f"not checked: the review of repositories after the command did not finish ({where}). "
            "Look at .git directories and hooks before you run git"
        )
    return notes


def _shorten(text: str) -> str:
    shown = display(text)
    return shown if len(shown) <= _MAX_TEXT else f"{shown[:50]}…{shown[-_MAX_TEXT + 50 :]}"


def _list(changes: Sequence[Change]) -> str:
    shown = [
        f"{_shorten(change.path)} was {change.act} by the command"
        + ("" if change.undone else "; it was too large to be put back, so it was removed")
        for change in changes[:_SHOWN]
    ]
    more = len(changes) - len(shown)
    return "; ".join([*shown, *([f"and {more} more"] if more else [])])
