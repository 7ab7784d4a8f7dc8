"""One table of paths, replayed over every operation and both resolvers; the numbers are those of the attack list."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import tries
from tests.guard.world import FILES, LINKS, ROWS, SECRET, D, Row, build, name_of
from toolkit.errors import ToolFailed, ToolkitError
from toolkit.guard import ResolverName, SandboxFS, has_openat2
from toolkit.guard.files.resolve import pick


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("world")
    build(base)
    return base


@pytest.fixture
def fs(base: Path, resolver: ResolverName) -> Iterator[SandboxFS]:
    with SandboxFS(base / "ws", resolver=resolver) as fs:
        yield fs


def read(fs: SandboxFS, text: str) -> str:
    with fs.open_file(text) as file:
        return file.read(1000).decode()


def listing(fs: SandboxFS, text: str) -> str:
    with fs.open_dir(text) as folder:
        assert "secret" not in {entry.name for entry in folder.entries()}
        return "listed"


OPERATIONS: Mapping[str, Callable[[SandboxFS, str], str]] = {
    "open_file": read,
    "stat": lambda fs, text: fs.stat(text).kind,
    "open_dir": listing,
}


def outcome(operation: str, fs: SandboxFS, text: str) -> tuple[str, str]:
    """What came of it in one word, and the message if it was refused."""
    try:
        return OPERATIONS[operation](fs, text), ""
    except ToolFailed as error:
        return str(error.reason), error.message
    except ToolkitError as error:
        return error.code, error.message


@pytest.mark.every_row
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("row", ROWS, ids=name_of)
def test_every_operation_answers_as_the_table_says(row: Row, operation: str, fs: SandboxFS, base: Path) -> None:
    expected = getattr(row, operation)
    text = row.text.format(base=base)

    result, message = outcome(operation, fs, text)

    assert result == expected
    assert str(base) not in message.replace(text, "")


@pytest.mark.parametrize("row", [row for row in ROWS if row.unguarded], ids=name_of)
def test_the_same_text_reaches_the_secret_when_nothing_guards_it(row: Row, base: Path) -> None:
    path = os.path.join(base, "ws", row.text.format(base=base))

    if row.unguarded == "file":
        assert Path(path).read_text() == SECRET
    else:
        assert "secret" in os.listdir(path)


PIECES = ["", ".", "..", "...", "a", "deep", "none", "secret", "ws", *FILES, *LINKS, "fifo", "socket", "hop-40"]
PATHS = st.text() | st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=12).map("/".join)


@tries(500, database=None)
@given(text=PATHS)
@pytest.mark.slow
def test_no_text_leaves_the_root_and_both_resolvers_agree(base: Path, text: str) -> None:
    with SandboxFS(base / "ws", resolver="walk") as walk, SandboxFS(base / "ws") as best:
        for operation in OPERATIONS:
            result, message = outcome(operation, walk, text)

            assert result != SECRET
            assert (result, message) == outcome(operation, best, text)


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="there is no /proc here")
@pytest.mark.parametrize(
    ("text", "expected"),
    [("self/root/etc/passwd", D), ("self/root", D), ("self/cwd", D), ("self/exe", D), ("self/ns/net", "NOT_FOUND")],
)
def test_magic_links_are_not_followed_even_where_proc_is_the_root(
    text: str, expected: str, resolver: ResolverName
) -> None:
    with SandboxFS("/proc", resolver=resolver) as fs:
        assert {outcome(operation, fs, text)[0] for operation in OPERATIONS} == {expected}
        assert fs.stat("self/status").kind == "file"

    assert os.path.exists(os.path.join("/proc", text))


def test_the_kernel_resolver_is_the_default_where_it_exists() -> None:
    assert pick("auto") is pick("openat2" if has_openat2() else "walk")
