"""After a command: everything is compared with how it was, and put back.

Each entry by itself: one that cannot be put back is a problem that is reported, and the others are compared all the same.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import stat
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

from toolkit.guard.files.place import closing_descriptor
from toolkit.guard.process.program import is_below
from toolkit.guard.review.git_state import (
    COMMON,
    CONFIGS,
    MAX_CONFIG,
    PARTS,
    GitState,
    StateReview,
    followed_paths,
    read_state,
    work_tree_settings,
)
from toolkit.guard.review.scan import (
    Change,
    EntryPlace,
    GoneFolders,
    Identity,
    Node,
    NodeReader,
    PutBackStore,
    Scan,
    Scanner,
    ScanRoot,
    Seen,
    first_link,
    is_unchanged,
    place_of,
    pointer_target,
    put_back,
    read_entry,
    real_path,
    real_paths,
)

_FOLDER_MODE: Final = 0o755
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_MAX_ROUNDS: Final = 100  # one for each level of directories that a command made unreadable
_HELD: Final = ("config", "hooks", "config.worktree", COMMON)
_ITSELF: Final = "."  # a git directory that cannot be moved, whatever is changed in it
MAX_MOUNTS: Final = 500

HeldPart: TypeAlias = tuple[Identity, str] | EntryPlace
"""What no command can write: a part of a git directory, all of it if the name is empty; or an entry by its place."""


@dataclass(slots=True)
class Baseline:
    """How everything was that a command must leave as it was; taken before it starts.

    ``git`` by the identity of each git directory, and ``places`` to find one that has another identity by now.

    ``pointers``, and the paths they lead to (``targets``); ``links`` in git directories; ``followed`` are entries that the
    settings in a git directory lead to, ``kept`` these and all that a pattern covers. ``seen`` are the directories that were
    there; ``folders``, for kept entries, has also those that other commands have left since.
    """

    git: dict[Identity, GitState] = field(default_factory=dict)
    places: dict[EntryPlace, Identity] = field(default_factory=dict)
    pointers: dict[EntryPlace, Node | None] = field(default_factory=dict)
    targets: frozenset[str] = frozenset()
    links: dict[EntryPlace, Node | None] = field(default_factory=dict)
    followed: dict[str, list[EntryPlace]] = field(default_factory=dict)
    kept: dict[EntryPlace, Node | None] = field(default_factory=dict)
    unreadable: frozenset[EntryPlace] = frozenset()
    seen: Seen = field(default_factory=Seen)
    folders: Seen = field(default_factory=Seen)

    def add_followed(self, git_folder: str, paths: Sequence[EntryPlace]) -> None:
        """Add files that the configuration in a git directory leads to; those of its own work tree come first."""
        self.followed.setdefault(git_folder, []).extend(paths)

    def state_of(self, place: EntryPlace, identity: Identity) -> GitState | None:
        """The earlier state of a git directory, which may have been moved, or replaced in its place."""
        known = self.git.get(identity)
        return known if known is not None else self.git.get(self.places.get(place, (-1, -1)))

    def accept(self, top: EntryPlace, place: EntryPlace, leaf: Node | None) -> None:
        """Count ``leaf`` as what was at ``place`` before; ``top`` is the kept entry that it is, or is below."""
        names = place.path[len(top.path) + 1 :].split("/") if top != place else []
        self.kept[top] = _with_leaf(self.kept.get(top), names, leaf)

    def with_older(self, older: Baseline, held: Collection[HeldPart]) -> Baseline:
        """This one where no running command can have made a change (``held``), the older one everywhere else."""
        git = {}
        for identity, state in older.git.items():
            fresh = self.git.get(identity)
            if fresh is None:
                git[identity] = state
                continue
            parts = {
                name: fresh.parts[name] if is_held((identity, name), node, held) else node
                for name, node in state.parts.items()
            }
            git[identity] = GitState(parts, fresh.todo if (identity, "") in held else state.todo)
        pointers = {
            place: self.pointers.get(place) if is_held(place, node, held) else node
            for place, node in older.pointers.items()
        }
        kept = {
            place: self.kept.get(place) if is_held(place, node, held) else node for place, node in older.kept.items()
        }
        return dataclasses.replace(older, git=git, pointers=pointers, kept=kept)


def _with_leaf(node: Node | None, names: Sequence[str], leaf: Node | None) -> Node | None:
    """The same tree with another file, or without it, at the path that ``names`` are."""
    if not names:
        return leaf
    folder = node if node is not None and node.kind == "directory" else Node("directory", _FOLDER_MODE)
    child = _with_leaf(folder.children.get(names[0]), names[1:], leaf)
    others = {name: one for name, one in folder.children.items() if name != names[0]}
    return dataclasses.replace(folder, children=others if child is None else {**others, names[0]: child})


def is_held(part: HeldPart, node: Node | None, held: Collection[HeldPart]) -> bool:
    """Whether no running command can have changed it: a mount holds it, and its content is nowhere else."""
    return part in held and not (node is not None and node.is_reached_elsewhere())


def take_baseline(scan: Scan, roots: Sequence[ScanRoot], seen: Seen, code: Collection[EntryPlace] = ()) -> Baseline:
    """Read everything that the scan found; of entries in ``code``, not what they lead to."""
    found = Baseline(places=dict(scan.git_folders), unreadable=frozenset(scan.unreadable), seen=seen, folders=seen)
    reader = NodeReader(within=real_paths(roots))
    targets: set[str] = set()
    for place, identity in scan.git_folders.items():
        state = read_git_folder(place, roots)
        if state is not None:
            found.git[identity] = state
            found.add_followed(real_path(place, roots), followed_from_folder(place, state, roots))
    for place in scan.pointers:
        node = read_entry(place, roots, reader)
        found.pointers[place] = node
        target = pointer_target(place, node, roots)
        if target is not None:
            targets.add(target)
            work_tree = real_path(place.parent, roots)
            found.add_followed(common_folder(target), followed_from_work_tree(work_tree, target, roots))
    for followed in [path for paths in found.followed.values() for path in paths]:
        found.kept[followed] = read_entry(followed, roots, reader)
    found.links = {place: read_entry(place, roots, NodeReader(0)) for place in scan.links}
    for place in scan.kept:
        found.kept[place] = read_entry(place, roots, NodeReader(0) if place in code else reader)
    found.targets = frozenset(targets)
    return found


def read_git_folder(place: EntryPlace, roots: Sequence[ScanRoot]) -> GitState | None:
    """The state of a git directory; None if it is no longer there."""
    try:
        folder = roots[place.root].open_folder(place.path)
    except OSError:
        return None
    with closing_descriptor(folder):
        return read_state(folder, real_paths(roots))


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
                with closing_descriptor(self._roots[place.root].open_folder(place.path)) as folder:
                    info = os.fstat(folder)
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
        with closing_descriptor(self._roots[place.root].open_folder(place.path)) as folder:
            now = read_state(folder, real_paths(self._roots))
            before = self._baseline.state_of(place, identity)
            work_trees = self._work_trees.get(real_path(place, self._roots), ())
            review = StateReview(folder, place, self._shown(place), self._store, work_trees)
            if before is not None:
                held = [name for name in PARTS if is_held((identity, name), before.parts[name], self._held)]
                yield from review.restore(before, now, held)
            elif (
                place.name.lower() == ".git"
                or review.is_clean(now)
                or not self._baseline.seen.contains(place, identity)
            ):
                yield from review.clean(now)
            else:
                yield from review.disarm()

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
        with closing_descriptor(self._roots[place.root].open_folder(place.parent.path)) as folder:
            yield from put_back(folder, place.name, before, now, self._shown(place), self._store)

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


# -- what mounts hold --------------------------------------------------------------------------------------------------

# For a command, mounts hold the settings and hooks of the repository at the top of each root, below a git directory that is
# a mount of its own and so cannot be moved. A program that runs for long, and every command with ``git="read-only"``, gets
# all repositories read-only as a whole. What a mount cannot hold, such as a file that does not exist, is left to the review.


class HeldMount(NamedTuple):
    """An entry to mount onto itself, with the identity it must have. ``part`` is what it means to the review."""

    place: EntryPlace
    identity: Identity
    read_only: bool
    part: HeldPart


def held_parts(mounts: Iterable[HeldMount]) -> frozenset[HeldPart]:
    """What the mounts hold; a whole git directory is held with each of its parts."""
    found: set[HeldPart] = set()
    for mount in mounts:
        found.add(mount.part)
        if not isinstance(mount.part, EntryPlace) and mount.part[1] == "":
            found.update((mount.identity, name) for name in (*PARTS, _ITSELF))
    return frozenset(found)


def mounts_of_roots(scan: Scan, roots: Sequence[ScanRoot], tops: Iterable[EntryPlace]) -> list[HeldMount]:
    """For a command: what holds the settings and hooks of the repositories at ``tops``."""
    found: dict[EntryPlace, HeldMount] = {}
    seen: set[EntryPlace] = set()
    for top in tops:
        pending = [top] if top in scan.git_folders else []
        pending += _repository_at(top.child(".git"), scan, roots, found)
        while pending:
            place = pending.pop()
            if place in seen:
                continue
            seen.add(place)
            identity = scan.git_folders[place]
            if place != top:
                found[place] = HeldMount(place, identity, False, (identity, _ITSELF))
            for name in _HELD:
                _add(found, place.child(name), roots, (identity, name))
            pending += _follow_pointer(place.child(COMMON), scan, roots)
    return list(found.values())


def mounts_of_everything(scan: Scan, roots: Sequence[ScanRoot]) -> list[HeldMount]:
    """For ``git="read-only"`` and programs that run for long: whole repositories, pointers and kept entries."""
    found: dict[EntryPlace, HeldMount] = {}
    for place, identity in sorted(scan.git_folders.items()):
        found[place] = HeldMount(place, identity, True, (identity, ""))
    for place in (*scan.pointers, *scan.kept):
        _add(found, place, roots, place)
    return list(found.values())


def _repository_at(
    place: EntryPlace, scan: Scan, roots: Sequence[ScanRoot], found: dict[EntryPlace, HeldMount]
) -> list[EntryPlace]:
    if place in scan.git_folders:
        return [place]
    if place in scan.pointers:
        _add(found, place, roots, place)
    return _follow_pointer(place, scan, roots)


def _follow_pointer(place: EntryPlace, scan: Scan, roots: Sequence[ScanRoot]) -> list[EntryPlace]:
    """The git directory that a pointer leads to, if it is below a root."""
    target = pointer_target(place, read_entry(place, roots, NodeReader(1)), roots)
    return [] if target is None else [one for one in scan.git_folders if real_path(one, roots) == target]


def _add(found: dict[EntryPlace, HeldMount], place: EntryPlace, roots: Sequence[ScanRoot], part: HeldPart) -> None:
    """Add a read-only mount of an entry. A link cannot be one; what it leads to is compared after the command."""
    try:
        info = os.stat(place.path, dir_fd=roots[place.root].fd, follow_symlinks=False)
    except OSError:
        return
    if not stat.S_ISLNK(info.st_mode):
        found[place] = HeldMount(place, (info.st_dev, info.st_ino), True, part)


# -- what a repository's configuration leads to ------------------------------------------------------------------------

# Hooks and included files, where commands may write. A relative ``core.hooksPath`` begins at the work tree, and a repository
# may have many. So this is asked for each: the one around a ``.git`` directory, and those whose ``.git`` file leads to a
# repository, which may be outside the roots. Limit: files that are included from outside the roots are not searched.


def followed_from_folder(place: EntryPlace, state: GitState, roots: Sequence[ScanRoot]) -> list[EntryPlace]:
    """For the work tree around a git directory; for one with another name, the directory itself."""
    folder = real_path(place, roots)
    work_tree = os.path.dirname(folder) if place.name.lower() == ".git" else folder
    return _follow_configs(((state.parts[name], folder) for name in CONFIGS), folder, work_tree, roots)


def followed_from_work_tree(work_tree: str, git_folder: str, roots: Sequence[ScanRoot]) -> list[EntryPlace]:
    """For a work tree whose ``.git`` file leads to ``git_folder``."""
    common = common_folder(git_folder)
    configs = ((_read(common, "config"), common), (_read(git_folder, "config.worktree"), git_folder))
    return _follow_configs(configs, common, work_tree, roots)


def common_folder(git_folder: str) -> str:
    """The git directory with the settings: for an additional work tree, the one of the repository itself."""
    node = _read(git_folder, COMMON)
    if node is None or node.kind != "file" or not node.data.strip() or b"\0" in node.data:
        return git_folder
    return os.path.realpath(os.path.join(git_folder, os.fsdecode(node.data.rstrip(b"\r\n"))))


def _read(folder: str, name: str) -> Node | None:
    try:
        number = os.open(folder, _FOLDER)
    except OSError:
        return None
    with closing_descriptor(number):
        node = NodeReader(1).read(number, name, follow=False)
    return node if node is not None and len(node.data) <= MAX_CONFIG else None


def _follow_configs(
    configs: Iterable[tuple[Node | None, str]], git_folder: str, work_tree: str, roots: Sequence[ScanRoot]
) -> list[EntryPlace]:
    pending = [path for node, folder in configs for path in followed_paths(node, folder, work_tree)]
    found: list[EntryPlace] = []
    while pending:
        real = os.path.realpath(pending.pop())
        target = place_of(real, roots)
        if target is None or real == git_folder or target in found:
            continue
        found.append(target)
        node = read_entry(target, roots, NodeReader(1))
        if node is not None and node.kind == "file":
            pending += followed_paths(node, os.path.dirname(real), work_tree)
    return found
