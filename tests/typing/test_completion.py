"""What an editor offers while a call is typed, asked of pyright's language server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.projects import REPOSITORY
from tests.typing.language_server import LanguageServer
from toolkit.generated import TOOL_NAMES

pytestmark = [pytest.mark.xdist_group("typing"), pytest.mark.whole]  # the language server takes ten seconds

HEAD = """from toolkit.generated import AsyncToolkit, ReadFileArgs, SecurityPolicy, Toolkit


async def edited(toolkit: Toolkit, async_toolkit: AsyncToolkit) -> None:
    """


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LanguageServer]:
    folder: Path = tmp_path_factory.mktemp("edited")
    settings = {"pythonVersion": "3.11", "extraPaths": [str(REPOSITORY)]}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    with LanguageServer(folder) as started:
        yield started


def labels(server: LanguageServer, code: str) -> list[str]:
    return [offer.label.strip('"') for offer in server.complete(HEAD + code)]


@pytest.mark.parametrize("toolkit", ["toolkit", "await async_toolkit"])
def test_names_of_tools_come_first(server: LanguageServer, toolkit: str) -> None:
    assert labels(server, f'{toolkit}.invoke("|')[: len(TOOL_NAMES)] == sorted(TOOL_NAMES)


@pytest.mark.parametrize("toolkit", ["toolkit", "await async_toolkit"])
def test_keys_of_the_named_tool(server: LanguageServer, toolkit: str) -> None:
    assert labels(server, f'{toolkit}.invoke("read_file", {{"|"}})') == ["max_bytes", "max_lines", "path", "start_line"]
    assert labels(server, f'{toolkit}.invoke("read_file", {{"path": "x", "|"}})') == [
        "max_bytes", "max_lines", "start_line",
    ]  # fmt: skip
    assert labels(server, f'{toolkit}.invoke("done", {{"|') == ["message"]


def test_keys_are_documented(server: LanguageServer) -> None:
    # In a list of keys pyright shows their types only; it shows what is written at the field where the type is called.
    assert "File to read, relative to the workspace." in server.hover(HEAD + 'ReadFileArgs(pa|th="x")')


def test_tools_come_before_the_names_of_every_object(server: LanguageServer) -> None:
    offered = labels(server, "toolkit.tools.|")
    assert offered[: len(TOOL_NAMES)] == sorted(TOOL_NAMES)
    assert all(name.startswith("_") for name in offered[len(TOOL_NAMES) :])


def test_arguments_of_a_method(server: LanguageServer) -> None:
    assert labels(server, "toolkit.tools.read_file(|)")[:4] == ["max_bytes=", "max_lines=", "path=", "start_line="]


def test_attributes_of_an_output_with_their_documentation(server: LanguageServer) -> None:
    offers = server.complete(HEAD + 'toolkit.invoke("read_file", {"path": "x"}).content.|')
    by_label = {offer.label: offer.documentation for offer in offers}
    assert "Number of lines in content." in by_label["line_count"]
    assert [offer.label for offer in offers][:3] == ["bom", "clipped_lines", "content"]


def test_a_policy(server: LanguageServer) -> None:
    assert labels(server, 'SecurityPolicy(tools={"|": "allow"})') == sorted(TOOL_NAMES)
    assert labels(server, 'SecurityPolicy(tools={"read_file": "|"})') == ["allow", "ask", "deny"]
