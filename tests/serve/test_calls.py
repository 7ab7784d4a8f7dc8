"""Calls of a client: what it lists, what a model reads, typed content, media, progress, cancellation, long outputs."""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from tests.guard.process.test_ends import wait_for
from tests.serve.clients import ERAS, Running, serving, talk, text_of
from tests.serve.conftest import fill
from toolkit import generated

pytestmark = pytest.mark.slow

READING = [
    "git_status_summary", "glob", "grep", "list", "read_file", "todoread", "todowrite", "tool_output_cache",
    "tool_output_cache_grep", "tree",
]  # fmt: skip
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("calls")


@pytest.fixture
def workspace(folder: Path) -> Path:
    """The folder of the shared servers, with one file in it."""
    fill(folder)
    return folder


@pytest.fixture(scope="module")
def full(folder: Path) -> Iterator[Running]:
    with serving("--workspace", str(folder), "--preset", "full") as server:
        yield server


@pytest.fixture(scope="module")
def reading(folder: Path) -> Iterator[Running]:
    with serving("--workspace", str(folder), "--preset", "read-only") as server:
        yield server


@pytest.mark.parametrize(
    ("preset", "others"),
    [
        ("read-only", []),
        ("edit", ["apply_patch", "edit", "write_file"]),
        (
            "full",
            [
                "apply_patch",
                "bash",
                "describe_tools",
                "edit",
                "exec_command",
                "run_program",
                "search_tools",
                "webfetch",
                "write_file",
            ],
        ),
    ],
)
def test_a_preset_offers_the_tools_it_says(workspace: Path, preset: str, others: list[str]) -> None:
    async def names(client: Client) -> list[str]:
        return [tool.name for tool in (await client.list_tools()).tools]

    assert talk(names, "--workspace", str(workspace), "--preset", preset) == sorted([*READING, *others])


def test_a_tool_is_listed_with_both_schemas_and_hints_that_fit_its_permissions(
    full: Running, workspace: Path, era: Any
) -> None:
    async def tools(client: Client) -> dict[str, types.Tool]:
        return {tool.name: tool for tool in (await client.list_tools()).tools}

    listed = full.talk(tools, mode=era)
    row = generated.CATALOG.definitions["read_file"]
    found = listed["read_file"]
    assert found.title == row["title"] and found.output_schema == row["outputSchema"]
    assert found.input_schema["properties"].keys() == row["inputSchema"]["properties"].keys()
    assert "x-resource" not in str(found.input_schema)

    def hints(name: str) -> tuple[bool | None, ...]:
        given = listed[name].annotations
        assert given is not None
        return given.read_only_hint, given.destructive_hint, given.open_world_hint

    assert hints("read_file") == (True, False, False)
    assert hints("edit") == (False, True, False)
    assert hints("exec_command") == (False, True, True)


def test_a_call_has_the_text_that_a_model_reads_and_the_typed_output(
    reading: Running, workspace: Path, era: Any
) -> None:
    async def read(client: Client) -> types.CallToolResult:
        return await client.call_tool("read_file", {"path": "a.txt"})

    result = reading.talk(read, mode=era)
    assert not result.is_error and "     1\tone" in text_of(result)
    typed = generated.ReadFileOutput.model_validate(result.structured_content)
    assert typed.content == "one\ntwo\n" and typed.total_lines == 2


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("read_flie", {}, "TOOL_NOT_FOUND: unknown tool 'read_flie'. Did you mean 'read_file'?"),
        ("read_file", {"pth": "a.txt"}, "INVALID_TOOL_ARGUMENTS: path: required argument is missing; pth: unknown argument."),
        ("read_file", {"path": "b.txt"}, "TOOL_FAILED: NOT_FOUND: "),
        ("read_file", {"path": "../policy.toml"}, "SANDBOX_VIOLATION: "),
        ("write_file", {"path": "a.txt", "content": ""}, "TOOL_NOT_ALLOWED: "),
        ("exec_command", {"command": ["true"]}, "TOOL_NOT_ALLOWED: "),
    ],
)  # fmt: skip
def test_what_fails_is_a_result_that_a_model_can_act_on(
    reading: Running, workspace: Path, name: str, arguments: dict[str, Any], text: str
) -> None:
    async def call(client: Client) -> types.CallToolResult:
        return await client.call_tool(name, arguments)

    result = reading.talk(call)
    assert result.is_error and text_of(result).startswith(text)
    assert (workspace / "a.txt").read_text() == "one\ntwo\n"


def test_media_are_content(reading: Running, workspace: Path, era: Any) -> None:
    (workspace / "dot.png").write_bytes(PIXEL)

    async def read(client: Client) -> types.CallToolResult:
        return await client.call_tool("read_file", {"path": "dot.png"})

    result = reading.talk(read, mode=era)
    images = [block for block in result.content if isinstance(block, types.ImageContent)]
    assert [(image.mime_type, base64.b64decode(image.data)) for image in images] == [("image/png", PIXEL)]


def test_progress_of_a_command_arrives_before_its_result(full: Running, workspace: Path, era: Any) -> None:
    (workspace / "go").write_text("")

    async def run(client: Client) -> tuple[list[tuple[float, str]], str]:
        seen: list[tuple[float, str]] = []

        async def note(progress: float, total: float | None, message: str | None) -> None:
            seen.append((progress, message or ""))
            if message == "begun\n":  # the first event shows the command, this one what it printed
                (workspace / "go").unlink()

        command = "echo begun; while [ -e go ]; do sleep 0.05; done; echo over"
        result = await client.call_tool("bash", {"command": command}, progress_callback=note)
        return seen, text_of(result)

    seen, text = full.talk(run, mode=era)
    assert "begun\n" in [message for _, message in seen] and "over" in text
    assert [progress for progress, _ in seen] == sorted({progress for progress, _ in seen})


def test_a_cancelled_call_ends_its_command_and_the_server_goes_on(full: Running, workspace: Path, era: Any) -> None:
    async def run(client: Client) -> str:
        started = asyncio.Event()

        async def note(progress: float, total: float | None, message: str | None) -> None:
            if message == "begun\n":
                started.set()

        command = "echo begun; sleep 4321.25"
        call = asyncio.create_task(
            client.call_tool("bash", {"command": command, "timeout_ms": 600000}, progress_callback=note)
        )
        begun = asyncio.create_task(started.wait())
        await asyncio.wait({begun, call}, return_when=asyncio.FIRST_COMPLETED)
        assert begun.done(), call.result()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        # The next command waits for nothing: the sandbox of the first one is gone, and so are its processes.
        seen = await client.call_tool("bash", {"command": "pgrep -x sleep || echo none"})
        return text_of(seen)

    assert "none" in full.talk(run, mode=era)
    wait_for(lambda: _count_sleepers() == 0, "the command to end")


def _count_sleepers() -> int:
    """Processes of the cancelled command that are still alive, seen from outside of every sandbox."""
    wanted = b"sleep\x004321.25\x00"
    files = Path("/proc").glob("[0-9]*/cmdline")
    return sum(_read(file) == wanted for file in files)


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""


def test_a_long_output_is_a_resource_that_can_be_read_by_lines(full: Running, workspace: Path, era: Any) -> None:
    async def run(client: Client) -> None:
        result = await client.call_tool("bash", {"command": "seq 1 20000"})
        links = [block for block in result.content if isinstance(block, types.ResourceLink)]
        assert len(links) == 1 and len(text_of(result)) < 60_000
        uri = links[0].uri
        assert [resource.uri for resource in (await client.list_resources()).resources] == [uri]
        assert (
            (await client.list_resource_templates()).resource_templates[0].uri_template.startswith("toolkit-output:///")
        )

        def lines(contents: Any) -> list[str]:
            text: str = contents.contents[0].text
            return text.splitlines()

        assert lines(await client.read_resource(f"{uri}?offset=500&limit=3")) == ["500", "501", "502"]
        whole = await client.read_resource(uri)
        assert lines(whole) == [str(number) for number in range(1, 20_001)] and len(whole.contents) == 1

    full.talk(run, mode=era)


def test_a_resource_larger_than_an_answer_says_where_to_go_on(full: Running, workspace: Path) -> None:
    async def run(client: Client) -> None:
        # One line in the middle is longer than an answer.
        command = "seq 1 40000; head -c 200000 /dev/zero | tr '\\0' x; echo; seq 40002 60000"
        result = await client.call_tool("bash", {"command": command})
        uri = next(block.uri for block in result.content if isinstance(block, types.ResourceLink))
        text, numbers = "", 0
        while uri:
            read = await client.read_resource(uri)
            part, *note = [item.text for item in read.contents if isinstance(item, types.TextResourceContents)]
            following = re.search(r"read (\S+) for the lines from", note[0]) if note else None
            uri = following[1] if following else ""
            cut = bool(note) and "the rest of line 40001 is too long to be shown" in note[0]
            text += f"{len(part)} of a long line\n" if cut else part
            numbers += 1
        before, after = (
            "".join(f"{number}\n" for number in some) for some in (range(1, 40_001), range(40_002, 60_001))
        )
        assert text == f"{before}131072 of a long line\n{after}".rstrip() and numbers == 4

    full.talk(run)


@pytest.mark.parametrize(
    ("uri", "says"),
    [
        ("file:///etc/passwd", "unknown resource"),
        ("toolkit-output:///AAAA", "output"),
        ("toolkit-output:///AAAA?offset=0", "'offset' is wrong"),
        ("toolkit-output:///AAAA?page=1", "'page' is wrong"),
    ],
)
def test_other_resources_do_not_exist(reading: Running, workspace: Path, uri: str, says: str) -> None:
    async def read(client: Client) -> str:
        with pytest.raises(MCPError) as caught:
            await client.read_resource(uri)
        return str(caught.value)

    assert says in reading.talk(read)


def test_programs_run_where_the_policy_allows_them(full: Running, workspace: Path) -> None:
    source = 'text = tools.read_file(path="a.txt").content\ntext.split()'

    async def run(client: Client) -> tuple[str, str]:
        right = await client.call_tool("run_program", {"source": source})
        wrong = await client.call_tool("run_program", {"source": source.replace("content", "contents")})
        return text_of(right), text_of(wrong)

    right, wrong = full.talk(run)
    assert '["one","two"]' in right.replace(" ", "").replace("\n", "")
    assert "line 1" in wrong and "contents" in wrong


def test_a_package_of_ones_own_is_served_the_same_way(tmp_path: Path) -> None:
    from tests.projects import DOWNSTREAM

    async def names(client: Client) -> set[str]:
        return {tool.name for tool in (await client.list_tools()).tools}

    options = ("--workspace", str(tmp_path), "--preset", "edit", "--package", "acme.generated")
    assert {"read_file", "edit"} < talk(names, *options, folder=DOWNSTREAM)


def test_a_tool_that_declares_nothing_is_not_said_to_read_only(tmp_path: Path) -> None:
    from tests.projects import DOWNSTREAM

    async def tools(client: Client) -> dict[str, types.Tool]:
        return {tool.name: tool for tool in (await client.list_tools()).tools}

    workspace, policy = tmp_path / "workspace", tmp_path / "policy.toml"
    workspace.mkdir()
    policy.write_text('[tools]\n"library_lend-book" = "allow"\n')
    options = ("--workspace", str(workspace), "--package", "acme.generated")
    for preset in ("read-only", "edit"):
        assert "library_lend-book" not in talk(tools, *options, "--preset", preset, folder=DOWNSTREAM)
    listed = talk(tools, *options, "--policy", str(policy), folder=DOWNSTREAM)
    annotations = listed["library_lend-book"].annotations
    assert annotations is None or annotations.read_only_hint is None
