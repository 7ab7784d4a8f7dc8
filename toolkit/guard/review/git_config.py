"""Which settings of a git configuration file could make git run something, send something or write elsewhere.

Promise: every setting that git would read from the text is judged, and one that is not on the list of harmless settings
is risky. The parser is stricter than git's: a text with a line that it does not know for certain (a continued line, a
setting behind a section's name, a control character, a byte order mark) is one risky setting as a whole. Limit: the list
is of settings, not of what they are used for. A harmless setting can still be wrong.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

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
