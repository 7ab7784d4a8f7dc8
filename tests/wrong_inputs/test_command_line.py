"""Wrong commands, options, arguments, policy files, names of projects and audit logs: ``snapshots/command_line.txt``.

Through the real entry point, which words wrong usage. ``pytest tests/wrong_inputs --update-snapshots`` rewrites the text; read
the diff as the person who made the mistake.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.cli.run_main import run_main

SNAPSHOT = Path(__file__).parent / "snapshots" / "command_line.txt"
RULE = '[[rules]]\ndecision = "deny"\n'
CHECK = ("policy", "check", "../policy.toml")

POLICIES: Mapping[str, str] = {
    "policy: empty": "",
    "policy: only a comment": "# later\n",
    "policy: not TOML": "default: deny\n",
    "policy: text without an end": 'default = "deny\n',
    "policy: misspelt key": 'defualt = "deny"\n',
    "policy: unknown key": 'default = "deny"\ncolour = "red"\n',
    "policy: a key given twice": 'default = "deny"\n[tools]\nbash = "ask"\nbash = "deny"\n',
    "policy: a table given twice": '[tools]\nbash = "ask"\n\n[tools]\ndone = "allow"\n',
    "policy: misspelt decision": 'default = "alow"\n',
    "policy: decision that is a number": "default = 1\n",
    "policy: decision that is true": "[tools]\nread_file = true\n",
    "policy: tools as a list": 'tools = ["read_file"]\n',
    "policy: unknown tool": '[tools]\nraed_file = "allow"\n',
    "policy: tool of another package": '[tools]\npublish_report = "deny"\n',
    "policy: text without quotes": "default = deny\n",
    "policy: unknown tool in a rule": f'{RULE}tools = ["bash", "gerp"]\n',
    "policy: rules as one table": '[rules]\ndecision = "deny"\n',
    "policy: rule without a decision": '[[rules]]\npath = "secrets/**"\n',
    "policy: misspelt key in a rule": f'{RULE}pth = "secrets/**"\n',
    "policy: path that is a list": f'{RULE}path = ["a", "b"]\n',
    "policy: bad glob": f'{RULE}path = "../x"\n',
    "policy: a path at home": f'{RULE}path = "~/secrets/**"\n',
    "policy: empty glob": f'{RULE}path = ""\n',
    "policy: command with a variable": f'{RULE}command = "rm $x"\n',
    "policy: two commands": f'{RULE}command = "rm x; ls"\n',
    "policy: command as a list": f'{RULE}command = ["git", "log"]\n',
    "policy: bad host": f'{RULE}host = "https://example.org/"\n',
    "policy: unknown permission": f'{RULE}permission = "fly"\n',
    "policy: unknown hint": f'{RULE}hint = "dangerous"\n',
    "policy: hint that allows": '[[rules]]\ndecision = "allow"\nhint = "destructive"\n',
    "policy: two conditions": f'{RULE}path = "a"\nhost = "b.example.org"\n',
    "policy: tools of a rule as text": f'{RULE}tools = "bash"\n',
    "policy: example that does not match": f'{RULE}path = "secrets/**"\nmatch = ["public/a"]\n',
    "policy: example that matches": f'{RULE}path = "secrets/**"\nnot_match = ["secrets/a"]\n',
    "policy: examples without a condition": f'{RULE}match = ["a"]\n',
    "policy: path rule for a tool without paths": f'{RULE}tools = ["done"]\npath = "a"\n',
    "policy: several mistakes": 'default = "no"\n[tools]\nbash = 1\n[[rules]]\nx = 1\n',
}
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "command: misspelt": ("genrate",),
    "command: unknown": ("frobnicate",),
    "command: misspelt in a group": ("policy", "exlpain"),
    "option: misspelt": ("tools", "--jsn"),
    "option: of another program": ("generate", "--froce"),
    "option: short and unknown": ("invoke", "read_file", "--c", "1"),
    "option: unknown": ("tools", "--frobnicate"),
    "option: without its value": ("tools", "--package"),
    "option: not a choice": ("lint", "--target", "nobody"),
    "argument: missing": ("describe",),
    "argument: one too many": ("describe", "read_file", "grep"),
    "tool: misspelt": ("describe", "raed_file"),
    "tool: unknown": ("describe", "frobnicate"),
    "tools: no such word": ("tools", "frobnicate"),
    "package: unknown": ("tools", "--package", "no.such"),
    "package: not a generated one": ("tools", "--package", "json"),
    "invoke: missing option": ("invoke", "read_file"),
    "invoke: missing options": ("invoke", "edit", "--path", "a"),
    "invoke: misspelt option": ("invoke", "read_file", "--pth", "a"),
    "invoke: not an integer": ("invoke", "read_file", "--path", "a", "--start-line", "x"),
    "invoke: not a choice": ("invoke", "grep", "--pattern", "a", "--output", "fils"),
    "invoke: not an object": ("invoke", "exec_command", "--command", "ls", "--env", "LANG=C"),
    "invoke: out of range": ("invoke", "read_file", "--path", "a.txt", "--start-line", "0"),
    "invoke: not JSON": ("invoke", "read_file", "{"),
    "invoke: a value without its option": ("invoke", "read_file", "a.txt"),
    "invoke: an object of Python": ("invoke", "read_file", "{'path': 'a.txt'}"),
    "invoke: JSON and options, not JSON": ("invoke", "read_file", "path", "--start-line", "3"),
    "invoke: not a JSON object": ("invoke", "read_file", "[]"),
    "invoke: not JSON, for a script": ("invoke", "read_file", "a.txt", "--json"),
    "invoke: unknown key": ("invoke", "read_file", '{"paht": "a"}'),
    "invoke: options before the tool": ("invoke", "--path", "a", "read_file"),
    "invoke: no such workspace": ("invoke", "list", "--workspace", "nowhere"),
    "invoke: no such file": ("invoke", "read_file", "--path", "b.txt"),
    "invoke: outside the workspace": ("invoke", "read_file", "--path", "../policy.toml"),
    "init: keyword": ("init", "class"),
    "init: standard library": ("init", "typing"),
    "init: ours": ("init", "toolkit"),
    "init: installed": ("init", "pydantic"),
    "init: not a name": ("init", "2fast"),
    "init: a space": ("init", "my tools"),
    "init: a dash at the end": ("init", "tools-"),
    "init: not ASCII": ("init", "größe"),
    "init: the current folder": ("init", "."),
    "init: no such parent": ("init", "nowhere/stall"),
    "init: folder that is not empty": ("init", "full"),
    "init: a file": ("init", "a.txt"),
    "audit: not a log": ("audit", "head", "a.txt"),
    "audit: another JSON file": ("audit", "verify", "other.json"),
    "audit: a folder": ("audit", "show", "full"),
    "audit: missing": ("audit", "verify", "nowhere.jsonl"),
    "audit: wrong head": ("audit", "verify", "empty.jsonl", "--head", "x"),
    "policy: missing file": ("policy", "check", "nowhere.toml"),
    "policy: a folder": ("policy", "check", "full"),
    "policy: inside the workspace": ("policy", "explain", "read_file", "--path", "a", "--policy", "inside.toml"),
    "policy: not given": ("policy", "explain", "read_file", "--path", "a"),
    "policy: not UTF-8": ("policy", "check", "latin.toml"),
}
ROWS = {**dict.fromkeys(POLICIES, CHECK), **COMMANDS}


def render(folder: Path, name: str, capsys: pytest.CaptureFixture[str]) -> str:
    workspace = folder / "workspace"
    (workspace / "full").mkdir(parents=True)
    (workspace / "full" / "x").write_text("")
    (workspace / "a.txt").write_text("one\n")
    (workspace / "other.json").write_text('{"hash": 1}\n')
    (workspace / "empty.jsonl").write_text("")
    (workspace / "inside.toml").write_text('default = "deny"\n')
    (workspace / "latin.toml").write_bytes(b'default = "deny"\n# caf\xe9\n')
    (folder / "policy.toml").write_text(POLICIES.get(name, ""))
    ended = run_main(workspace, list(ROWS[name]), capsys)
    assert ended.code in (1, 2), ended
    lines = [
        f"## {name}",
        f"$ {shlex.join(['toolkit', *ROWS[name]])}",
        *(ended.out + ended.err).splitlines(),
        f"exit {ended.code}",
    ]
    return "\n".join(lines) + "\n"


@pytest.mark.slow
def test_the_text_of_each_mistake(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], pytestconfig: pytest.Config
) -> None:
    texts = []
    for number, name in enumerate(ROWS):
        folder = tmp_path / str(number)
        folder.mkdir()
        texts.append(render(folder, name, capsys))
    text = "\n".join(texts)
    if pytestconfig.getoption("--update-snapshots"):
        SNAPSHOT.write_text(text, encoding="utf-8")
    assert text == SNAPSHOT.read_text(encoding="utf-8"), (
        "run pytest tests/wrong_inputs --update-snapshots and read the diff"
    )
