"""Properties of every patch: it can be reverted, changes nothing else, cannot escape, and never fails unexpectedly."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builtin.patches import add, delete, envelope, files_in, outcome, update, write
from tests.builtin.workspace import toolkit_for
from tests.examples import tries
from toolkit import ToolFailed, ToolkitError

# There and back again

# Numbered, so that no hunk could mean another place.
WORDS = st.sampled_from(
    ["x", "def f():", "  indented", "\ttab ", "é“”", "-", "+", "@@", "*** End of File", "*** Add File: a"]
)


@st.composite
def two_versions(draw: st.DrawFn) -> tuple[list[str], list[str]]:
    numbers = iter(range(1000))
    old = [f"{word} {next(numbers)}" for word in draw(st.lists(WORDS, max_size=20))]
    new = list(old)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(new)))
        count = draw(st.integers(0, 3))
        new[at : at + count] = [f"{word} {next(numbers)}" for word in draw(st.lists(WORDS, max_size=3))]
    return old, new


def rows_between(old: list[str], new: list[str], context: int) -> list[str]:
    """Hunks from one version to the other, with so many lines around each change."""
    rows = []
    for group in difflib.SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(context):
        rows.append("@@")
        for tag, old_start, old_end, new_start, new_end in group:
            if tag == "equal":
                rows += [f" {line}" for line in old[old_start:old_end]]
                continue
            rows += [f"-{line}" for line in old[old_start:old_end]]
            rows += [f"+{line}" for line in new[new_start:new_end]]
    return rows


@tries(150)
@given(
    versions=two_versions(), context=st.integers(1, 3), end=st.sampled_from(["\n", "\r\n", "\r"]), mark=st.booleans()
)
@pytest.mark.slow
def test_a_patch_and_its_inverse_give_the_first_bytes_again(
    tmp_path_factory: pytest.TempPathFactory, versions: tuple[list[str], list[str]], context: int, end: str, mark: bool
) -> None:
    old, new = versions
    root = tmp_path_factory.mktemp("ws")
    lead = "\ufeff" if mark else ""
    before, after = (f"{lead}{''.join(line + end for line in lines)}" for lines in (["first", *old], ["first", *new]))
    write(root, {"f": before})
    there = rows_between(["first", *old], ["first", *new], context)
    back = rows_between(["first", *new], ["first", *old], context)
    if not there:
        return

    with toolkit_for(root) as toolkit:
        toolkit.tools.apply_patch(patch=envelope(update("f", *there, to="g")))
        assert files_in(root) == {"g": after.encode()}
        toolkit.tools.apply_patch(patch=envelope(update("g", *back, to="f")))
    assert files_in(root) == {"f": before.encode()}


LINES = st.binary(min_size=1, max_size=6).filter(lambda line: not set(line) & set(b"\r\n\0"))
ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])


@tries(150)
@given(
    before=st.lists(st.tuples(LINES, ENDS), max_size=8),
    behind=st.lists(st.tuples(LINES, ENDS), max_size=8),
    last=LINES | st.just(b""),
)
@pytest.mark.slow
def test_no_byte_changes_beside_the_lines_of_a_hunk(
    tmp_path_factory: pytest.TempPathFactory,
    before: list[tuple[bytes, bytes]],
    behind: list[tuple[bytes, bytes]],
    last: bytes,
) -> None:
    root = tmp_path_factory.mktemp("ws")
    head, tail = (b"".join(line + end for line, end in lines) for lines in (before, behind))
    # A mark of UTF-16 at the beginning makes it no text, and a last line without an end gets one.
    head = b"#" + head if head[:2] in (b"\xff\xfe", b"\xfe\xff") or head[:4] == b"\x00\x00\xfe\xff" else head
    end = before[0][1] if before else b"\n"
    closed = last + end if last else b""
    write(root, {"f": head + b"the line to change" + end + tail + last})

    assert outcome(root, envelope(update("f", "@@", "-the line to change", "+changed"))) == "done"

    assert files_in(root)["f"] == head + b"changed" + end + tail + closed


# Anything that could be a patch

PATHS = st.sampled_from(["a", "b", "dir/c", "dir", "new/x", "..", "../secret", "dir/../../secret", "out/secret", "link", ".git/config",
                         ".", "/", "/etc/passwd", "/dev/null", "a/b", "fifo", "a\0b", "x" * 300, "~", "é", " ", "", "a ", '"a"', "\ud800"])  # fmt: skip
TEXT = st.sampled_from(["x", "y", "", "SECRET", "z z", "\\ No newline at end of file", "\x1b[31m"]) | st.text(
    max_size=4
)
ROWS = st.builds("{}{}".format, st.sampled_from([" ", "+", "-", "", "\\", "@", "*"]), TEXT)
NUMBERS = st.sampled_from(["0", "1", "2", "9", "999999999", "-1", "10000000000", "1,1", "1,2", "0,0", "2,0"])
HEADERS = st.one_of(
    st.builds("*** Add File: {}".format, PATHS),
    st.builds("*** Update File: {}".format, PATHS),
    st.builds("*** Delete File: {}".format, PATHS),
    st.builds("*** Move to: {}".format, PATHS),
    st.sampled_from(["*** Begin Patch", "*** End Patch", "*** End of File", "@@", "@@ x", "<<'EOF'", "EOF", "GIT binary patch"]),
    st.builds("diff --git a/{} b/{}".format, PATHS, PATHS),
    st.builds("--- a/{}".format, PATHS),
    st.builds("+++ b/{}".format, PATHS),
    st.builds("{} from {}".format, st.sampled_from(["rename", "copy"]), PATHS),
    st.builds("{} to {}".format, st.sampled_from(["rename", "copy"]), PATHS),
    st.builds("{} mode {}".format, st.sampled_from(["old", "new", "new file", "deleted file"]), st.sampled_from(["100644", "100755", "120000", "104777", "9"])),
    st.builds("@@ -{} +{} @@".format, NUMBERS, NUMBERS),
)  # fmt: skip

PART = st.one_of(
    st.builds(lambda path, rows: add(path, *rows), PATHS, st.lists(TEXT, max_size=3)),
    st.builds(
        lambda path, rows, to: update(path, "@@", *rows, to=to), PATHS, st.lists(ROWS, max_size=4), st.none() | PATHS
    ),
    st.builds(delete, PATHS),
)
DIFF = st.builds(
    lambda path, numbers, rows: f"--- a/{path}\n+++ b/{path}\n@@ -{numbers[0]} +{numbers[1]} @@\n" + "".join(f"{row}\n" for row in rows),
    PATHS, st.tuples(NUMBERS, NUMBERS), st.lists(ROWS, max_size=4),
)  # fmt: skip
MOVE = st.builds(
    lambda word, path, to: f"diff --git a/{path} b/{to}\n{word} from {path}\n{word} to {to}\n",
    st.sampled_from(["rename", "copy"]),
    PATHS,
    PATHS,
)
PATCHES = st.one_of(
    st.lists(PART, max_size=4).map(lambda parts: envelope(*parts)),
    st.lists(DIFF | MOVE, min_size=1, max_size=4).map("".join),
    st.lists(HEADERS | ROWS, max_size=14).map("\n".join),
    st.text(max_size=60),
)


@tries(400)
@given(patch=PATCHES, dry_run=st.booleans())
@pytest.mark.slow
def test_no_patch_leaves_the_workspace_or_fails_unexpectedly(
    tmp_path_factory: pytest.TempPathFactory, patch: str, dry_run: bool
) -> None:
    base = tmp_path_factory.mktemp("base")
    root = base / "ws"
    write(root, {"a": "x\ny\n", "b": "y\n", "dir/c": "SECRET\n", ".git/config": "git\n"})
    write(base, {"secret": "SECRET\n", "outside/secret": "SECRET\n"})
    (root / "out").symlink_to("../outside")
    (root / "link").symlink_to("../secret")
    before = files_in(root)

    with toolkit_for(root) as toolkit:
        try:
            output = toolkit.tools.apply_patch(patch=patch, dry_run=dry_run)
        except ToolkitError as error:
            assert error.code != "INTERNAL", error
            assert files_in(root) == before
            assert str(base) not in error.message
            assert isinstance(error, ToolFailed) or error.code in ("SANDBOX_VIOLATION", "INVALID_TOOL_ARGUMENTS")
        else:
            assert output.applied == (not dry_run)
            assert not dry_run or files_in(root) == before
            assert toolkit.invoke("done", {"message": "still there"})

    after = files_in(root)
    assert {name: after[name] for name in (".git/config", "out", "link") if name in after} == {
        name: before[name] for name in (".git/config", "out", "link") if name in before
    }
    assert not [name for name in after if Path(name).name.startswith(".") and name != ".git/config"]
    assert {path.name for path in base.iterdir()} == {"ws", "secret", "outside"}
    assert files_in(base / "outside") == {"secret": b"SECRET\n"} and (base / "secret").read_bytes() == b"SECRET\n"
