"""``tool_output_cache`` and ``tool_output_cache_grep`` over cached outputs."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st

from tests.builtin.snapshots import Snapshots
from tests.examples import tries
from tests.runtime.cache.reading import UNKNOWN
from toolkit import CancelSignal, ContentBlock, FileOutputCache, InvalidArguments, ToolCancelled, ToolFailed
from toolkit.generated import (
    SecurityPolicy,
    Toolkit,
    ToolkitContext,
    ToolOutputCacheArgs,
    ToolOutputCacheGrepArgs,
    create_agent_toolkit,
)
from toolkit.runtime.stores.outputs import TEXT_LIMIT

SESSION = "session"
REF = "b3V0cHV0cyBhcmUga2VwdCBhIHdoaWxl"


@pytest.fixture
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FileOutputCache]:
    cache = FileOutputCache(str(tmp_path_factory.mktemp("cache") / "outputs"))
    yield cache
    cache.close()


def toolkit_over(root: Path, cache: FileOutputCache, session_id: str = SESSION) -> Toolkit:
    context = ToolkitContext(
        root, SecurityPolicy(default="allow"), session_id=session_id, overrides={"output_cache": lambda: cache}
    )
    return create_agent_toolkit(context)


@pytest.fixture
def toolkit(tmp_path: Path, cache: FileOutputCache) -> Iterator[Toolkit]:
    with toolkit_over(tmp_path, cache) as toolkit:
        yield toolkit


def keep(cache: FileOutputCache, data: bytes | str) -> str:
    ref = cache.put(SESSION, data, tool="bash")
    assert ref is not None
    return ref


# Reading


@pytest.mark.parametrize(
    ("arguments", "content", "following"),
    [
        ({}, "     1\tone\n     2\t\n     3\tthree", None),
        ({"offset": 2}, "     2\t\n     3\tthree", None),
        ({"offset": 2, "limit": 1}, "     2\t", 3),
        ({"limit": 2}, "     1\tone\n     2\t", 3),
        ({"limit": 3}, "     1\tone\n     2\t\n     3\tthree", None),
        ({"offset": 4}, "", None),
        ({"offset": 10**15, "limit": 10**15}, "", None),
    ],
)
def test_reads_numbered_lines_and_says_where_to_go_on(
    cache: FileOutputCache, toolkit: Toolkit, arguments: dict[str, int], content: str, following: int | None
) -> None:
    ref = keep(cache, "one\n\nthree\n")

    output = toolkit.tools.tool_output_cache(ref_id=ref, **arguments)

    assert (output.ref_id, output.content, output.next_offset) == (ref, content, following)
    assert (output.line_count, output.total_lines) == (len(content.splitlines()), 3)
    assert (output.clipped_lines, output.attached) == ([], [])


rows = st.sampled_from(["", "x" * 30, "é" * 1500, "\x1b\u202e" * 400, "\U0001f600" * 3000, "z" * 1_000_000, "\r"])


@tries(40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=st.lists(rows, max_size=60), limit=st.sampled_from([1, 7, 2000]))
@example(lines=["\U000e0041" * 3000] * 5, limit=2000)
@example(lines=["short"] * 5000, limit=10_000)
def test_pages_follow_each_other_and_are_never_cut_again(
    cache: FileOutputCache, toolkit: Toolkit, lines: list[str], limit: int
) -> None:
    ref = keep(cache, "".join(f"{line}\n" for line in lines))
    numbers: list[int] = []
    offset: int | None = 1
    while offset is not None:
        message = toolkit.invoke("tool_output_cache", {"ref_id": ref, "offset": offset, "limit": limit})
        assert len(message.text().encode()) <= TEXT_LIMIT
        page = message.content
        shown = [int(row.partition("\t")[0]) for row in page.content.split("\n")] if page.content else []
        assert len(shown) == page.line_count
        assert page.next_offset is None or (page.next_offset == offset + page.line_count and page.line_count)
        numbers += shown
        offset = page.next_offset

    assert numbers == list(range(1, len(lines) + 1))


def test_a_page_is_filled(cache: FileOutputCache, toolkit: Toolkit) -> None:
    ref = keep(cache, "".join(f"line {number} of the build\n" for number in range(1, 9001)))

    message = toolkit.invoke("tool_output_cache", {"ref_id": ref})

    assert 48 * 1024 - 40 <= len(message.content.content) <= 48 * 1024
    assert message.text() == message.content.content + "\n[lines 1-1675 of 9000; continue with offset=1676]"


def test_clips_long_lines(cache: FileOutputCache, toolkit: Toolkit) -> None:
    ref = keep(cache, "a\n" + "é" * 3000 + "\nb\n")

    message = toolkit.invoke("tool_output_cache", {"ref_id": ref})

    assert message.content.content == "     1\ta\n     2\t" + "é" * 2000 + "… [line clipped: 6000 bytes]\n     3\tb"
    assert (message.content.clipped_lines, message.content.next_offset) == ([2], None)
    assert message.text().endswith("\n[lines 1-3 of 3; 1 long line clipped: search with tool_output_cache_grep]")


def test_content_parts_come_back_whole(cache: FileOutputCache, toolkit: Toolkit) -> None:
    picture = ContentBlock("image", "image/png", data=base64.b64encode(bytes(1000)).decode())
    link = ContentBlock("document", url="https://example.org/a.pdf")
    blocks = (ContentBlock("text", text="one\ntwo"), picture, link, ContentBlock("text", text="three"))
    ref = cache.put_blocks(SESSION, blocks, tool="webfetch")
    only_picture = cache.put_blocks(SESSION, [picture], tool="read_file")
    assert ref is not None and only_picture is not None

    message = toolkit.invoke("tool_output_cache", {"ref_id": ref})
    assert message.attachments == (picture, link)
    assert (message.content.attached, message.content.total_lines) == (["image/png", "document"], 3)
    assert message.text() == "     1\tone\n     2\ttwo\n     3\tthree\n[attached: image/png]\n[attached: document]"
    later = toolkit.invoke("tool_output_cache", {"ref_id": ref, "offset": 3})
    assert (later.attachments, later.text()) == ((), "     3\tthree\n[line 3 of 3]")
    alone = toolkit.invoke("tool_output_cache", {"ref_id": only_picture})
    assert (alone.attachments, alone.text()) == ((picture,), "[attached: image/png]")
    found = toolkit.tools.tool_output_cache_grep(ref_id=ref, pattern="t")
    assert [match.text for match in found.matches] == ["two", "three"]


# Searching

TEXT = "one error\ntwo\nthree Error\nfour\nfive error\nsix\n"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"pattern": "error"}, [(1, "one error", [], []), (5, "five error", [], [])]),
        ({"pattern": "(?i)error", "regex": True}, [(1, "one error", [], []), (3, "three Error", [], []), (5, "five error", [], [])]),
        ({"pattern": "^t", "regex": True}, [(2, "two", [], []), (3, "three Error", [], [])]),
        ({"pattern": "^t"}, []),
        ({"pattern": ".*"}, []),
        ({"pattern": "error$", "regex": True, "before": 1, "after": 1}, [(1, "one error", [], ["two"]), (5, "five error", ["four"], ["six"])]),
        ({"pattern": "six", "before": 100, "after": 100}, [(6, "six", ["one error", "two", "three Error", "four", "five error"], [])]),
        ({"pattern": "--version"}, []),
    ],
)  # fmt: skip
def test_finds_lines_and_those_around_them(
    cache: FileOutputCache,
    toolkit: Toolkit,
    arguments: ToolOutputCacheGrepArgs,
    expected: list[tuple[int, str, list[str], list[str]]],
) -> None:
    ref = keep(cache, TEXT)

    output = toolkit.invoke("tool_output_cache_grep", {**arguments, "ref_id": ref}).content

    assert [(match.line, match.text, match.before, match.after) for match in output.matches] == expected
    assert (output.ref_id, output.total, output.truncated) == (ref, len(expected), False)


@pytest.mark.parametrize("max_matches", [1, 49, 50, 51, 1000])
def test_counts_what_it_does_not_show(cache: FileOutputCache, toolkit: Toolkit, max_matches: int) -> None:
    ref = keep(cache, "".join(f"{number} {'even' if number % 2 == 0 else 'odd'}\n" for number in range(1, 101)))

    output = toolkit.tools.tool_output_cache_grep(ref_id=ref, pattern="even", max_matches=max_matches)

    assert [match.line for match in output.matches] == list(range(2, 101, 2))[:max_matches]
    assert (output.total, output.truncated) == (50, max_matches < 50)


@pytest.mark.parametrize("row", ["x" * 400, "\x1b" * 400, "x" * 5000])
@pytest.mark.parametrize("around", [0, 1, 100])
@pytest.mark.slow
def test_what_is_found_is_never_cut_again(cache: FileOutputCache, toolkit: Toolkit, row: str, around: int) -> None:
    ref = keep(cache, f"{row}\n" * 2000)

    given: ToolOutputCacheGrepArgs = {
        "ref_id": ref, "pattern": row[:5], "max_matches": 1000, "before": around, "after": around,
    }  # fmt: skip
    message = toolkit.invoke("tool_output_cache_grep", given)

    assert len(message.text().encode()) <= TEXT_LIMIT
    assert (message.content.total, message.content.truncated) == (2000, True)
    assert message.content.matches


@pytest.mark.parametrize("pattern", ["(a+)+$", "^(a|a)*b$", "(x+x+)+y", "(.*)*z", "a{1,30}{1,30}b"])
def test_a_hostile_pattern_takes_linear_time(cache: FileOutputCache, toolkit: Toolkit, pattern: str) -> None:
    """An engine that tried every way to match would not come back within the age of the universe."""
    ref = keep(cache, "a" * 100_000 + "!\n" + "x" * 100_000 + "\n")

    output = toolkit.tools.tool_output_cache_grep(ref_id=ref, pattern=pattern, regex=True)

    assert output.total == 0


@pytest.mark.parametrize("pattern", ["(?=x)", r"(x)\1", "x{100000}", "(", "[", "a\nb"])
def test_says_why_a_pattern_cannot_be_used(cache: FileOutputCache, toolkit: Toolkit, pattern: str) -> None:
    ref = keep(cache, TEXT)

    with pytest.raises(ToolFailed, match="the pattern cannot be used: ") as caught:
        toolkit.tools.tool_output_cache_grep(ref_id=ref, pattern=pattern, regex=True)
    assert caught.value.reason == "INVALID_REGEX"


# Whose refs


@pytest.mark.parametrize(
    "ref",
    ["", "1", "*", "..", "../../etc/passwd", "/etc/passwd", "key", REF, REF + "\n", "٣" * 32, "\0", "A" * 100_000],
)
def test_every_unknown_ref_gets_the_same_answer(cache: FileOutputCache, toolkit: Toolkit, ref: str) -> None:
    keep(cache, TEXT)

    for ask in (
        lambda: toolkit.tools.tool_output_cache(ref_id=ref),
        lambda: toolkit.tools.tool_output_cache_grep(ref_id=ref, pattern="error"),
    ):
        with pytest.raises(ToolFailed) as caught:
            ask()
        assert str(caught.value) == UNKNOWN


def test_a_ref_of_another_session_gets_that_answer_too(
    cache: FileOutputCache, toolkit: Toolkit, tmp_path: Path
) -> None:
    ref = keep(cache, TEXT)

    assert toolkit.tools.tool_output_cache(ref_id=ref).total_lines == 6
    with toolkit_over(tmp_path, cache, "another session") as other:
        with pytest.raises(ToolFailed) as caught:
            other.tools.tool_output_cache(ref_id=ref)
        assert str(caught.value) == UNKNOWN
        with pytest.raises(ToolFailed) as caught:
            other.tools.tool_output_cache_grep(ref_id=ref, pattern="error")
        assert str(caught.value) == UNKNOWN


def test_the_cache_of_a_toolkit_lies_in_its_state_directory(tmp_path: Path) -> None:
    state, workspace = tmp_path / "state", tmp_path / "workspace"
    workspace.mkdir()
    context = ToolkitContext(workspace, SecurityPolicy(default="allow"), session_id=SESSION, state_dir=state)
    ref = FileOutputCache(str(state / "outputs")).put(SESSION, TEXT, tool="bash")
    assert ref is not None

    for _ in range(2):
        with create_agent_toolkit(context) as toolkit:
            assert toolkit.tools.tool_output_cache(ref_id=ref).total_lines == 6


@pytest.mark.parametrize(
    "arguments",
    [{"offset": 0}, {"limit": 0}, {"offset": "1"}, {"limit": True}, {"ref_id": 7}, {"ref_id": None}, {"lines": 3}],
)
def test_refuses_arguments_its_schema_refuses(toolkit: Toolkit, arguments: ToolOutputCacheArgs) -> None:
    with pytest.raises(InvalidArguments):
        toolkit.invoke("tool_output_cache", {"ref_id": REF, **arguments})


class Late(CancelSignal):
    """Cancelled once it has been asked so often."""

    left = 20

    @property
    def cancelled(self) -> bool:
        self.left -= 1
        return self.left < 0


def test_a_search_can_be_cancelled(cache: FileOutputCache, toolkit: Toolkit) -> None:
    ref = keep(cache, b"line\n" * 2_000_000)

    with pytest.raises(ToolCancelled):
        toolkit.with_options(signal=Late()).tools.tool_output_cache_grep(ref_id=ref, pattern="nothing")


# What the model reads


@pytest.mark.parametrize(
    ("case", "data", "arguments", "budget"),
    [
        ("whole", "one\ntwo\n", {}, 40),
        ("part", "".join(f"line {number}\n" for number in range(1, 51)), {"offset": 11, "limit": 3}, 120),
        ("last", "".join(f"line {number}\n" for number in range(1, 51)), {"offset": 50}, 50),
        ("long_line", "x" * 5000 + "\nshort\n", {}, 2200),
        ("hidden", "\x1b[31mred\x1b[0m\r\n", {}, 60),
        ("past_the_end", "one\n", {"offset": 5}, 60),
        ("empty", "", {}, 40),
    ],
)
def test_shows_a_page(
    cache: FileOutputCache,
    toolkit: Toolkit,
    snapshots: Snapshots,
    case: str,
    data: str,
    arguments: ToolOutputCacheArgs,
    budget: int,
) -> None:
    message = toolkit.invoke("tool_output_cache", {**arguments, "ref_id": keep(cache, data)})

    snapshots.check(f"tool_output_cache/{case}", message.text(), budget=budget)


@pytest.mark.parametrize(
    ("case", "arguments", "budget"),
    [
        ("matches", {"pattern": "FAILED"}, 300),
        ("truncated", {"pattern": "ok", "max_matches": 2}, 160),
        ("around", {"pattern": "test_[37] ", "regex": True, "before": 1, "after": 2}, 220),
        ("around_apart", {"pattern": "FAILED", "before": 1, "max_matches": 2}, 200),
        ("none", {"pattern": "nowhere"}, 40),
    ],
)
def test_shows_matches(
    cache: FileOutputCache,
    toolkit: Toolkit,
    snapshots: Snapshots,
    case: str,
    arguments: ToolOutputCacheGrepArgs,
    budget: int,
) -> None:
    outcomes = ("FAILED" if number % 9 == 0 else "ok" for number in range(1, 101))
    ref = keep(cache, "".join(f"test_{number} ... {outcome}\n" for number, outcome in enumerate(outcomes, 1)))

    message = toolkit.invoke("tool_output_cache_grep", {**arguments, "ref_id": ref})

    snapshots.check(f"tool_output_cache_grep/{case}", message.text(), budget=budget)
