from __future__ import annotations

import dataclasses

import pytest

from toolkit.errors import InvalidArguments, SandboxViolation
from toolkit.guard import SandboxPath, display


@pytest.mark.parametrize(
    ("text", "relative", "wants_directory"),
    [
        ("a/b.py", "a/b.py", False),
        ("./a//./b.py", "a/b.py", False),
        (".", ".", False),
        ("a/", "a", True),
        ("a/.", "a", True),
        ("link/../a", "link/../a", False),
        ("/ws", ".", False),
        ("/ws/", ".", True),
        ("//ws/./a.py", "a.py", False),
        ("/ws/../etc", "../etc", False),
        ("~/$HOME/%2e%2e/..\\x", "~/$HOME/%2e%2e/..\\x", False),
        ("n" * 255, "n" * 255, False),
    ],
)
def test_a_text_is_normalised_without_resolving_it(text: str, relative: str, wants_directory: bool) -> None:
    path = SandboxPath.parse(text, root="/ws")

    assert path.text == relative
    assert path.parts == (() if relative == "." else tuple(relative.split("/")))
    assert path.wants_directory is wants_directory


@pytest.mark.parametrize("text", ["/", "/etc/passwd", "/ws-evil/a", "/w", "/WS/a", "/a/../ws/b", "/../ws-evil"])
def test_an_absolute_path_elsewhere_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(SandboxViolation) as refusal:
        SandboxPath.parse(text, root="/ws")

    assert "/" not in refusal.value.message


@pytest.mark.parametrize(
    ("text", "root", "parts", "shown"),
    [
        ("/lib/a", "/lib", ("a",), "/lib/a"),
        ("/lib", "/lib", (), "/lib"),
        ("/lib/deep/a", "/lib/deep", ("a",), "/lib/deep/a"),
        ("/lib/deeper//./a\n", "/lib", ("deeper", "a\n"), "/lib/deeper/a\\x0a"),
        ("/ws/lib/a", "", ("lib", "a"), "lib/a"),
        ("lib/a", "", ("lib", "a"), "lib/a"),
    ],
)
def test_an_absolute_path_belongs_to_the_first_root_it_is_below(
    text: str, root: str, parts: tuple[str, ...], shown: str
) -> None:
    path = SandboxPath.parse(text, root="/ws", extra=("/ws/lib", "/lib/deep", "/lib"))

    assert (path.root, path.parts, path.shown) == (root, parts, shown)


def test_the_top_of_the_file_system_may_be_a_root() -> None:
    assert SandboxPath.parse("/", root="/ws", extra=("/",)).shown == "/"
    assert SandboxPath.parse("/etc", root="/ws", extra=("/",)).shown == "/etc"


@pytest.mark.parametrize(
    "text",
    [None, 7, b"a", ["a"], "", "a\0b", "\ud800", "a\udcff", "n" * 256, "é" * 128, "x/" * 2048, "a" * 1_000_000],
    ids=lambda value: ascii(value)[:12],
)
def test_a_malformed_path_is_an_argument_error_that_does_not_quote_it(text: object) -> None:
    with pytest.raises(InvalidArguments) as refusal:
        SandboxPath.parse(text, root="/ws")

    assert len(refusal.value.message) < 80


def test_the_longest_path_the_kernel_takes_is_accepted() -> None:
    assert len(SandboxPath.parse("x/" * 2047 + "y", root="/ws").parts) == 2048


def test_a_path_does_not_change() -> None:
    path = SandboxPath.parse("a", root="/ws")

    with pytest.raises(dataclasses.FrozenInstanceError):
        path.parts = ("b",)  # type: ignore[misc]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("plain é 漢.txt", "plain é 漢.txt"),
        ("back\\slash", "back\\slash"),
        ("a\nb", "a\\x0ab"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("del\x7f", "del\\x7f"),
        ("next\x85line", "next\\u0085line"),
        ("not utf-8 \udcff", "not utf-8 \\xff"),
        ("half \ud800", "half \\ud800"),
        ("gpj.\u202eexe", "gpj.\\u202eexe"),
        ("line\u2028separator", "line\\u2028separator"),
        ("tag \U000e0041", "tag \\U000e0041"),
        ("\u0645\u06cc\u200c\u062e", "\u0645\u06cc\u200c\u062e"),
        ("👩\u200d🚀", "👩\u200d🚀"),
    ],
)
def test_what_cannot_be_seen_is_spelled_out(name: str, shown: str) -> None:
    assert display(name) == shown
