from __future__ import annotations

import time

import pytest

from toolkit.errors import SetupError
from toolkit.guard.files.consent import Forms, Globs, fold_all


def forms(path: str) -> Forms:
    names = [name for name in path.split("/") if name]
    return Forms([] if path.startswith("/") else [fold_all(names)], [fold_all(names)] if path.startswith("/") else [])


COVERED = [
    (".env", ".env"),
    (".env", "a/b/.env"),
    (".env", "a/.env/below/it"),
    (".env", ".ENV"),
    (".ENV", ".env"),
    (".env*", ".env.local"),
    ("*.pem", "keys/server.PEM"),
    ("*", "anything/at/all"),
    ("**", "anything"),
    ("secrets/", "a/secrets/x"),
    ("secrets/", "secrets"),
    ("secrets/**", "secrets/x"),
    ("secrets/**", "secrets/x/y"),
    ("/secrets", "secrets/x"),
    ("./secrets/x", "secrets/x"),
    ("a/b", "a/b"),
    ("a/b", "A/B/c"),
    ("a/*/c", "a/x/c/d"),
    ("a/**/c", "a/c"),
    ("a/**/c", "a/x/y/c/z"),
    ("a/**/b/**/c", "a/b/x/b/c"),
    ("**/c", "c"),
    ("**/b/c", "a/b/x/b/c"),
    ("k?y", "key"),
    ("?.key", "é.key"),
    ("?.key", "e\u0301.key"),
    ("?.key", "ß.key"),
    ("ß?", "ßß"),
    ("[a-c]x", "Bx"),
    ("[!a-c]x", "dx"),
    ("[^a-c]x", "dx"),
    ("[]x]", "]"),
    ("[a-]", "-"),
    ("[[]...slug]", "[...slug]"),
    ("\\[...slug\\]", "[...slug]"),
    ("\\!keep", "!keep"),
    ("\\*", "*"),
    ("straße", "STRASSE"),
    ("caf\u00e9", "cafe\u0301"),
    (".git", ".g\u200cit"),
    (".git", ".git. "),
    ("x\ny", "x\ny"),
    ("/data/private", "/data/private/x"),
    ("/data/**", "/data/x"),
]
NOT_COVERED = [
    (".env", ".envrc"),
    (".env", "x.env"),
    (".git", ".gitignore"),
    (".git", ".github/x"),
    ("secrets/**", "secrets"),
    ("secrets/**", "a/secrets/x"),
    ("/secrets", "a/secrets"),
    ("a/b", "x/a/b"),
    ("a/b", "a"),
    ("a/*/c", "a/x/y/c"),
    ("a/**/c", "a/x"),
    ("a/**/c", "x/a/c"),
    ("k?y", "k/y"),
    ("k*y", "k/y"),
    ("?", "ab"),
    ("[a-c]x", "dx"),
    ("[!a-c]x", "ax"),
    ("\\*", "x"),
    ("*.", "plain"),
    ("...", "x"),
    ("secrets", "/data/secrets"),  # where a root lies is no part of a name in it
    ("data/private", "/data/private"),
    ("*", ""),
]


@pytest.mark.every_row
@pytest.mark.parametrize(("glob", "path"), COVERED)
@pytest.mark.slow
def test_a_pattern_covers_what_it_matches_and_all_below(glob: str, path: str) -> None:
    assert Globs(["never", glob, "nor/this"]).cover(forms(path))


@pytest.mark.parametrize(("glob", "path"), NOT_COVERED)
def test_a_pattern_covers_nothing_else(glob: str, path: str) -> None:
    assert not Globs(["never", glob, "nor/this"]).cover(forms(path))


@pytest.mark.parametrize(("glob", "path"), [case for case in COVERED + NOT_COVERED if case[1] and case[1][0] != "/"])
def test_an_entry_is_judged_as_its_path_is(glob: str, path: str) -> None:
    globs = Globs([glob])
    folder, _, name = path.rpartition("/")

    assert (globs.cover(forms(folder)) or globs.cover_entry(forms(folder), name)) is globs.cover(forms(path))


@pytest.mark.parametrize(
    "glob", ["", "/", ".", "..", "a/../b", "[", "a[b", "[a/b]", "[\\]]", "[[:alpha:]]", "[z-a]", "a\\", "!x", "a\0"]
)
def test_a_pattern_that_cannot_mean_what_it_says_is_an_error(glob: str) -> None:
    with pytest.raises(SetupError):
        Globs([glob])


def test_one_text_is_no_list_of_patterns() -> None:
    with pytest.raises(SetupError, match="list"):
        Globs(".env")


@pytest.mark.parametrize(
    ("glob", "path"),
    [
        ("*a" * 120 + "b", "a" * 255),
        ("?*" * 120 + "b", "a" * 255),
        ("**/a/" * 300 + "b", "a/" * 2000 + "c"),
        ("**/*a*a/" * 300 + "b", "aa/" * 1300 + "c"),
    ],
    ids=["stars", "marks", "folders", "both"],
)
def test_no_pattern_takes_long(glob: str, path: str) -> None:
    subject = forms(path)
    matched = Globs([glob])
    start = time.perf_counter()

    assert not matched.cover(subject)

    assert time.perf_counter() - start < 3
