from __future__ import annotations

import os
import resource
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.builtin.snapshots import Snapshots
from tests.builtin.workspace import as_somebody_else, make, make_socket
from toolkit import CancelSignal, InvalidArguments, Rule, SandboxViolation, ToolCancelled, ToolFailed, ToolkitError
from toolkit.builtin.search.lines import LONG_LINE
from toolkit.generated import GrepArgs, GrepOutput, SecurityPolicy, Toolkit, ToolkitContext, create_agent_toolkit


def write(root: Path, files: dict[str, str | bytes]) -> None:
    for path, data in files.items():
        make(root, path, data=data if isinstance(data, bytes) else data.encode())


def found(output: GrepOutput) -> list[str]:
    """Each match as ``path:line:column:text``."""
    return [f"{match.path}:{match.line}:{match.column}:{match.text}" for match in output.matches]


def paths(output: GrepOutput) -> list[str]:
    return [match.path for match in output.matches]


# What comes back

CODE: dict[str, str | bytes] = {
    "src/app.py": "import os\n\nclass AppError(Exception):\n    pass\n",
    "src/lib/io.py": "class IoError(AppError):\n    def close(self):\n        raise IoError('Größe')\n",
    "README.md": "# App\nerror: see AppError\n",
    ".env": "AppError=1\n",
    ".github/ci.yml": "AppError\n",
    ".git/HEAD": "AppError\n",
    "build/out.txt": "AppError\n",
    "logo.png": b"\x89PNG\0AppError\n",
    ".gitignore": "build/\n",
}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            {"pattern": "AppError"},
            [
                "README.md:2:12:error: see AppError",
                "src/app.py:3:7:class AppError(Exception):",
                "src/lib/io.py:1:15:class IoError(AppError):",
            ],
        ),
        ({"pattern": r"class \w+Error\b", "path": "src/lib"}, ["src/lib/io.py:1:1:class IoError(AppError):"]),
        ({"pattern": r"\bself\b", "path": "src/lib/io.py"}, ["src/lib/io.py:2:15:    def close(self):"]),
        ({"pattern": "größe", "ignore_case": True}, ["src/lib/io.py:3:24:        raise IoError('Größe')"]),
        ({"pattern": "GRÖSSE", "ignore_case": True}, []),
        ({"pattern": "IoError('", "regex": False}, ["src/lib/io.py:3:15:        raise IoError('Größe')"]),
        ({"pattern": r"\(", "regex": False}, []),
        ({"pattern": "^$"}, ["src/app.py:2:1:"]),
        ({"pattern": "PASS", "ignore_case": True, "regex": False}, ["src/app.py:4:5:    pass"]),
        ({"pattern": "AppError", "path": ".env"}, [".env:1:1:AppError=1"]),
        ({"pattern": "AppError", "path": ".github"}, [".github/ci.yml:1:1:AppError"]),
        ({"pattern": "AppError", "path": "build"}, ["build/out.txt:1:1:AppError"]),
        ({"pattern": "AppError", "include": "*.md"}, ["README.md:2:12:error: see AppError"]),
        ({"pattern": "AppError", "include": ["*.txt", "/src/*.py"]}, ["src/app.py:3:7:class AppError(Exception):"]),
        ({"pattern": "AppError", "include": "lib/"}, ["src/lib/io.py:1:15:class IoError(AppError):"]),
        (
            {"pattern": "AppError", "include": "src/**/*.{js,py}", "exclude": "lib"},
            ["src/app.py:3:7:class AppError(Exception):"],
        ),
        ({"pattern": "AppError", "exclude": ["src/"]}, ["README.md:2:12:error: see AppError"]),
        ({"pattern": "AppError", "exclude": ["*.md", "/src/app.*"]}, ["src/lib/io.py:1:15:class IoError(AppError):"]),
        ({"pattern": "nothing like it"}, []),
    ],
)
def test_finds_lines(tmp_path: Path, toolkit: Toolkit, arguments: GrepArgs, expected: list[str]) -> None:
    write(tmp_path, CODE)

    output = toolkit.invoke("grep", arguments).content

    assert found(output) == expected
    assert (output.total, output.truncated, output.hidden) == (len(expected), False, 0)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (0, 0, [([], []), ([], [])]),
        (1, 0, [(["1"], []), (["3"], [])]),
        (0, 2, [([], ["3", "x4"]), ([], ["5"])]),
        (9, 9, [(["1"], ["3", "x4", "5"]), (["1", "x2", "3"], ["5"])]),
    ],
)
def test_shows_lines_around(
    tmp_path: Path, toolkit: Toolkit, before: int, after: int, expected: list[tuple[list[str], list[str]]]
) -> None:
    write(tmp_path, {"a.txt": "1\nx2\n3\nx4\n5"})

    output = toolkit.tools.grep(pattern="x", before=before, after=after)

    assert [(match.before, match.after) for match in output.matches] == expected


def test_tells_files_and_counts(tmp_path: Path, toolkit: Toolkit) -> None:
    write(tmp_path, {"a": "x\nx\ny\n", "b/c": "x", "d": "y\n", "e": b"x\0"})

    files = toolkit.tools.grep(pattern="x", output="files")
    counts = toolkit.tools.grep(pattern="x", output="count")

    assert [(match.path, match.line, match.count) for match in files.matches] == [("a", 1, None), ("b/c", 1, None)]
    assert [(match.path, match.line, match.count) for match in counts.matches] == [("a", 1, 2), ("b/c", 1, 1)]
    assert (files.total, counts.total, files.files_searched) == (2, 2, 3)


def test_goes_through_directories_in_order_files_first(tmp_path: Path, toolkit: Toolkit) -> None:
    write(tmp_path, dict.fromkeys(["b/2", "a/z/1", "a/y", "c", "B", "a.txt"], "x"))

    assert paths(toolkit.tools.grep(pattern="x")) == ["B", "a.txt", "c", "a/y", "a/z/1", "b/2"]


@pytest.mark.parametrize(
    ("data", "pattern", "expected"),
    [
        (b"one\r\ntwo\r\n", "one$", ["a:1:1:one"]),
        (b"one\r\ntwo\r\n", "^$", []),
        (b"a\rb\nc", "a.b", ["a:1:1:a\rb"]),
        (b"\xef\xbb\xbffirst\n", "^first", ["a:1:1:first"]),
        ("größe\n".encode("utf-16"), "^gr.ße$", ["a:1:1:größe"]),
        ("größe\n".encode("utf-32"), "ß", ["a:1:4:größe"]),
        (b"caf\xe9 au lait\n", "caf. au", ["a:1:1:caf\ufffd au lait"]),
        (b"caf\xe9\n", "\ufffd", ["a:1:4:caf\ufffd"]),
        (b"no end", "end$", ["a:1:4:no end"]),
        (b"", "", []),
        (b"\n", "", ["a:1:1:"]),
        (b"nul\0 in the middle\n", "nul", []),
        (b"x" * 8000 + b"\n" + b"\0", "x", []),
    ],
)
def test_reads_texts_of_every_kind(
    tmp_path: Path, toolkit: Toolkit, data: bytes, pattern: str, expected: list[str]
) -> None:
    write(tmp_path, {"a": data})

    assert found(toolkit.tools.grep(pattern=pattern)) == expected


@pytest.mark.parametrize("size", [0, 1, 200_000, 700_000])
def test_a_large_file_is_searched_like_a_small_one(tmp_path: Path, toolkit: Toolkit, size: int) -> None:
    rows = [f"row {number} of many" for number in range(size // 20)] + ["the last needle"]
    write(tmp_path, {"a": "\n".join(rows)})

    output = toolkit.tools.grep(pattern="ne+dle|^row 7 ", before=1)

    last = output.matches[-1]
    assert (last.line, last.column, last.before) == (len(rows), 10, rows[-2:-1])
    assert output.total == 1 + (size > 200)


def test_a_nul_far_behind_ends_the_search_of_a_file_there(tmp_path: Path, toolkit: Toolkit) -> None:
    write(tmp_path, {"a": b"needle\n" + b"filler\n" * 100_000 + b"\0\nneedle\n"})

    assert found(toolkit.tools.grep(pattern="needle")) == ["a:1:1:needle"]


# Limits


@pytest.mark.parametrize(
    ("limit", "output", "shown", "total"),
    [(1, "content", 1, 5), (5, "content", 5, 5), (2, "files", 2, 3), (3, "count", 3, 3)],
)
def test_returns_no_more_than_asked_for_and_counts_the_rest(
    tmp_path: Path, toolkit: Toolkit, limit: int, output: Any, shown: int, total: int
) -> None:
    write(tmp_path, {"a": "x\nx\n", "b": "x\nx\n", "c": "x\n"})

    result = toolkit.tools.grep(pattern="x", limit=limit, output=output)

    assert (len(result.matches), result.total, result.truncated) == (shown, total, shown < total)


def test_fifty_thousand_matches_are_cut_with_a_count(tmp_path: Path, toolkit: Toolkit) -> None:
    """Row 154."""
    write(tmp_path, {f"{number}.txt": "needle in a row\n" * 5000 for number in range(10)})

    message = toolkit.invoke("grep", {"pattern": "needle"})

    assert (len(message.content.matches), message.content.total, message.content.truncated) == (100, 50_000, True)
    assert message.text().endswith(
        "\n[the first 100 of 50000 matches; raise limit, or narrow pattern, path or include]"
    )


def test_the_answer_has_an_end_even_when_every_match_brings_many_lines(tmp_path: Path, toolkit: Toolkit) -> None:
    write(tmp_path, {"a": ("x" * 400 + "\n") * 3000})

    output = toolkit.tools.grep(pattern="x", limit=1000, before=100, after=100)

    assert output.truncated and output.total == 3000
    size = sum(len(row) for match in output.matches for row in (match.text, *match.before, *match.after))
    assert 1_000_000 < size < 1_300_000


@pytest.mark.parametrize(
    ("line", "pattern", "shown", "column"),
    [
        ("y" * 501, "y", "y" * 500 + "… [line clipped: 501 characters]", 1),
        ("x" * 500, "x", "x" * 500, 1),
        ("é" * 300 + "needle" + "y" * 300, "needle", "é" * 300 + "needle" + "y" * 194 + "… [line clipped: 606 characters]", 301),
        ("a" * 5000 + "needle" + "b" * 5000, "needle", "…" + "a" * 100 + "needle" + "b" * 394 + "… [line clipped: 10006 characters]", 5001),
        ("a" * 5000 + "needle" + "b" * 5000, "ne+dle", "…" + "a" * 94 + "needle" + "b" * 400 + "… [line clipped: 10006 characters]", None),
    ],
)  # fmt: skip
def test_clips_long_lines_around_the_match(
    tmp_path: Path, toolkit: Toolkit, line: str, pattern: str, shown: str, column: int | None
) -> None:
    write(tmp_path, {"a": f"{line}\n"})

    (match,) = toolkit.tools.grep(pattern=pattern).matches

    assert (match.text, match.column) == (shown, column)


def test_clips_the_lines_around_a_match_too(tmp_path: Path, toolkit: Toolkit) -> None:
    write(tmp_path, {"a": "y" * 600 + "\nx\n" + "z" * 600})

    (match,) = toolkit.tools.grep(pattern="x", before=1, after=1).matches

    assert match.before == ["y" * 500 + "… [line clipped: 600 characters]"]
    assert match.after == ["z" * 500 + "… [line clipped: 600 characters]"]


def peak_kib() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def test_a_line_of_fifty_megabytes_costs_little_memory(tmp_path: Path, toolkit: Toolkit) -> None:
    """Row 36."""
    with (tmp_path / "a").open("wb") as file:
        for _ in range(50):
            file.write(b"x" * LONG_LINE)
        file.write(b"needle\nshort needle\n")
    toolkit.tools.grep(pattern="warm up")
    before = peak_kib()

    output = toolkit.tools.grep(pattern="nee?dle")

    assert [(match.line, len(match.text) < 600) for match in output.matches] == [(1, True), (2, True)]
    assert peak_kib() - before < 30_000


def test_a_sparse_file_of_64_gigabytes_is_no_text(tmp_path: Path, toolkit: Toolkit) -> None:
    """Row 35."""
    for name, head in (("binary", b""), ("text", b"needle\n")):
        with (tmp_path / name).open("wb") as file:
            file.write(head)
            try:
                file.truncate(64 << 30)
            except OSError:
                pytest.skip("this file system holds no 64 GiB file")

    output = toolkit.tools.grep(pattern="needle")

    assert (found(output), output.files_searched) == ([], 0)


# What is never touched


def test_follows_no_link_and_opens_no_pipe_device_or_socket(tmp_path: Path) -> None:
    """Rows 31 to 33 and 152."""
    root = tmp_path / "ws"
    write(tmp_path, {"secret": "needle\n", "ws/file": "needle\n", "ws/dir/x": "needle\n"})
    (root / "out").symlink_to("../secret")
    (root / "up").symlink_to("..")
    (root / "dir/loop").symlink_to(".")
    (root / "self").symlink_to("self")
    (root / "inside").symlink_to("file")
    os.mkfifo(root / "pipe")
    make_socket(root / "sock")

    with create_agent_toolkit(ToolkitContext(root, SecurityPolicy(default="allow"))) as toolkit:
        output = toolkit.tools.grep(pattern="needle")
        named = toolkit.tools.grep(pattern="needle", path="inside")

    assert paths(output) == ["file", "dir/x"]
    assert paths(named) == ["inside"]


def test_leaves_out_what_it_may_not_read(tmp_path: Path, toolkit: Toolkit) -> None:
    write(tmp_path, {"closed/x": "needle", "file": "needle", "open": "needle"})
    (tmp_path / "closed").chmod(0)
    (tmp_path / "file").chmod(0)

    with as_somebody_else(tmp_path):
        output = toolkit.tools.grep(pattern="needle")
    (tmp_path / "closed").chmod(0o755)

    assert (paths(output), output.files_searched) == (["open"], 1)


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Toolkit]:
    policy = SecurityPolicy(default="allow", rules=[Rule("deny", path="secret*"), Rule("deny", path="keys/private")])
    with create_agent_toolkit(ToolkitContext(tmp_path, policy)) as toolkit:
        yield toolkit


def test_counts_what_the_policy_denies(tmp_path: Path, guarded: Toolkit) -> None:
    write(
        tmp_path,
        dict.fromkeys(["a", "secret.txt", "sub/SECRET", "secrets/x", "keys/private/y", "keys/public"], "needle\n"),
    )
    (tmp_path / "alias").symlink_to("secret.txt")
    (tmp_path / "way").symlink_to("keys")

    output = guarded.tools.grep(pattern="needle")
    below_link = guarded.tools.grep(pattern="needle", path="way")

    assert (paths(output), output.hidden) == (["a", "keys/public"], 4)
    assert (paths(below_link), below_link.hidden) == (["way/public"], 1)
    for path in ("secret.txt", "alias", "way/private", "way/private/y", "keys/PRIVATE"):
        with pytest.raises(ToolkitError) as caught:
            guarded.tools.grep(pattern="needle", path=path)
        assert caught.value.code in ("SANDBOX_VIOLATION", "TOOL_NOT_ALLOWED")


def test_a_denied_list_of_ignored_files_is_not_read(tmp_path: Path) -> None:
    write(tmp_path, {".gitignore": "*.log\n", "a.log": "needle\n", "sub/.gitignore": "b\n", "sub/b": "needle\n"})
    policy = SecurityPolicy(default="allow", rules=[Rule("deny", path=".gitignore")])

    with create_agent_toolkit(ToolkitContext(tmp_path, policy)) as toolkit:
        output = toolkit.tools.grep(pattern="needle")
        tree = toolkit.tools.tree(include_hidden=True)

    assert (paths(output), output.hidden) == (["a.log", "sub/b"], 2)
    assert (tree.total_files, tree.hidden) == (2, 2)


def test_shows_odd_names_and_texts_escaped(tmp_path: Path, toolkit: Toolkit) -> None:
    """Rows 28 and 38."""
    write(tmp_path, {"two\nlines": "needle \x1b[31m\n", "bidi\u202etxt": "\u202eneedle\n", "bad\udcff": "needle\0"[:6]})

    message = toolkit.invoke("grep", {"pattern": "needle"})

    assert paths(message.content) == ["bad\\xff", "bidi\\u202etxt", "two\\x0alines"]
    assert [match.text for match in message.content.matches] == ["needle", "\u202eneedle", "needle \x1b[31m"]
    assert message.text() == (
        "bad\\xff\n1:needle\n\nbidi\\u202etxt\n1:\\u202eneedle\n\ntwo\\x0alines\n1:needle \\x1b[31m\n[3 matches, 3 files searched]"
    )


# Hostile patterns


@pytest.mark.parametrize(
    "pattern",
    ["(a+)+$", "^(a|a)*b$", "(a*)*b", "(?:a|a?)+b$", "^(([a-z])+.)+[A-Z]([a-z])+$", "(.*)*x", "a*a*a*a*a*a*b"],
)
def test_no_pattern_makes_matching_explode(tmp_path: Path, toolkit: Toolkit, pattern: str) -> None:
    """Row 148. A backtracking engine would not come back within the age of the universe."""
    write(tmp_path, {"big": "a" * 300_000 + "!\n" + "a" * 40 + "!\n", "many": ("a" * 50 + "!\n") * 20_000})

    assert found(toolkit.tools.grep(pattern=pattern)) == []


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("(?=a)b", "look-around"),
        ("(?<!a)b", "look-around"),
        (r"(a)\1", "backreferences are not supported: '\\1'; write out the repeated text"),
        ("a{100000}", "multiply to more than 1000 steps"),
        ("(a{100}){100}", "multiply to more than 1000 steps"),
        ("((a{1000}){1000}){1000}", "use smaller counts"),
        (r"\w{1000}", "use smaller counts"),
        ("(?x) a{100} # {2\n {100}", "multiply to more than 1000 steps"),
        ("(", "unclosed group: '('. Set regex to false to search for it literally"),
        ("[z-a]", "the start must be <= the end: 'z-a'"),
        ("interface {", r"write a literal brace as \{"),
        (r"C:\Home", r"unrecognized escape sequence: '\H'; write a literal backslash as \\"),
        (r"one\ntwo", "lines are searched one by one"),
        ("one\ntwo", "lines are searched one by one"),
        ("(" * 1000 + ")" * 1000, "nested"),
        ("a" * 4097, "at most 4096"),
    ],
)  # fmt: skip
def test_says_why_a_pattern_cannot_be_used(toolkit: Toolkit, pattern: str, words: str) -> None:
    """Row 149."""
    with pytest.raises(ToolFailed) as caught:
        toolkit.tools.grep(pattern=pattern)

    assert caught.value.reason == "INVALID_REGEX"
    assert words in caught.value.message


def test_a_text_may_hold_anything_but_a_line_feed(tmp_path: Path, toolkit: Toolkit) -> None:
    write(tmp_path, {"a": "(?=a)\\1 ( [z-a] {\n"})

    assert len(toolkit.tools.grep(pattern="(?=a)\\1 ( [z-a] {", regex=False).matches) == 1
    assert len(toolkit.tools.grep(pattern="(?=A)\\1 ( [Z-A] {", regex=False, ignore_case=True).matches) == 1
    for pattern, words in (("a\nb", "lines are searched one by one"), ("a" * 4097, "at most 4096")):
        with pytest.raises(ToolFailed, match=words):
            toolkit.tools.grep(pattern=pattern, regex=False)


def test_what_looks_like_an_option_is_data(tmp_path: Path, toolkit: Toolkit) -> None:
    """Row 150."""
    write(tmp_path, {"--pre": "--files\n", "-x/a": "--files\n"})

    assert paths(toolkit.tools.grep(pattern="--files")) == ["--pre", "-x/a"]
    assert paths(toolkit.tools.grep(pattern="--files", path="--pre")) == ["--pre"]
    assert paths(toolkit.tools.grep(pattern="--", path="-x", include="a")) == ["-x/a"]


# What fails


@pytest.mark.parametrize(
    ("path", "reason", "words"),
    [
        ("scr", "NOT_FOUND", "'scr' does not exist. Did you mean 'src'?"),
        (
            "logo.png",
            "BINARY_NOT_SUPPORTED",
            "'logo.png' is not a text file: it has NUL bytes near its start (14 bytes in all)",
        ),
        ("pipe", "NOT_FILE", "'pipe' is not a regular file"),
        (
            "README.md/x",
            "NOT_DIRECTORY",
            "'README.md/x' is not a directory, or is below something that is not a directory",
        ),
    ],
)
def test_says_why_it_cannot_search(tmp_path: Path, toolkit: Toolkit, path: str, reason: str, words: str) -> None:
    write(tmp_path, CODE)
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(ToolFailed) as caught:
        toolkit.tools.grep(pattern="x", path=path)

    assert (caught.value.reason, caught.value.message) == (reason, words)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({}, InvalidArguments),
        ({"pattern": "x", "path": ""}, InvalidArguments),
        ({"pattern": "x", "path": "../x"}, SandboxViolation),
        ({"pattern": "x", "path": "/etc"}, SandboxViolation),
        ({"pattern": "x", "path": "away"}, SandboxViolation),
        ({"pattern": "x", "include": "../*"}, SandboxViolation),
        ({"pattern": "x", "include": ["a" * 1001]}, ToolFailed),
        ({"pattern": "x", "limit": 0}, InvalidArguments),
        ({"pattern": "x", "limit": 1001}, InvalidArguments),
        ({"pattern": "x", "before": -1}, InvalidArguments),
        ({"pattern": "x", "after": 101}, InvalidArguments),
        ({"pattern": "x", "output": "lines"}, InvalidArguments),
        ({"pattern": "x", "include": 1}, InvalidArguments),
        ({"pattern": "bad\ud800"}, InvalidArguments),
    ],
)
def test_refuses_bad_arguments(
    tmp_path: Path, toolkit: Toolkit, arguments: GrepArgs, error: type[ToolkitError]
) -> None:
    (tmp_path / "away").symlink_to("/")

    with pytest.raises(error):
        toolkit.invoke("grep", arguments)


@pytest.mark.parametrize("arguments", [{"tool": "grep", "pattern": "x"}, {"tool": "glob", "pattern": "**"}])
def test_a_long_walk_can_be_cancelled(tmp_path: Path, toolkit: Toolkit, arguments: dict[str, str]) -> None:
    make(tmp_path, *(f"{number}/file" for number in range(50)), data=b"x\n")
    signal = CancelSignal()
    signal.cancel("stop")
    tool = arguments.pop("tool")

    with pytest.raises(ToolCancelled):
        toolkit.with_options(signal=signal).execute_raw(tool, str(arguments).replace("'", '"'))


# The text a model reads

TEXTS: dict[str, Callable[[Toolkit], str]] = {
    "matches": lambda toolkit: toolkit.invoke("grep", {"pattern": "AppError"}).text(),
    "context": lambda toolkit: toolkit.invoke("grep", {"pattern": "Error", "before": 1, "after": 1}).text(),
    "files": lambda toolkit: toolkit.invoke("grep", {"pattern": "AppError", "output": "files"}).text(),
    "count": lambda toolkit: toolkit.invoke("grep", {"pattern": "Error", "output": "count"}).text(),
    "truncated": lambda toolkit: toolkit.invoke("grep", {"pattern": "e", "limit": 2}).text(),
    "nothing": lambda toolkit: toolkit.invoke("grep", {"pattern": "nothing like it"}).text(),
    "no-file": lambda toolkit: toolkit.invoke("grep", {"pattern": "x", "include": "*.rs"}).text(),
}


@pytest.mark.parametrize("case", TEXTS)
def test_text(tmp_path: Path, toolkit: Toolkit, snapshots: Snapshots, case: str) -> None:
    write(tmp_path, CODE)

    snapshots.check(f"grep/{case}", TEXTS[case](toolkit), budget=400)


def test_text_says_what_the_policy_denies(tmp_path: Path, guarded: Toolkit, snapshots: Snapshots) -> None:
    write(tmp_path, {"a.txt": "needle\n", "secret": "needle\n"})

    snapshots.check("grep/denied", guarded.invoke("grep", {"pattern": "needle"}).text(), budget=200)


def test_a_thousand_matches_cost_little_more_than_their_lines(tmp_path: Path, toolkit: Toolkit) -> None:
    write(tmp_path, {f"{number}.txt": "needle in a haystack\n" * 100 for number in range(10)})

    text = toolkit.invoke("grep", {"pattern": "needle", "limit": 1000}).text()

    assert len(text.encode()) <= 1000 * (len("needle in a haystack") + 5) + 10 * 10 + 60
