"""After a command: everything is compared with how it was, and put back.

Each entry by itself: one that cannot be put back is a problem that is reported, and the others are compared all the same.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterable, Sequence
from typing import Final

from toolkit.guard.process.program import is_below
from toolkit.guard.review.baseline import Baseline, HeldPart, is_held
from toolkit.guard.review.followed import common_folder, followed_from_work_tree
from toolkit.guard.review.git_state import COMMON, PARTS, StateReview, read_state, work_tree_settings
from toolkit.guard.review.gone import GoneFolders, first_link
from toolkit.guard.review.node import Node, NodeReader, PutBackStore, is_unchanged
from toolkit.guard.review.places import place_of, pointer_target, read_entry, real_path, real_paths
from toolkit.guard.review.put_back import Change, put_back
from toolkit.guard.review.scan import EntryPlace, Identity, Scan, Scanner, ScanRoot, Seen

_MAX_ROUNDS: Final = 100  # one for each level of directories that a command made unreadable


class Comparison:
    """The comparison after one command: ``git`` and ``kept`` are what was put back, ``problems`` what was not checked.

    ``held`` are the parts that no running command can have changed, ``gone`` the directories that earlier ones removed;
    paths are shown relative to ``workspace``. ``came`` are kept entries that came with a new directory. What was put back of
    the entries in ``places_of_code`` is ``code``: links are compared by their text, because what they lead to is large.
    """

    def __init__(
        self,
        roots: Sequence[ScanRoot],
        baseline: Baseline,
        store: PutBackStore,
        held: Collection[HeldPart],
        gone: GoneFolders,
        workspace: str,
        places_of_code: Collection[EntryPlace],
    ) -> None:
        self._roots = roots
        self._baseline = baseline
        self._store = store
        self._held = held
        self._gone = gone
        self._workspace = workspace
        self._places_of_code = places_of_code
        self._failed: set[EntryPlace] = set()
        self._work_trees: dict[str, set[str]] = {}  # git directory -> directories whose .git file leads to it
        self.git: Final[list[Change]] = []
        self.kept: Final[list[Change]] = []
        self.code: Final[list[Change]] = []
        self.problems: Final[list[str]] = []
        self.came: Final[dict[EntryPlace, Node | None]] = {}

    def run(self, scanner: Scanner, *, git: bool) -> None:
        """Compare everything; repositories only if ``git``."""
        try:
            scan = self._scan_all(scanner)
        except Exception as error:  # whatever fails, the output of the command is not lost, and the note is loud
            self.problems.append(_reason(error))
            return
        try:
            self._compare(scan, scanner, git=git)
        except OSError as error:  # links that another command, which still runs, replaces while they are followed
            self.problems.append(_reason(error))

    def _compare(self, scan: Scan, scanner: Scanner, *, git: bool) -> None:
        if git:
            self._compare_repositories(scan)
        reader = NodeReader(within=real_paths(self._roots))
        if git:
            self._compare_new_work_trees(scan, reader)
        self._compare_behind_links(scan, scanner.seen(), reader)
        for place in sorted({*self._baseline.kept, *scan.kept}):
            before = self._before(place)
            if place in self._places_of_code:
                self._collect(self.code, place, self._compare_entry(place, before, NodeReader(0)))
            elif self._came_with_its_folder(place, scanner):
                self.came[place] = read_entry(place, self._roots, reader)
            elif not is_held(place, before, self._held):
                self._collect(self.kept, place, self._compare_entry(place, before, reader))

    def _compare_new_work_trees(self, scan: Scan, reader: NodeReader) -> None:
        """A relative ``core.hooksPath`` leads into each work tree: a new one has the hooks of the others, or none."""
        for pointer in scan.pointers:
            target = pointer_target(pointer, read_entry(pointer, self._roots, NodeReader(1)), self._roots)
            if pointer in self._baseline.pointers or target is None:
                continue
            known = self._baseline.followed.get(common_folder(target), [])
            work_tree = real_path(pointer.parent, self._roots)
            for place, own in zip(followed_from_work_tree(work_tree, target, self._roots), known, strict=False):
                if place not in self._baseline.kept and read_entry(place, self._roots, NodeReader(0)) is not None:
                    before = self._baseline.kept[own]
                    self._collect(self.git, place, self._compare_entry(place, before, reader))

    def _before(self, place: EntryPlace) -> Node | None:
        """A kept entry as it was, also if an earlier command removed it with its directory."""
        return self._baseline.kept.get(place, self._gone.kept.get(place))

    def _compare_behind_links(self, scan: Scan, seen: Seen, reader: NodeReader) -> None:
        """A link in the place of a directory may lead to one with other kept files; then the link is taken away."""
        behind = self._gone.behind_links(self._roots, self._baseline.folders, seen)
        reached = {}
        for folder, link in behind:
            try:
                reached[os.path.realpath(real_path(folder, self._roots))] = folder, link
            except OSError as error:  # another command, which still runs, replaces the link meanwhile
                self.problems.append(_reason(error))
        for place in scan.kept if reached else ():
            found = reached.get(real_path(place.parent, self._roots))
            if found is not None:
                folder, link = found
                now = read_entry(place, self._roots, reader)
                if now is not None and not is_unchanged(self._before(folder.child(place.name)), now):
                    self._collect(self.kept, link, self._take_link(link))

    def _take_link(self, link: EntryPlace) -> Iterable[Change]:
        now = read_entry(link, self._roots, NodeReader(0))
        if now is not None and now.kind == "link":
            for change in self._put_back(link, None, now):
                yield change._replace(act="changed")

    def _came_with_its_folder(self, place: EntryPlace, scanner: Scanner) -> bool:
        """Whether it is in a directory that was not there before, such as a clone or an installed package: nobody has
        opened it yet, and taking a part of it away would break it. A hidden directory such as ``.hg`` belongs to the one
        around it. A pattern with a slash means this very path."""
        folder = place.parent
        while folder.name.startswith("."):
            folder = folder.parent
        was_there = self._baseline.folders.had_folder(folder) or folder in self._gone
        return not was_there and place not in self._baseline.kept and not scanner.is_kept_by_path(place)

    def _scan_all(self, scanner: Scanner) -> Scan:
        """Scan, also what a command made unreadable for its own user."""
        scan = scanner.scan()
        for _ in range(_MAX_ROUNDS):
            hidden = [place for place in scan.unreadable if place not in self._baseline.unreadable]
            if not hidden:
                break
            try:
                for place in hidden:
                    self._roots[place.root].make_readable(place.path)
            except OSError:
                break
            scan = scanner.scan()
        unchecked = [self._shown(place) for place in scan.unreadable if place not in self._baseline.unreadable]
        self.problems.extend(f"{path} cannot be read" for path in unchecked)
        if scan.left_out:
            self.problems.append(f"there are too many directories, and at least {scan.left_out} were left out")
        return scan

    def _compare_repositories(self, scan: Scan) -> None:
        if scan.left_out:
            self._add_known(scan)
        for place in scan.pointers:
            target = pointer_target(place, read_entry(place, self._roots, NodeReader(1)), self._roots)
            self._work_trees.setdefault(target or "", set()).add(real_path(place.parent, self._roots))
        for place, identity in scan.git_folders.items():
            self._collect(self.git, place, self._compare_folder(place, identity))
        checked = [place for place in scan.git_folders if place not in self._failed]
        valid = {real_path(place, self._roots) for place in checked} | self._baseline.targets
        for place, identity in scan.git_folders.items():
            if self._baseline.state_of(place, identity) is None:
                self._collect(self.git, place, self._compare_pointer(place.child(COMMON), None, valid))
        for place in scan.pointers:
            before = self._baseline.pointers.get(place)
            if not is_held(place, before, self._held):
                self._collect(self.git, place, self._compare_pointer(place, before, valid))
        for place in scan.links:
            if not (place.parent in scan.git_folders and place.name in PARTS) and place not in scan.pointers:
                self._collect(self.git, place, self._compare_link(place, scan))

    def _add_known(self, scan: Scan) -> None:
        """Add what was there before to a scan that did not come that far."""
        for place in self._baseline.places:
            with contextlib.suppress(OSError):
                folder = self._roots[place.root].open_folder(place.path)
                info = os.fstat(folder)
                os.close(folder)
                scan.git_folders[place] = (info.st_dev, info.st_ino)
        scan.pointers += [place for place in self._baseline.pointers if place not in scan.pointers]

    def _collect(self, changes: list[Change], place: EntryPlace, found: Iterable[Change]) -> None:
        try:
            for change in found:
                changes.append(change)
        except Exception as error:  # the others are compared all the same
            self._failed.add(place)
            self.problems.append(f"{self._shown(place)}: {_reason(error)}")

    def _compare_folder(self, place: EntryPlace, identity: Identity) -> Iterable[Change]:
        folder = self._roots[place.root].open_folder(place.path)
        try:
            now = read_state(folder, real_paths(self._roots))
            before = self._baseline.state_of(place, identity)
            work_trees = self._work_trees.get(real_path(place, self._roots), ())
            review = StateReview(folder, place, self._shown(place), self._store, work_trees)
            if before is not None:
                held = [name for name in PARTS if is_held((identity, name), before.parts[name], self._held)]
                yield from review.restore(before, now, held)
            elif place.name.lower() == ".git" or review.is_clean(now) or not self._was_there(place, identity):
                yield from review.clean(now)
            else:
                yield from review.disarm()
        finally:
            os.close(folder)

    def _was_there(self, place: EntryPlace, identity: Identity) -> bool:
        return self._baseline.seen.contains(place, identity)

    def _compare_pointer(self, place: EntryPlace, before: Node | None, valid: Collection[str]) -> Iterable[Change]:
        now = read_entry(place, self._roots, NodeReader(1))
        if now is None or is_unchanged(before, now):
            return
        target = pointer_target(place, now, self._roots)
        if target is None or target not in valid or not self._is_work_tree_of(place, target):
            yield from self._put_back(place, before, now)

    def _compare_link(self, place: EntryPlace, scan: Scan) -> Iterable[Change]:
        """The user's git would write through a link, for example a message of ours to a file outside."""
        now, before = read_entry(place, self._roots, NodeReader(0)), self._baseline.links.get(place)
        if now is None or now.kind != "link" or is_unchanged(before, now) or _leads_to_ref(now):
            return
        names = place.path.split("/")
        around = (EntryPlace(place.root, "/".join(names[:count])) for count in range(len(names)))
        if not any((scan.git_folders.get(folder), "") in self._held for folder in around):
            yield from self._put_back(place, None, now)

    def _is_work_tree_of(self, pointer: EntryPlace, git_folder: str) -> bool:
        """Whether the repository that a ``.git`` file leads to has the directory around that file as its work tree, or
        leaves that open: another one could be anywhere."""
        place = place_of(git_folder, self._roots)
        config = None if place is None else read_entry(place.child("config"), self._roots, NodeReader(1))
        own = real_path(pointer.parent, self._roots)
        return pointer.name == COMMON or all(
            os.path.normpath(os.path.join(git_folder, os.fsdecode(setting.value or b""))) == own
            for setting in work_tree_settings(config)
        )

    def _compare_entry(self, place: EntryPlace, before: Node | None, reader: NodeReader) -> Iterable[Change]:
        now = read_entry(place, self._roots, reader)
        if now is None and (link := first_link(place, self._roots)) is not None:
            path = os.path.join(os.path.realpath(real_path(place.parent, self._roots)), place.name)
            target = place_of(path, self._roots)
            reached = None if target is None else read_entry(target, self._roots, reader)
            if os.path.lexists(path) and not (reached is not None and is_unchanged(before, reached)):
                yield from self._take_link(link)
            return
        if is_unchanged(before, now):
            return
        try:
            yield from self._put_back(place, before, now)
        except (FileNotFoundError, NotADirectoryError):
            return  # it went with the directory it was in

    def _put_back(self, place: EntryPlace, before: Node | None, now: Node | None) -> Iterable[Change]:
        folder = self._roots[place.root].open_folder(place.parent.path)
        try:
            yield from put_back(folder, place.name, before, now, self._shown(place), self._store)
        finally:
            os.close(folder)

    def _shown(self, place: EntryPlace) -> str:
        root = self._roots[place.root].path
        full = os.path.join(root, place.path) if place.path else root
        return os.path.relpath(full, self._workspace) if is_below(full, self._workspace) else full


def _leads_to_ref(link: Node) -> bool:
    """Whether it is a symbolic ref as old versions of git make them."""
    return link.data.startswith(b"refs/") and b".." not in link.data.split(b"/")


def _reason(error: Exception) -> str:
    number = error.errno if isinstance(error, OSError) else None
    return os.strerror(number) if number else type(error).__name__
