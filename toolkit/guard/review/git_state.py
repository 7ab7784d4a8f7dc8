"""What in one git directory can make git run something: how it was, and what a command may change of it.

In a repository that was there before the command, everything of this kind stays as it was; only harmless settings of
``config`` may differ. In a new one, only harmless settings and no hooks remain. Instructions of an unfinished rebase that
run programs are taken out if they were not there before.

Limits: programs and scripts in the workspace that the user's own configuration names (a filter, an alias, a script that a
hook calls) are not covered, except for hooks behind ``core.hooksPath`` and files behind ``include.path``.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from toolkit.guard.files.place import closing_descriptor
from toolkit.guard.review.scan import (
    Change,
    EntryPlace,
    Node,
    NodeReader,
    PutBackStore,
    is_unchanged,
    put_back,
    replace_file,
)

CONFIGS: Final = ("config", "config.worktree")
COMMON: Final = "commondir"
FOLDERS: Final = ("hooks", "remotes", "branches")
PARTS: Final = (*CONFIGS, COMMON, *FOLDERS)

_OTHERS_WRITE: Final = 0o022
_IN_MODULES: Final = re.compile(r"(?:^|/)\.git/modules/")
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_UNFINISHED: Final = ("rebase-merge", "rebase-apply", "sequencer")
_TODO: Final = "git-rebase-todo"
# Instructions that run nothing but git, comments and empty lines; ``exec`` is not among them.
_PLAIN_INSTRUCTION: Final = re.compile(
    rb"[ \t]*(?:#.*|(?:p|pick|r|reword|e|edit|s|squash|f|fixup|d|drop|l|label|t|reset|m|merge|u|update-ref|b|break|noop)"
    rb"(?:[ \t].*)?)?[ \t\r]*"
)


@dataclass(frozen=True, slots=True)
class GitState:
    """The parts of one git directory by name, None where there is none, and the lines of an unfinished rebase."""

    parts: dict[str, Node | None]
    todo: frozenset[bytes]


def read_state(folder: int, within: Collection[str]) -> GitState:
    """The state of the git directory with this descriptor; ``within`` is where commands may write."""
    reader = NodeReader(ignored_ending=".sample", within=within)  # git runs no hook with such a name
    parts = {name: reader.read(folder, name) for name in PARTS}
    return GitState(parts, frozenset(_read_todo(folder).split(b"\n")))


def _is_empty(node: Node | None) -> bool:
    return node is None or (node.kind == "directory" and not node.children)


def _read_todo(folder: int) -> bytes:
    node = NodeReader().read(folder, f"{_UNFINISHED[0]}/{_TODO}", follow=False)
    return node.data if node is not None and node.kind == "file" and node.whole else b""


class StateReview:
    """The review of one git directory, which ``folder`` is a descriptor of.

    ``work_trees`` are the directories whose ``.git`` file leads to it: a submodule names its own in ``core.worktree``.
    """

    def __init__(
        self, folder: int, place: EntryPlace, shown: str, store: PutBackStore, work_trees: Collection[str]
    ) -> None:
        self._folder = folder
        self._shown = shown
        self._store = store
        self._work_trees = work_trees
        self._bare = place.name.lower() != ".git" and _IN_MODULES.search(place.path) is None

    def restore(self, before: GitState, now: GitState, held: Collection[str]) -> Iterator[Change]:
        """Make it what it was, but for harmless settings. ``held`` parts were read-only: what differs is the user's."""
        for name in PARTS:
            old, new = before.parts[name], now.parts[name]
            if name in held:
                continue
            if (name in CONFIGS and self._is_same_risk(old, new)) or (_is_empty(old) and _is_empty(new)):
                continue
            if _is_empty(old) and new is not None and new.kind == "directory":
                old = dataclasses.replace(new, children={})
            yield from put_back(self._folder, name, old, new, f"{self._shown}/{name}", self._store)
        yield from self._stop_programs(before.todo)

    def is_clean(self, now: GitState) -> bool:
        """Whether a new repository has nothing that would have to be removed."""
        configs = (now.parts[name] for name in CONFIGS)
        return all(map(self._is_harmless, configs)) and all(_is_empty(now.parts[name]) for name in FOLDERS)

    def _is_harmless(self, config: Node | None) -> bool:
        """Git would write a message to another name of the file, and so into the settings."""
        return config is None or (config.kind == "file" and config.names == 1 and not self._risk(config))

    def disarm(self) -> Iterator[Change]:
        """Make it a plain directory: without ``HEAD``, git does not take it for a repository."""
        for name in ("HEAD", "head"):
            if NodeReader(0).read(self._folder, name) is not None:
                self._store.take(self._folder, name, f"{self._shown}/{name}")
                yield Change(f"{self._shown}/{name}", "added")

    def clean(self, now: GitState) -> Iterator[Change]:
        """Leave only harmless settings and no hooks in a new repository."""
        for name in CONFIGS:
            node, path = now.parts[name], f"{self._shown}/{name}"
            if node is None or self._is_harmless(node):
                continue
            if node.kind == "file" and node.whole:
                self._store.copy(node, path)
                text = harmless_text(node.data, bare=self._bare, besides=self._own_work_trees(node))
                replace_file(self._folder, name, text, node.mode & ~_OTHERS_WRITE)
            else:
                self._store.take(self._folder, name, path)
            names = [os.fsdecode(setting.name) for setting in self._risk(node)]
            yield Change(f"{path} ({', '.join(names[:5])})" if names else path, "added")
        for name in FOLDERS:
            node, path = now.parts[name], f"{self._shown}/{name}"
            empty = None if node is None or node.kind != "directory" else dataclasses.replace(node, children={})
            yield from put_back(self._folder, name, empty, node, path, self._store)
        yield from self._stop_programs(frozenset())

    def _risk(self, node: Node | None) -> list[Setting]:
        if node is None:
            return []
        content = node.content
        if content.kind != "file" or not content.whole:
            return [Setting(b"", None, b"unreadable", content.data)]
        own = self._own_work_trees(node)
        return [setting for setting in risky_settings(content.data) if setting not in own]

    def _own_work_trees(self, node: Node | None) -> list[Setting]:
        """The settings that name a directory as work tree which belongs to this repository."""
        here = os.readlink(f"/proc/self/fd/{self._folder}")
        return [
            setting
            for setting in work_tree_settings(node)
            if os.path.normpath(os.path.join(here, os.fsdecode(setting.value or b""))) in self._work_trees
        ]

    def _is_same_risk(self, old: Node | None, new: Node | None) -> bool:
        if new is None or new.kind == "other" or new.content.names > (1 if old is None else old.content.names):
            return is_unchanged(old, new)
        if new.kind == "link" and (old is None or old.kind != "link" or old.data != new.data):
            return False
        opened = new.mode & ~(old.mode if old is not None else 0) & _OTHERS_WRITE
        if old is not None and work_tree_settings(old) and not work_tree_settings(new):
            return False
        # A submodule that was moved has another work tree now, and the old one is not its own any more.
        moved = [] if self._own_work_trees(new) == [] else work_tree_settings(old)
        return not opened and [one for one in self._risk(old) if one not in moved] == self._risk(new)

    def _stop_programs(self, known: Collection[bytes]) -> Iterator[Change]:
        """Take what runs programs out of an unfinished rebase or cherry-pick."""
        for name in _UNFINISHED:
            path = f"{self._shown}/{name}"
            node = NodeReader().read(self._folder, name, follow=False)
            if node is None:
                continue
            if node.kind != "directory":
                self._store.take(self._folder, name, path)
                yield Change(path, "added")
                continue
            with closing_descriptor(os.open(name, _FOLDER, dir_fd=self._folder)) as fd:
                yield from self._stop_in(fd, node, path, known)

    def _stop_in(self, fd: int, node: Node, path: str, known: Collection[bytes]) -> Iterator[Change]:
        for name, is_fine in (("strategy", is_known_strategy), ("opts", _are_fine_options)):
            child = node.children.get(name)
            if child is not None and not (child.kind == "file" and child.whole and is_fine(child.data)):
                self._store.take(fd, name, f"{path}/{name}")
                yield Change(f"{path}/{name}", "changed")
        todo = node.children.get(_TODO)
        if todo is None:
            return
        if todo.kind != "file" or not todo.whole:
            self._store.take(fd, _TODO, f"{path}/{_TODO}")
            yield Change(f"{path}/{_TODO}", "added")
            return
        lines = todo.data.split(b"\n")
        kept = [line for line in lines if line in known or _PLAIN_INSTRUCTION.fullmatch(line)]
        if kept != lines:
            self._store.copy(todo, f"{path}/{_TODO}")
            replace_file(fd, _TODO, b"\n".join(kept), todo.mode)
            yield Change(f"{path}/{_TODO}", "changed")


def _are_fine_options(data: bytes) -> bool:
    """Whether the options of a cherry-pick name no program as its strategy."""
    try:
        settings = parse_config(data)
    except UnreadableConfig:
        return False
    return all(is_known_strategy(setting.value or b"") for setting in settings if setting.key == b"strategy")


def work_tree_settings(config: Node | None) -> list[Setting]:
    """The settings of a configuration that name a work tree."""
    if config is None or config.content.kind != "file":
        return []
    return [setting for setting in risky_settings(config.content.data) if setting.name == b"core.worktree"]


def followed_paths(config: Node | None, git_folder: str, work_tree: str) -> Iterator[str]:
    """Paths of hooks and included files that a configuration leads to; ``git_folder`` is where it is."""
    if config is None:
        return
    try:
        settings = parse_config(config.content.data)
    except UnreadableConfig:
        settings = path_settings(config.content.data)
    for setting in settings:
        if setting.value is None:
            continue
        value = os.path.expanduser(os.fsdecode(setting.value))
        if setting.name == b"core.hookspath":
            yield os.path.join(work_tree, value)
        elif setting.section in (b"include", b"includeif") and setting.key == b"path":
            yield os.path.join(git_folder, value)


# -- settings ----------------------------------------------------------------------------------------------------------

# Which settings of a git configuration file could make git run something, send something or write elsewhere.
#
# Promise: every setting that git would read from the text is judged, and one that is not on the list of harmless settings
# is risky. The parser is stricter than git's: a text with a line that it does not know for certain (a continued line, a
# setting behind a section's name, a control character, a byte order mark) is one risky setting as a whole. Limit: the list
# is of settings, not of what they are used for. A harmless setting can still be wrong.

MAX_CONFIG: Final = 1 << 20

_CONTROL: Final = re.compile(rb"[\0-\x08\x0b-\x1f\x7f]")
_BLANK: Final = re.compile(rb"[ \t]*(?:[#;].*)?")
_SECTION: Final = re.compile(rb'[ \t]*\[([A-Za-z0-9-]+)(?:[ \t]+"((?:[^"\\]|\\["\\])*)")?\][ \t]*')
_KEY: Final = re.compile(rb"[ \t]*([A-Za-z][A-Za-z0-9-]*)[ \t]*(?:=[ \t]*(.*))?")
# Text, an escape, a quotation mark, or a comment up to the end.
_OUTSIDE: Final = re.compile(rb'([^"\\#;\t]+|\t+(?=[ \t]*(?:[#;]|$)))|\\(["\\ntb])|(")|[#;].*')
_QUOTED: Final = re.compile(rb'([^"\\]+)|\\(["\\ntb])|(")')
# A setting that leads to a file, wherever it may be in a text that cannot be read with certainty.
_PATH: Final = re.compile(rb'(?i)(?:^|[\]\n])[ \t]*(hookspath|path)[ \t]*=[ \t]*"?([^"\r\n#;]+)')
_PLAIN: Final = re.compile(rb"[A-Za-z0-9_.,:@/+*-]+")
_ESCAPES: Final = {b"n": b"\n", b"t": b"\t", b"b": b"\b"}


class UnreadableConfig(ValueError):
    """The text has a line that git may read in another way than we do."""


class Setting(NamedTuple):
    """One setting: ``section`` and ``key`` in lower case; ``value`` is None for a key without ``=``."""

    section: bytes
    subsection: bytes | None
    key: bytes
    value: bytes | None

    @property
    def name(self) -> bytes:
        """The name as git shows it, such as ``remote.origin.url``."""
        middle = b"" if self.subsection is None else self.subsection + b"."
        return self.section + b"." + middle + self.key


_ANY: Final = re.compile(rb"(?s:.*)")
_STRATEGIES: Final = re.compile(rb"ort|recursive|resolve|octopus|ours|subtree")
# Where git fetches from: no helper (``ext::...``) and nothing that a program would take for an option.
_ADDRESS: Final = re.compile(rb"(?!-)(?!(?s:.*)::)(?!(?s:.*)//-)(?s:.+)")
_UPDATE: Final = re.compile(rb"checkout|rebase|merge|none")


def _words(text: str) -> dict[bytes, re.Pattern[bytes]]:
    return dict.fromkeys(text.encode().split(), _ANY)


# section -> key -> the values that are harmless
_HARMLESS: Final[dict[bytes, dict[bytes, re.Pattern[bytes]]]] = {
    b"core": _words(
        "repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode symlinks autocrlf eol safecrlf "
        "abbrev quotepath compression loosecompression bigfilethreshold sparsecheckout sparsecheckoutcone untrackedcache "
        "preloadindex trustctime checkstat whitespace commentchar splitindex hidedotfiles longpaths"
    ),
    b"extensions": _words("objectformat compatobjectformat refstorage worktreeconfig partialclone noop"),
    b"user": _words("name email useconfigonly"),
    b"author": _words("name email"),
    b"committer": _words("name email"),
    b"init": _words("defaultbranch"),
    b"pull": _words("rebase ff"),
    b"push": _words("default autosetupremote followtags"),
    b"fetch": _words("prune prunetags parallel fsckobjects writecommitgraph"),
    b"merge": _words("ff conflictstyle log renames renamelimit stat"),
    b"rebase": _words("autostash autosquash updaterefs stat missingcommitscheck abbreviatecommands"),
    b"rerere": _words("enabled autoupdate"),
    b"commit": _words("status verbose cleanup"),
    b"diff": _words("algorithm renames noprefix mnemonicprefix colormoved context renamelimit"),
    b"log": _words("date decorate abbrevcommit follow"),
    b"status": _words("short branch showuntrackedfiles relativepaths submodulesummary"),
    b"gc": _words("auto autodetach"),
    b"maintenance": _words("auto strategy"),
    b"pack": _words("threads window depth"),
    b"index": _words("version threads sparse skiphash"),
    b"receive": _words("denycurrentbranch denynonfastforwards denydeletes"),
    b"i18n": _words("commitencoding logoutputencoding"),
    b"lfs": _words("repositoryformatversion"),
    b"remote": {b"pushdefault": _ADDRESS},
    b"submodule": _words("active recurse"),
}
_HARMLESS_IN_SUBSECTION: Final[dict[bytes, dict[bytes, re.Pattern[bytes]]]] = {
    b"branch": {
        **_words(
            "merge rebase description gh-merge-base vscode-merge-base github-pr-owner-number github-pr-base-branch"
        ),
        b"remote": _ADDRESS,
        b"pushremote": _ADDRESS,
    },
    b"remote": {
        **_words("fetch push tagopt prune prunetags promisor partialclonefilter skipdefaultupdate gh-resolved"),
        b"url": _ADDRESS,
        b"pushurl": _ADDRESS,
    },
    b"submodule": {
        **_words("active branch fetchrecursesubmodules ignore path shallow"),
        b"url": _ADDRESS,
        b"update": _UPDATE,
    },
    b"lfs": _words("access locksverify"),
}
_HARMLESS_SECTIONS: Final = (b"color", b"advice", b"column")
_NO_ADDRESS_NEEDED: Final = re.compile(rb"|\.")  # a branch may follow one of the same repository: ``remote = .``


def parse_config(text: bytes) -> list[Setting]:
    """Every setting in the order of the text; ``UnreadableConfig`` unless git certainly reads the same.

    >>> [setting.name for setting in parse_config(b'[Remote "origin"]\\n\\turl = https://example.org/x # y\\n')]
    [b'remote.origin.url']
    """
    if len(text) > MAX_CONFIG or _CONTROL.search(text):
        raise UnreadableConfig
    settings: list[Setting] = []
    section: tuple[bytes, bytes | None] | None = None
    for line in text.split(b"\n"):
        if _BLANK.fullmatch(line):
            continue
        header = _SECTION.fullmatch(line)
        if header is not None:
            name, below = header.groups()
            section = (name.lower(), None if below is None else re.sub(rb"\\(.)", rb"\1", below))
            continue
        found = _KEY.fullmatch(line)
        if found is None or section is None:
            raise UnreadableConfig
        key, value = found.groups()
        settings.append(Setting(*section, key.lower(), None if value is None else _read_value(value)))
    return settings


def path_settings(text: bytes) -> list[Setting]:
    """What may be ``core.hooksPath`` or ``include.path`` in a text that ``parse_config`` refuses: rather too many."""
    names = {b"hookspath": b"core", b"path": b"include"}
    found = [(key.lower(), value.strip()) for key, value in _PATH.findall(text[:MAX_CONFIG])]
    return [Setting(names[key], None, key, value) for key, value in found if b"\0" not in value]


def _read_value(text: bytes) -> bytes:
    """A value without quotation marks, escapes, comment and the spaces at its end."""
    value, kept, at, quoted = b"", 0, 0, False
    while at < len(text):
        piece = (_QUOTED if quoted else _OUTSIDE).match(text, at)
        if piece is None:
            raise UnreadableConfig
        at = piece.end()
        plain, escaped, mark = piece.groups() if quoted or piece.lastindex else (None, None, None)
        if plain is not None:
            value += plain if quoted or value else plain.lstrip(b" \t")
        elif escaped is not None:
            value += _ESCAPES.get(escaped, escaped)
        elif mark is not None:
            quoted = not quoted
        else:
            break  # a comment
        if quoted or plain is None:  # the spaces so far are not at the end, or were quoted
            kept = len(value)
    if quoted:
        raise UnreadableConfig
    return value[:kept] + value[kept:].rstrip(b" \t")


def is_harmless(setting: Setting) -> bool:
    """Whether git runs, sends and overwrites nothing because of it."""
    if setting.section in _HARMLESS_SECTIONS:
        return True
    table = _HARMLESS if setting.subsection is None else _HARMLESS_IN_SUBSECTION
    values = table.get(setting.section, {}).get(setting.key)
    if values is None:
        return False
    value = setting.value or b""
    return values.fullmatch(value) is not None or (values is _ADDRESS and bool(_NO_ADDRESS_NEEDED.fullmatch(value)))


def risky_settings(text: bytes) -> list[Setting]:
    """The settings that are not harmless; for a text that cannot be read, the text itself as one setting.

    >>> [setting.name for setting in risky_settings(b"[core]\\n\\tbare = false\\n\\tpager = less\\n")]
    [b'core.pager']
    """
    try:
        settings = parse_config(text)
    except UnreadableConfig:
        return [Setting(b"", None, b"unreadable", text)]
    return [setting for setting in settings if not is_harmless(setting)]


def harmless_text(text: bytes, *, bare: bool, besides: Collection[Setting] = ()) -> bytes:
    """The harmless settings of ``text``, those in ``besides``, and nothing else; the settings of an empty repository if it
    cannot be read."""
    try:
        settings = parse_config(text)
    except UnreadableConfig:
        words = (b"repositoryformatversion", b"0"), (b"filemode", b"true"), (b"bare", b"true" if bare else b"false")
        return write_config(Setting(b"core", None, key, value) for key, value in words)
    return write_config(setting for setting in settings if setting in besides or is_harmless(setting))


def write_config(settings: Iterable[Setting]) -> bytes:
    """A text with exactly these settings, in this order."""
    lines: list[bytes] = []
    section: tuple[bytes, bytes | None] | None = None
    for setting in settings:
        if section != setting[:2]:
            section = setting[:2]
            name, below = section
            lines.append(b"[%s]" % name if below is None else b'[%s "%s"]' % (name, _escape(below)))
        lines.append(
            b"\t" + setting.key if setting.value is None else b"\t%s = %s" % (setting.key, quote(setting.value))
        )
    return b"".join(line + b"\n" for line in lines)


def quote(value: bytes) -> bytes:
    """A value as git reads it back: in quotation marks, unless it is a plain word."""
    if _PLAIN.fullmatch(value):
        return value
    text = _escape(value)
    for letter, character in _ESCAPES.items():
        text = text.replace(character, b"\\" + letter)
    return b'"' + text + b'"'


def _escape(text: bytes) -> bytes:
    return text.replace(b"\\", b"\\\\").replace(b'"', b'\\"')


def is_known_strategy(name: bytes) -> bool:
    """Whether it is a merge strategy of git itself; git looks up any other name as a program."""
    return _STRATEGIES.fullmatch(name.strip()) is not None
