"""Rules on commands through the tools that run them: other programs, directories, environment variables, explanations."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.builtin.commands import needs_a_sandbox, offline
from toolkit import Rule
from toolkit.errors import InvalidArguments, PolicyError, SandboxViolation, ToolNotAllowed
from toolkit.generated import SecurityPolicy


@pytest.fixture(autouse=True)
def _sandbox() -> None:
    needs_a_sandbox()


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    files = {
        "f": "text\n",
        "ok.sh": "#!/bin/sh\necho ok\n",
        "evil/ok.sh": "#!/bin/sh\ntouch pwned\n",
        "config/git/config": "[core]\n\tfsmonitor = touch pwned; false\n",
    }
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
        (tmp_path / name).chmod(0o755)
    subprocess.run(["tar", "cf", "x.tar", "f"], cwd=tmp_path, check=True)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    return tmp_path


def allow(*commands: str) -> SecurityPolicy:
    return SecurityPolicy(default="deny", rules=[Rule("allow", command=words) for words in commands])


def pwned(workspace: Path) -> bool:
    return any(workspace.rglob("pwned"))


HIDDEN = [["timeout", "5", "touch", "pwned"], ["sh", "-c", "touch pwned"], ["env", "-S", "touch pwned"], ["find", ".", "-exec", "touch", "pwned", ";"]]  # fmt: skip


@pytest.mark.parametrize("command", HIDDEN, ids=" ".join)
def test_a_denied_program_is_found_behind_wrappers(workspace: Path, command: list[str]) -> None:
    policy = SecurityPolicy(default="allow", rules=[Rule("deny", command="touch", justification="keep it clean")])
    with offline(workspace, policy) as toolkit:
        with pytest.raises(ToolNotAllowed, match="keep it clean"):
            toolkit.tools.exec_command(command=command)
        assert toolkit.tools.exec_command(command=["timeout", "5", "sh", "-c", "echo a"]).stdout == "a\n"
    assert not pwned(workspace)
    with offline(workspace) as toolkit:  # the control
        toolkit.tools.exec_command(command=command)
    assert pwned(workspace)


@pytest.mark.parametrize("cwd", ["evil", "./evil/", "ok/..", "{workspace}/evil"])
def test_the_directory_does_not_choose_what_an_allowed_name_runs(workspace: Path, cwd: str) -> None:
    (workspace / "ok").symlink_to("evil")
    place = cwd.format(workspace=workspace)
    with offline(workspace, allow("./ok.sh", "ls")) as toolkit:
        for act in (
            lambda: toolkit.tools.exec_command(command=["./ok.sh"], cwd=place),
            lambda: toolkit.tools.bash(command="./ok.sh", cwd=place),
        ):
            with pytest.raises(ToolNotAllowed, match="only in the workspace's own directory"):
                act()
        assert toolkit.tools.exec_command(command=["./ok.sh"]).stdout == "ok\n"
        assert toolkit.tools.exec_command(command=["./ok.sh"], cwd=str(workspace)).stdout == "ok\n"
        assert toolkit.tools.bash(command="./ok.sh", cwd="./").stdout == "ok\n"
        assert toolkit.tools.exec_command(command=["ls"], cwd="evil").stdout == "ok.sh\n"
    assert not pwned(workspace)


def test_and_would_have_chosen(workspace: Path) -> None:
    with offline(workspace) as toolkit:
        toolkit.tools.exec_command(command=["./ok.sh"], cwd="evil")
    assert pwned(workspace)


VARIABLES: dict[str, tuple[list[str], str]] = {
    "TAR_OPTIONS": (["tar", "tf", "x.tar"], "--checkpoint=1 --checkpoint-action=exec=./evil/ok.sh"),
    "XDG_CONFIG_HOME": (["git", "status"], "{workspace}/config"),
}


@pytest.mark.parametrize("variable", VARIABLES)
def test_variables_do_not_choose_what_an_allowed_program_runs(workspace: Path, variable: str) -> None:
    command, value = VARIABLES[variable]
    env = {variable: value.format(workspace=workspace)}
    with offline(workspace, allow("tar tf x.tar", "git status")) as toolkit:
        with pytest.raises(ToolNotAllowed, match=f"sets the environment variable '{variable}'"):
            toolkit.tools.exec_command(command=command, env=env)
        assert toolkit.tools.exec_command(command=command, env={"LC_ALL": "C", "CI": "1"}).exit_code == 0
    with offline(workspace) as toolkit, pytest.raises(SandboxViolation, match=variable):
        toolkit.tools.exec_command(command=command, env=env)
    assert not pwned(workspace)
    outside = {"PATH": os.environ["PATH"], **env}
    subprocess.run(command, cwd=workspace, env=outside, capture_output=True, timeout=30)  # the control
    assert pwned(workspace)


@pytest.mark.parametrize("name", ["CC", "CFLAGS", "CARGO_HOME", "PIP_INDEX_URL", "npm_config_cache", "GOFLAGS"])
def test_variables_that_builds_need_can_be_set_but_no_allow_rule_covers_them(workspace: Path, name: str) -> None:
    with offline(workspace) as toolkit:
        assert toolkit.tools.exec_command(command=["printenv", name], env={name: "x"}).stdout == "x\n"
    with offline(workspace, allow("printenv *")) as toolkit, pytest.raises(ToolNotAllowed, match=name):
        toolkit.tools.exec_command(command=["printenv", name], env={name: "x"})


def test_a_policy_explains_what_an_allow_rule_does_not_cover(workspace: Path) -> None:
    policy = allow("sort -u")
    with offline(workspace, policy) as toolkit:
        verdict = policy.explain("exec_command", {"command": ["sort", "-u", "-o", "f"]})
        assert (verdict.decision, policy.explain("bash", {"command": "sort -u"}).decision) == ("deny", "allow")
        # The arguments are not in what models read and audit logs keep.
        with pytest.raises(ToolNotAllowed, match="it covers only the words that it spells") as caught:
            toolkit.tools.exec_command(command=["sort", "-u", "-o", "f"])
        assert "-o" not in str(caught.value)
    because = "the policy's default is deny (Rule('allow', command='sort -u'): it covers only the words that it spells)"
    assert (verdict.because, verdict.exact_rule) == (because, "sort -u -o f")
    with offline(workspace, allow(verdict.exact_rule or "")) as toolkit:
        assert toolkit.tools.exec_command(command=["sort", "-u", "-o", "f"]).exit_code == 0


def test_a_command_that_is_too_long_is_refused_before_it_is_parsed(workspace: Path) -> None:
    """The rules refuse before the limit on a command's length is reached; without rules, the limit refuses."""
    command = ["env", *["a"] * 600_000]
    policy = SecurityPolicy(default="allow", rules=[Rule("deny", command="touch")])
    with offline(workspace, policy) as toolkit, pytest.raises(ToolNotAllowed, match="touch"):
        toolkit.tools.exec_command(command=command)
    with offline(workspace) as toolkit, pytest.raises(InvalidArguments, match="must not be longer"):
        toolkit.tools.exec_command(command=command)


def test_the_directory_of_a_command_is_not_a_path_that_a_rule_allows(workspace: Path) -> None:
    policy = SecurityPolicy(default="deny", rules=[Rule("allow", tools=["bash"], path="evil/**")])
    with pytest.raises(PolicyError, match="declares no path"):
        offline(workspace, policy)


def test_tools_see_nothing_of_the_marks(workspace: Path) -> None:
    with offline(workspace) as toolkit:
        shown = [tool for tool in toolkit.get_allowed_tools() if tool.name in ("bash", "exec_command")]
    assert "x-resource" not in str(shown)
