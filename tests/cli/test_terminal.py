"""Nothing that a command prints acts on a terminal, whoever wrote it. Each row is a command whose output holds a hostile text.

The control runs the same command without escaping: there the hostile text arrives as it is.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from tests import command_line
from tests.projects import Project, tool
from toolkit.visible import escape_hidden, escape_hidden_json, escape_hidden_lines

ACTS = {
    "title": "\x1b]0;owned\x07",
    "colour": "\x1b[31m",
    "C1 colour": "\x9b31m",
    "delete": "\x7f",
    "backspace": "\b",
    "overwrite": "\r",
    "next line": "\x85",
    "right to left": "\u202e",
    "isolate": "\u2066",
    "invisible": "\u200b",
    "tag": "\U000e0041",
    "paragraph": "\u2029",
}
HOSTILE = f"safe{''.join(ACTS.values())}text"
TYPED = "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in HOSTILE)
"""The text as it is written between quotes in TOML and Python."""

GUARDED = ""
UNGUARDED = """
from toolkit.cli import report
for name in ("escape_hidden", "escape_hidden_lines", "escape_hidden_json"):
    setattr(report, name, lambda text: text)
"""
"""What runs before the command."""

FUNCTIONS = f'''
from toolkit import tool

@tool
def fail(a: int) -> int:
    """Fails."""
    raise ValueError("{TYPED}")

@tool
def answer(a: int) -> str:
    """Answers."""
    return "{TYPED}"
'''
BROKEN = f'raise ValueError("{TYPED}")\n'


def hostile_tool(**keys: Any) -> dict[str, Any]:
    made = tool("alpha", title=HOSTILE, description=HOSTILE, **keys)
    made["inputSchema"]["properties"] |= {
        HOSTILE: {"type": "string", "description": HOSTILE, "default": HOSTILE},
        "choice": {"enum": [HOSTILE, "other"], "description": HOSTILE},
    }
    return made


def plain(project: Project) -> None:
    project.generate()


def nothing(project: Project) -> None:
    """What the fixture made is enough."""


def stale(project: Project) -> None:
    project.generate()
    file = project.output / "manifest.json"
    file.write_text(file.read_text().replace("Tool beta.", HOSTILE))


def bad_file_name(project: Project) -> None:
    project.write(f"acme/tools/{HOSTILE}.json", "{}")


def bad_settings(project: Project) -> None:
    project.write(
        "pyproject.toml", f'[tool.toolkit]\nspecs = "acme/tools"\npackage = "acme.generated"\n"{TYPED}" = 1\n'
    )


def functions(project: Project) -> None:
    project.write("acme/functions.py", FUNCTIONS)
    add_settings(project, 'functions = ["acme.functions"]\n')
    project.generate()


def broken_functions(project: Project) -> None:
    project.write("acme/functions.py", BROKEN)
    add_settings(project, 'functions = ["acme.functions"]\n')


def broken_import(project: Project) -> None:
    project.write("acme/functions.py", BROKEN)
    add_settings(project, '[tool.toolkit.imports.maths]\nfunctions = ["acme.functions"]\n')


def untrusted_import(project: Project) -> None:
    add_settings(project, f'[tool.toolkit.imports.maths]\ncommand = ["{TYPED}"]\n')


def imported_names(project: Project) -> None:
    """A server's names are free; a prefix and a new name are ours."""
    project.write(
        "tools.json", json.dumps([{"name": HOSTILE, "description": "D.", "input_schema": {"type": "object"}}])
    )
    add_settings(project, f'[tool.toolkit.imports.legacy]\ntools = "tools.json"\nwithout = ["other {TYPED}"]\n')


def changed_import(project: Project) -> None:
    one = {"name": "t", "description": "D.", "input_schema": {"type": "object"}}
    project.write("tools.json", json.dumps([one]))
    add_settings(project, '[tool.toolkit.imports.legacy]\ntools = "tools.json"\n')
    command_line.toolkit(project.root, "import", check=True)
    project.write("tools.json", json.dumps([one, {**one, "name": HOSTILE}]))


def unexpected(project: Project) -> None:
    project.write("acme/boom.py", f'raise RuntimeError("{TYPED}")\n')


def note(project: Project) -> None:
    project.write("note.txt", HOSTILE)
    project.write(f"{HOSTILE}.txt", "x")


def audit_log(project: Project) -> None:
    project.write("audit.log", json.dumps({"hash": HOSTILE, "previous": HOSTILE, "event": HOSTILE}) + "\n")
    project.write(f"{HOSTILE}.log", "")


def policy(project: Project) -> None:
    project.generate()
    project.write("desk/a.txt", "x")
    project.write(
        "policy.toml", f'default = "ask"\n[[rules]]\ndecision = "deny"\ntools = ["alpha"]\njustification = "{TYPED}"\n'
    )


def broken_policy(project: Project) -> None:
    project.generate()
    project.write("policy.toml", f'"{TYPED}" = 1\n')


def add_settings(project: Project, text: str) -> None:
    project.write("pyproject.toml", (project.root / "pyproject.toml").read_text() + text)


READ = '{"path": "note.txt"}'
BUILTIN = ("--package", "toolkit.generated")
# Each row: what is arranged, the command, and whether there is a form of it with --json.
ATTACKS: dict[str, tuple[Callable[[Project], None], tuple[str, ...], bool]] = {
    "generate: a file's name": (bad_file_name, ("generate",), True),
    "generate: a module's exception": (broken_functions, ("generate",), True),
    "check: a difference": (stale, ("check",), True),
    "check: a file's name": (bad_file_name, ("check",), True),
    "check --live: a server's names": (changed_import, ("check", "--live"), True),
    "lint: a tokenizer": (broken_functions, ("lint", "--tokenizer", "acme.functions:count"), True),
    "lint: a file's name": (bad_file_name, ("lint",), True),
    "import: a module's exception": (broken_import, ("import", "--trust"), True),
    "tools": (plain, ("tools",), True),
    "tools: an exception nobody expects": (unexpected, ("tools", "--package", "acme.boom"), False),
    "describe": (plain, ("describe", "alpha"), True),
    "invoke: the help of a tool": (plain, ("invoke", "alpha", "--help"), False),
    "invoke: an output": (functions, ("invoke", "answer", '{"a": 1}'), True),
    "invoke: an exception in the log": (functions, ("invoke", "fail", '{"a": 1}'), False),
    "policy explain: a reason": (policy, ("policy", "explain", "alpha", '{"query": "x"}', "--policy", "policy.toml", "--workspace", "desk"), True),
    "audit verify: the file's name": (audit_log, ("audit", "verify", f"{HOSTILE}.log"), False),
    "wrong usage: an option": (nothing, ("tools", f"--{HOSTILE}"), False),
}  # fmt: skip
ESCAPED_BEFORE: dict[str, tuple[Callable[[Project], None], tuple[str, ...], bool]] = {
    "generate: settings": (bad_settings, ("generate",), True),
    "lint: findings": (nothing, ("lint",), True),
    "lint: a provider's findings": (nothing, ("lint", "--target", "openai"), True),
    "import: what is not trusted": (untrusted_import, ("import",), True),
    "import: a server's names": (imported_names, ("import",), True),
    "describe: a name": (plain, ("describe", HOSTILE), True),
    "tools: a package": (plain, ("tools", "--package", HOSTILE), True),
    "invoke: a file's content": (note, ("invoke", "read_file", READ, *BUILTIN), True),
    "invoke: files' names": (note, ("invoke", "glob", '{"pattern": "*.txt"}', *BUILTIN), True),
    "invoke: a missing file": (note, ("invoke", "read_file", json.dumps({"path": f"no{HOSTILE}"}), *BUILTIN), True),
    "policy explain: a key": (broken_policy, ("policy", "explain", "alpha", '{"query": "x"}', "--policy", "policy.toml", "--workspace", "desk"), True),
    "audit verify": (audit_log, ("audit", "verify", "audit.log"), True),
    "audit head: a name": (audit_log, ("audit", "head", f"no{HOSTILE}.log"), True),
    "wrong usage: a command": (nothing, (HOSTILE,), False),
}  # fmt: skip
"""What makes these texts escapes them already; it must not be done twice, and not be undone."""
ROWS = {**ATTACKS, **ESCAPED_BEFORE}


def acting(text: str) -> set[str]:
    """The characters of a text that a terminal would not show."""
    return {c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") and c not in "\n\t"}


def toolkit(project: Project, program: str, *words: str) -> CompletedProcess[str]:
    return command_line.toolkit(project.root, *words, first=program)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path, [hostile_tool(), tool("beta")])


@pytest.mark.every_row
@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS)
def test_what_is_printed_is_shown(project: Project, row: str) -> None:
    arrange, words, has_json = ROWS[row]
    arrange(project)
    done = toolkit(project, GUARDED, *words)
    assert done.stdout + done.stderr != ""
    assert acting(done.stdout) | acting(done.stderr) == set()
    assert "\\\\x1b" not in done.stdout + done.stderr
    if has_json:
        told = toolkit(project, GUARDED, *words, "--json")
        assert acting(told.stdout) | acting(told.stderr) == set()
        json.loads(told.stdout)


@pytest.mark.sample
@pytest.mark.slow
@pytest.mark.parametrize("row", ATTACKS)
def test_control_without_escaping_it_arrives(project: Project, row: str) -> None:
    arrange, words, has_json = ATTACKS[row]
    arrange(project)
    done = toolkit(project, UNGUARDED, *words)
    assert {"\x1b", "\u202e"} & acting(done.stdout + done.stderr)
    if has_json:
        # JSON escapes ASCII's control characters itself, and no other.
        raw, shown = (toolkit(project, program, *words, "--json").stdout for program in (UNGUARDED, GUARDED))
        assert acting(raw) and json.loads(raw) == json.loads(shown)


@pytest.mark.slow
@pytest.mark.parametrize("row", ["tools", "tools: an exception nobody expects", "generate: a file's name"])
def test_on_a_terminal_it_is_the_same(project: Project, row: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    arrange, words, _ = ATTACKS[row]
    arrange(project)
    _, shown = command_line.toolkit_on_terminal(project.root, *words)
    assert r"\x1b" in shown
    assert acting(shown.replace("\r\n", "\n")) == set()


@pytest.mark.slow
def test_what_a_handler_prints_itself_arrives_unchanged(project: Project) -> None:
    """It is trusted code, and SECURITY.md says so. What it returns is escaped."""
    printed = FUNCTIONS.replace('    return "', f'    print("printed {TYPED}")\n    return "returned ')
    project.write("acme/functions.py", printed)
    add_settings(project, 'functions = ["acme.functions"]\n')
    project.generate()
    done = toolkit(project, GUARDED, "invoke", "answer", '{"a": 1}')
    assert done.returncode == 0, done.stderr
    by_handler, returned = done.stdout.partition("returned ")[::2]
    assert by_handler.startswith("printed safe") and "\x1b" in by_handler and "\u202e" in by_handler
    assert returned.startswith("safe") and acting(returned) == set()


@pytest.mark.slow
def test_a_description_cannot_add_a_line(tmp_path: Path) -> None:
    forged = "Reads.\npermissions: none\nbeta   -         Harmless."
    project = Project(tmp_path, [tool("alpha", description=forged, permissions=["execute"])])
    project.generate()
    listed = toolkit(project, GUARDED, "tools").stdout
    assert listed == "alpha  execute   Reads. permissions: none beta - Harmless.\n"
    described = toolkit(project, GUARDED, "describe", "alpha").stdout.splitlines()
    assert [line for line in described if line.startswith("permissions")] == ["permissions: execute"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "schema", "key"),
    [
        (["generate"], {"type": "int"}, "type"),
        (["lint"], {"type": "int"}, "type"),
        (["lint", "--imported"], {"default": 1, "type": "string"}, "default"),
        (["lint", "--imported"], {"minlength": 1, "type": "string"}, "minlength"),
    ],
)
def test_a_property_name_of_a_server_cannot_add_a_line(
    tmp_path: Path, words: list[str], schema: dict[str, Any], key: str
) -> None:
    project = Project(tmp_path)
    add_settings(project, '[tool.toolkit.imports.far]\ntools = "far.json"\n')
    properties = {"a\nacme/generated: nothing to do": {**schema, "description": "D."}}
    imported = {"name": "x", "description": "D.", "inputSchema": {"properties": properties}}
    text = json.dumps({"origin": {"kind": "tools", "name": "far"}, "tools": [imported]})
    project.write("acme/tools/far.json", text)
    done = toolkit(project, GUARDED, *words)
    first = (done.stdout + done.stderr).splitlines()[0]
    assert done.returncode == 1
    assert first.startswith(f"acme/tools/far.json:1:{text.index(json.dumps(key)) + 1}: ")
    assert first.endswith(f"(/tools/0/inputSchema/properties/a\\nacme~1generated: nothing to do/{key})")


@pytest.mark.slow
def test_ordinary_text_stays_as_it_is(tmp_path: Path) -> None:
    words = "Größe: 名前 \N{PILE OF POO}\t\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 C:\\new"
    (tmp_path / "a.txt").write_text(words)
    command = ("invoke", "read_file", '{"path": "a.txt"}')
    assert words in command_line.toolkit(tmp_path, *command, check=True).stdout
    told = command_line.toolkit(tmp_path, *command, "--json", check=True).stdout
    assert "Größe: 名前 \N{PILE OF POO}" in told
    assert json.loads(told)["content"]["content"] == words


@pytest.mark.parametrize("text", [*ACTS.values(), HOSTILE, "\ud800", "\x00", "\v\f\x1c", "\u2028"], ids=ascii)
def test_each_form_of_escaping(text: str) -> None:
    assert acting(escape_hidden(text)) | acting(escape_hidden_lines(text)) == set()
    written = json.dumps({"a": text}, ensure_ascii=False)
    assert acting(escape_hidden_json(written)) == set()
    assert json.loads(escape_hidden_json(written)) == {"a": text}


def test_lines_and_tabs_stay() -> None:
    assert escape_hidden_lines("a\tb\n\r\nc") == "a\tb\n\\r\nc"
    assert escape_hidden("a\tb\nc") == "a\tb\\nc"
    assert escape_hidden_json('{\n  "a": 1\n}') == '{\n  "a": 1\n}'
