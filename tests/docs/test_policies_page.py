"""The page about policies: its file is loaded, its program runs, its commands print what it shows."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.cli.run_main import run_main
from tests.projects import REPOSITORY
from toolkit import Rule, SecurityPolicy, ToolkitContext, create_agent_toolkit
from toolkit.guard import Preview
from toolkit.guard.policy.policy_file import KEYS, RULE_KEYS

PAGE = (REPOSITORY / "docs/policies.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_the_program_runs_with_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    [policy, *_], [program] = blocks("toml"), blocks("python")
    (tmp_path / "policy.toml").write_text(policy)
    exec(compile(program, "docs/policies.md", "exec"), {"__name__": "policies"})


def test_the_second_file_allows_the_tool_that_it_names(tmp_path: Path) -> None:
    (tmp_path / "desk").mkdir()
    (tmp_path / "named.toml").write_text(blocks("toml")[1])
    context = ToolkitContext(tmp_path / "desk", SecurityPolicy.load(tmp_path / "named.toml"))
    with create_agent_toolkit(context) as toolkit:
        names = {definition.name for definition in toolkit.get_allowed_tools()}
    assert {"search_tools", "read_file"} <= names
    assert "describe_tools" not in names


@pytest.mark.slow
def test_the_commands_print_what_the_page_shows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "desk").mkdir()
    policy, _, narrow, wrong = blocks("toml")
    (tmp_path / "narrow.toml").write_text(narrow)
    (tmp_path / "policy.toml").write_text(policy)
    (tmp_path / "wrong.toml").write_text(wrong)
    sessions = [part for block in blocks("console") for part in block.split("$ ")[1:]]
    assert len(sessions) == 4
    for session in sessions:
        command, _, shown = session.partition("\n")
        ended = run_main(tmp_path, shlex.split(command)[1:], capsys)
        assert ended.out + ended.err == shown


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
