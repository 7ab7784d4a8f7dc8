"""The parser of git's configuration: what git reads is what we judge, or we say that we cannot read it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st

from tests.examples import tries
from toolkit.guard.review.git_state import (
    Setting,
    UnreadableConfig,
    harmless_text,
    parse_config,
    risky_settings,
    write_config,
)

HARMLESS = [
    b"[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n",
    b'[remote "origin"]\n\turl = https://example.org/x.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n',
    b'[branch "main"]\n\tremote = origin\n\tmerge = refs/heads/main\n[branch "x"]\n\tremote = .\n',
    b'[user]\n\tname = "A \\"B\\" C"\n\temail = a@example.org ; at work\n',
    b'[submodule "sub"]\n\tactive = true\n\turl = ../sub\n\tupdate = rebase\n',
    b"[pull]\n\trebase\n[color]\n\tui = auto\n\n# a comment\n",
    b'[remote "origin"]\n\turl = git@example.org:x/y.git\n\tpushurl = ssh://example.org/x\n',
]
RISKY = [
    (b"[core]\n\tfsmonitor = ./x\n", b"core.fsmonitor"),
    (b"[CORE]\n\tHooksPath = x\n", b"core.hookspath"),
    (b"[core]\n\tworktree = ../../..\n", b"core.worktree"),
    (b"[core]\n\tsshCommand = x\n", b"core.sshcommand"),
    (b"[core]\n\tpager = x\n", b"core.pager"),
    (b"[core]\n\teditor = x\n", b"core.editor"),
    (b"[include]\n\tpath = x\n", b"include.path"),
    (b'[includeIf "gitdir:/"]\n\tpath = x\n', b"includeif.gitdir:/.path"),
    (b'[filter "x"]\n\tclean = x\n', b"filter.x.clean"),
    (b'[diff "x"]\n\ttextconv = x\n', b"diff.x.textconv"),
    (b"[diff]\n\texternal = x\n", b"diff.external"),
    (b'[merge "x"]\n\tdriver = x\n', b"merge.x.driver"),
    (b"[alias]\n\tst = !x\n", b"alias.st"),
    (b"[credential]\n\thelper = !x\n", b"credential.helper"),
    (b"[gpg]\n\tprogram = x\n", b"gpg.program"),
    (b'[submodule "s"]\n\tupdate = !x\n', b"submodule.s.update"),
    (b'[submodule "s"]\n\turl = ext::sh\n', b"submodule.s.url"),
    (b'[remote "o"]\n\turl = ext::sh -c x\n', b"remote.o.url"),
    (b'[remote "o"]\n\turl = "" --upload-pack=x\n', b"remote.o.url"),
    (b'[remote "o"]\n\turl = ssh://-oProxyCommand=x/y\n', b"remote.o.url"),
    (b'[remote "o"]\n\tuploadpack = x\n', b"remote.o.uploadpack"),
    (b'[branch "m"]\n\tremote = ext::sh\n', b"branch.m.remote"),
    (b'[branch "m"]\n\tmergeoptions = -s x\n', b"branch.m.mergeoptions"),
    (b'[url "ext::sh"]\n\tinsteadOf = https\n', b"url.ext::sh.insteadof"),
    (b"[gc]\n\trecentObjectsHook = x\n", b"gc.recentobjectshook"),
    (b'[lfs "customtransfer.x"]\n\tpath = x\n', b"lfs.customtransfer.x.path"),
]
UNREADABLE = [
    b"[core] fsmonitor = x\n",
    b"[core]\n\tbare = fal\\\nse\n",
    b"\xef\xbb\xbf[core]\n\tbare = true\n",
    b"[core]\r\n\tbare = true\r\n",
    b"[core]\n\tbare = tr\0ue\n",
    b"[core.sub]\n\tbare = true\n",
    b"bare = true\n",
    b'[core]\n\tbare = "true\n',
    b"[core]\n\tbare = \\x\n",
    b"[core]\n\tbare = a\tb\n",
    b"[core\n",
    b'[remote "a\\b"]\n\turl = x\n',
    b"#" * (1 << 20) + b"\n",
]


@pytest.mark.parametrize("text", HARMLESS)
def test_harmless(text: bytes) -> None:
    assert risky_settings(text) == []


@pytest.mark.every_row
@pytest.mark.parametrize(("text", "name"), RISKY, ids=[name.decode() for _, name in RISKY])
def test_risky(text: bytes, name: bytes) -> None:
    assert [setting.name for setting in risky_settings(HARMLESS[0] + text + HARMLESS[1])] == [name]
    assert risky_settings(harmless_text(text, bare=False)) == []


@pytest.mark.parametrize("text", UNREADABLE)
def test_what_cannot_be_read_is_risky_as_a_whole(text: bytes) -> None:
    assert [setting.value for setting in risky_settings(text)] == [text]
    assert [s.name for s in parse_config(harmless_text(text, bare=True))][-1:] == [b"core.bare"]


def read_by_git(text: bytes, file: Path) -> list[tuple[bytes, bytes | None]] | None:
    """The settings as git itself lists them; None for a text it refuses."""
    file.write_bytes(text)
    done = subprocess.run(
        ["git", "config", "--list", "-z", "--no-includes", "--file", str(file)], capture_output=True, cwd="/"
    )
    if done.returncode != 0:
        return None
    found = []
    for item in done.stdout.split(b"\0")[:-1]:
        name, newline, value = item.partition(b"\n")
        found.append((name, value if newline else None))
    return found


PIECES = st.sampled_from(
    [
        *(b"[core]", b'[remote "o"]', b'[a "x y"]', b'[a "\\"]', b"[A-1]", b"[a.b]", b"]", b"["),
        *(b"\n", b"\n", b"\n\t", b"bare", b"url", b"K-1", b"1", b" = ", b"=", b" ", b"\t", b"true", b"x y"),
        *(b'"', b'"', b"\\\\", b'\\"', b"\\n", b"\\t", b"\\", b"#", b";"),
        *(b"\r\n", b"\xff", b"\xc3\xa9", b"\xef\xbb\xbf", b"\0"),
    ]
)


@tries(300, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.lists(PIECES, max_size=14).map(b"".join))
@example(b'[a "x y"]\nbare = "" x  "" ; y\n')
@example(b'[core]\nbare = x "#" # y\nurl\n')
@example(b'[core]\nbare = "a\tb"\t# y\n')
def test_git_reads_what_we_read_or_we_refuse_it(tmp_path_factory: pytest.TempPathFactory, text: bytes) -> None:
    try:
        ours = parse_config(text)
    except UnreadableConfig:
        return
    theirs = read_by_git(text, tmp_path_factory.getbasetemp() / "config")
    if theirs is not None:  # what git refuses has no effect
        assert [(setting.name, setting.value) for setting in ours] == theirs


NAMES = st.text("abcXYZ-19", min_size=1, max_size=5).map(lambda name: "k" + name)
VALUES = st.binary(max_size=12).map(lambda data: data.translate(None, bytes([*range(9), *range(11, 32), 127])))


@tries(100, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(NAMES, st.none() | VALUES.map(lambda v: v.replace(b"\n", b"").replace(b"\t", b"")), NAMES, st.none() | VALUES)))  # fmt: skip
def test_what_we_write_is_read_back_by_git_and_by_us(
    tmp_path_factory: pytest.TempPathFactory, parts: list[tuple[str, bytes | None, str, bytes | None]]
) -> None:
    wanted = [Setting(a.lower().encode(), b, c.lower().encode(), d) for a, b, c, d in parts]
    text = write_config(wanted)
    assert parse_config(text) == wanted
    assert read_by_git(text, tmp_path_factory.getbasetemp() / "config") == [(s.name, s.value) for s in wanted]
