"""``describe_tools`` and ``search_tools``: what they tell is what the policy may allow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from toolkit import SecurityPolicy, Toolkit, ToolkitContext, ToolNotAllowed, ToolNotFound, create_agent_toolkit


@pytest.fixture
def toolkit(tmp_path: Path) -> Iterator[Toolkit]:
    policy = SecurityPolicy(
        default="deny",
        tools={"describe_tools": "allow", "search_tools": "allow", "read_file": "allow", "grep": "allow"},
    )
    with create_agent_toolkit(ToolkitContext(tmp_path, policy)) as made:
        yield made


def test_a_model_reads_the_same_text_as_the_program_around_it(toolkit: Toolkit) -> None:
    message = toolkit.invoke("describe_tools", {"names": ["read_file", "grep"]})
    assert message.text() == message.content.signatures == toolkit.signatures(["grep", "read_file"])


def test_a_tool_that_is_not_allowed_is_not_described(toolkit: Toolkit) -> None:
    with pytest.raises(ToolNotAllowed, match="'write_file' is not allowed: the policy's default is deny"):
        toolkit.tools.describe_tools(names=["read_file", "write_file"])


def test_an_unknown_tool_is_not_described(toolkit: Toolkit) -> None:
    with pytest.raises(ToolNotFound, match=r"unknown tool 'grpe'\. Did you mean 'grep'\?"):
        toolkit.tools.describe_tools(names=["grpe"])


def test_matches_are_read_as_lines(toolkit: Toolkit) -> None:
    message = toolkit.invoke("search_tools", {"query": "search text files", "limit": 2})
    assert [match.name for match in message.content.matches] == ["grep", "search_tools"]
    assert message.text() == "\n".join(f"{match.name}: {match.summary}" for match in message.content.matches)


def test_a_tool_that_is_not_allowed_is_not_found(toolkit: Toolkit) -> None:
    assert toolkit.tools.search_tools(query="write_file").matches[0].name != "write_file"
    assert toolkit.invoke("search_tools", {"query": "subagent"}).text() == (
        "No tool has these words. Try other words for what the tool should do."
    )
