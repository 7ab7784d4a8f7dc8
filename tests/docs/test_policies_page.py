"""The page about policies: what its files promise, and that it explains every key. ``test_pages.py`` runs it."""

from __future__ import annotations

import re
from pathlib import Path

from tests.guard.ways import needs
from tests.projects import REPOSITORY
from toolkit import Rule, SecurityPolicy, ToolCall, ToolkitContext, create_agent_toolkit
from toolkit.guard import Preview
from toolkit.guard.policy.policy_file import KEYS, RULE_KEYS

PAGE = (REPOSITORY / "docs/policies.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def files() -> dict[str, str]:
    """The page's files by their names."""
    return {text.partition("\n")[0].removeprefix("# "): text for text in blocks("toml")}


def test_the_second_file_allows_the_tool_that_it_names(tmp_path: Path) -> None:
    (tmp_path / "desk").mkdir()
    (tmp_path / "named.toml").write_text(files()["named.toml"])
    context = ToolkitContext(tmp_path / "desk", SecurityPolicy.load(tmp_path / "named.toml"))
    with create_agent_toolkit(context) as toolkit:
        names = {definition.name for definition in toolkit.get_allowed_tools()}
    assert {"search_tools", "read_file"} <= names
    assert "describe_tools" not in names


def test_the_policy_for_tests_keeps_its_promise(tmp_path: Path) -> None:
    """It edits `src`, runs the tests, and never sees `.env`; in at most eight lines."""
    needs("full")
    text = files()["tests.toml"].partition("\n")[2]
    assert len(text.splitlines()) <= 8
    (tmp_path / "tests.toml").write_text(text)
    desk = tmp_path / "desk"
    (desk / "src").mkdir(parents=True)
    (desk / ".env").write_text("KEY=1")
    (desk / "test_it.py").write_text("")
    with create_agent_toolkit(ToolkitContext(desk, SecurityPolicy.load(tmp_path / "tests.toml"))) as tk:
        assert tk.tools.write_file(path="src/a.py", content="a = 1\n").created
        assert tk.tools.read_file(path="src/a.py").content
        assert tk.call(ToolCall("1", "bash", {"command": "pytest -q"})).kind != "error"
        for name, arguments in (
            ("write_file", {"path": "test_it.py", "content": ""}),
            ("read_file", {"path": ".env"}),
            ("bash", {"command": "cat .env"}),
        ):
            assert "NOT_ALLOWED" in str(tk.call(ToolCall("1", name, arguments)).value)


def test_every_key_is_explained() -> None:
    for key in (*KEYS, *RULE_KEYS):
        assert re.search(rf"^\| .*`\[?\[?{key}\]?\]?`", PAGE, re.MULTILINE), key


def test_the_table_of_commands_is_right() -> None:
    table = PAGE.partition("| rule | covers | does not cover |")[2].partition("\n\n")[0]
    rows = [line.split("|")[1:4] for line in table.splitlines()[2:]]
    assert len(rows) == 7
    for rule, covered, others in rows:
        policy = SecurityPolicy("deny", rules=[Rule("allow", command=rule.strip(" `"))])
        for cell, decision in ((covered, "allow"), (others, "deny")):
            for command in re.findall(r"`(.+?)`", cell):
                assert policy._judge("bash", ["execute"], Preview(shell=command)).decision == decision, command
