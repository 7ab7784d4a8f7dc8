"""Policies judged on what a call touches: the order of rules, paths, commands, shell text, hosts, files of rules."""

from __future__ import annotations

import itertools
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import tries
from toolkit.errors import PolicyError
from toolkit.guard import Permission, Preview, Rule, SecurityPolicy
from toolkit.guard.policy.commands import plain_commands

EXECUTE: tuple[Permission, ...] = ("execute",)
READ: tuple[Permission, ...] = ("read",)
WRITE: tuple[Permission, ...] = ("write",)
NETWORK: tuple[Permission, ...] = ("network",)


def shell(text: str, *rules: Rule[str], default: Any = "deny") -> str:
    return SecurityPolicy(default, rules=rules)._judge("bash", EXECUTE, Preview(shell=text)).decision


ALLOWED_LOG: list[Rule[str]] = [Rule("allow", command="git log"), Rule("allow", command="ls"), Rule("allow", command="find"), Rule("allow", command="wc"),
               Rule("allow", command="rg"), Rule("allow", command="sed"), Rule("allow", command="tar")]  # fmt: skip

PLAIN = ["git log", "git log -1 --oneline", "git log && ls", "ls | wc -l", "ls; git log", "ls || ls", "ls 'a b' \"c d\"", "find . -name x",
         "sed -n 1,5p a.txt", "rg pattern src", "tar tf a.tar", "  ls  ", "ls;"]  # fmt: skip


@pytest.mark.parametrize("text", PLAIN)
def test_plain_text_all_of_whose_parts_are_allowed(text: str) -> None:
    assert shell(text, *ALLOWED_LOG) == "allow"


NOT_COVERED = {
    66: ["git log; rm x", "git log && rm x", "git log || rm x", "git log | sh", "git log & rm x", "git log &"],
    67: ["git log\nrm x", "git log\rrm x", "git log\x0brm x"],
    68: ["git log $(rm x)", "git log `rm x`", "git log <(rm x)", "git log >(rm x)", "ls ${x@P}", "ls $x", "ls $'a'"],
    69: ["git log > x", "git log >> x", "git log < x", "ls << E", "ls <<< x", "ls 2>&1", "ls &> x"],
    70: ["git logout", "git-log", "gitlog"],
    71: ["X=1 git log", "env git log", "xargs git log", "nohup git log", "timeout 5 git log", "sudo git log", "sh -c 'git log'"],
    72: ["git log --output=x", "git -c core.pager=x log", "find . -exec rm x", "find . -delete", "rg --pre x p", "sed -i s/a/b/ f",
         "sed s/a/b/e f", "sed 'w out' f", "sed -n '1e id' f", "tar xf a.tar", "tar --to-command=sh -tf a", "find . -fprintf x y"],
    73: ["g'i't log", "g\\it log", "git$IFS log", "git {log,x}", "git() { rm x; }; git log", "'git' log", "\"git\" log", "~/git log"],
    74: ["./git log", "/tmp/git log", "bin/git log"],
    76: [" && ".join(["ls"] * 60 + ["rm x"])],
    0: ["", " ", ";", "ls &&", "&& ls", "ls ;; ls", "if ls", "! ls", "ls # x", "ls *", "ls ?", "ls [a]", "ls\u00a0x", "ls\tx", "ls \x00",
        "time ls", "{ ls; }", "( ls )", "ls |& wc", "ls a~b~"],
}  # fmt: skip


@pytest.mark.every_row
@pytest.mark.parametrize(("row", "text"), [(row, text) for row, texts in NOT_COVERED.items() for text in texts])
def test_text_no_allow_rule_covers(row: int, text: str) -> None:
    # With every git command allowed, its dangerous options still are not.
    rules = [*ALLOWED_LOG, Rule("allow", command="git")] if row == 72 else ALLOWED_LOG
    assert shell(text, *rules) == "deny"
    # The control: it is the rules that refuse, not the default.
    assert shell(text, default="allow") == "allow"


@pytest.mark.parametrize(
    "text",
    [
        "rm x",
        "/bin/rm x",
        "ls; rm x",
        "sudo rm x",
        "env -i rm x",
        "timeout 5 rm x",
        "echo $(id)",
        "ls > $x",
        "ls \\\nls",
    ],
)
def test_deny_and_ask_rules_match_text_that_cannot_be_read(text: str) -> None:
    assert shell(text, Rule("deny", command="rm"), default="allow") == "deny"
    assert shell(text, Rule("ask", command="rm"), default="allow") == "ask"


def test_deny_rules_leave_other_commands_alone() -> None:
    for text in ("ls rm", "rmdir x", "git rm x", "echo rm"):
        assert shell(text, Rule("deny", command="rm"), default="allow") == "allow"


def test_without_command_rules_text_is_not_parsed() -> None:
    assert shell("echo $(id) > x", Rule("deny", path="secrets/**"), default="allow") == "allow"


def argv(*words: str, rule: Rule[str]) -> str:
    return SecurityPolicy("deny", rules=[rule])._judge("exec_command", EXECUTE, Preview(argv=words)).decision


def test_argv_is_never_split() -> None:
    assert argv("git", "log", ";", "rm", "$(id)", rule=Rule("allow", command="git log")) == "allow"
    assert argv("git", "log; rm x", rule=Rule("allow", command="git log")) == "deny"
    assert argv("git log", rule=Rule("allow", command="git log")) == "deny"


def touched(policy: SecurityPolicy[str], *paths: str, writes: tuple[str, ...] = ()) -> str:
    return policy._judge("edit", WRITE, Preview(reads=paths, writes=writes)).decision


def test_a_path_of_which_only_the_text_is_known_is_also_compared_after_its_dots() -> None:
    policy: SecurityPolicy[str] = SecurityPolicy("allow", rules=[Rule("deny", path="secret/**")])
    for path in ("secret/k", "docs/../secret/k", "a/../../secret/k", "../secret/./k", "/docs/../secret/k"):
        assert touched(policy, path) == "deny", path
    for path in ("docs/k", "docs/../k", "..", "docs/../notes/secret/k"):
        assert touched(policy, path) == "allow", path


def test_path_rules() -> None:
    policy = SecurityPolicy[str](
        "deny", rules=[Rule("allow", path="src/**"), Rule("allow", path="*.md"), Rule("deny", path=".env*")]
    )
    assert [touched(policy, path) for path in ("src/a.py", "docs/a.md", "./src/x/y", "src")] == ["allow"] * 4
    for path in ("lib/a.py", "Src/a.py", "src/../secret", "srcs/a.py", "src/.env", "src/.ENV.local", "a/.env/b.md"):
        assert touched(policy, path) == "deny", path
    # Everything a call touches must be covered; anything denied is enough.
    assert touched(policy, "src/a.py", "b.md") == "allow"
    assert touched(policy, "src/a.py", writes=("lib/b.py",)) == "deny"
    assert touched(policy, "src/a.py", "src/.env") == "deny"
    assert touched(policy) == "deny"


def url(text: str, *rules: Rule[str], default: Any = "deny") -> str:
    return SecurityPolicy(default, rules=rules)._judge("webfetch", NETWORK, Preview(url=text)).decision


def test_host_rules_compare_labels() -> None:
    below = Rule[str]("allow", host="*.example.org")
    assert url("https://docs.example.org/x", below) == "allow"
    for text in ("https://example.org/", "https://evilexample.org/", "https://example.org.evil.net/", "https://x@docs.example.org/",
                 "https://docs.example.org\\@evil/", "file:///etc/passwd", "nonsense", "https://docs.example.org.evil/"):  # fmt: skip
        assert url(text, below) == "deny", text
    assert url("https://a.evil.net/", Rule("deny", host="*.evil.net"), default="allow") == "deny"
    assert url("not a url", Rule("deny", host="*.evil.net"), default="allow") == "deny"
    assert url("https://good.net/", Rule("deny", host="*.evil.net"), default="allow") == "allow"


def test_the_order_of_rules_does_not_matter() -> None:
    rules = [
        Rule("allow", tools=["edit"]),
        Rule("ask", path="src/**"),
        Rule("deny", path="src/secret/**", justification="keys live there"),
        Rule("allow", path="src/**"),
    ]
    for order in itertools.permutations(rules):
        policy = SecurityPolicy[str]("deny", {"list": "allow"}, order)
        assert [touched(policy, path) for path in ("a", "src/a", "src/secret/a")] == ["allow", "ask", "deny"]
        verdict = policy._judge("edit", WRITE, Preview(reads=("src/secret/a",)))
        assert verdict.because == "decided by Rule('deny', path='src/secret/**') (keys live there)"


def test_admission_by_name() -> None:
    def admitted(*rules: Rule[str], default: Any = "deny", tools: Any = None) -> str | None:
        verdict = SecurityPolicy(default, tools, rules)._admit("edit", WRITE)
        return None if verdict is None else verdict.decision

    assert admitted() == "deny"
    assert admitted(default="allow") == "allow"
    assert admitted(Rule("deny", path="x")) == "deny"
    assert admitted(Rule("deny", path="x"), default="allow") is None
    assert admitted(Rule("allow", path="x")) is None
    assert admitted(Rule("ask", path="x"), tools={"edit": "deny"}) is None
    assert admitted(Rule("deny", tools=["edit"]), Rule("allow", path="x"), default="allow") == "deny"
    assert admitted(Rule("deny", permission="write"), default="allow") == "deny"
    assert admitted(Rule("deny", permission="network"), default="allow") == "allow"
    assert admitted(Rule("allow", tools=[])) == "deny"


def test_optional_permissions_are_withheld_by_rules_that_speak_of_them() -> None:
    def withheld(*rules: Rule[str]) -> bool:
        return SecurityPolicy[str]("allow", rules=rules)._withholds("bash", "network")

    assert not withheld()
    assert withheld(Rule("deny", permission="network"))
    assert withheld(Rule("ask", permission="network"))
    assert withheld(Rule("deny", permission="network", host="*.example.org"))
    assert withheld(Rule("allow", permission="network"), Rule("deny", tools=["bash"], permission="network"))
    assert not withheld(Rule("allow", permission="network"))
    assert not withheld(Rule("deny", permission="write"))
    assert not withheld(Rule("deny", tools=["webfetch"], permission="network"))
    assert not withheld(Rule("deny", command="curl"))


WRONG_RULES: dict[str, tuple[dict[str, Any], str]] = {
    "decision": ({"decision": "maybe"}, "a rule's decision must be allow, ask or deny"),
    "permission": ({"decision": "deny", "permission": "fly"}, "'fly' is not a permission"),
    "tools as text": ({"decision": "deny", "tools": "edit"}, r"write tools = \['edit'\]"),
    "two conditions": (
        {"decision": "deny", "path": "x", "host": "y"},
        "a rule has only one condition, not path and host",
    ),
    "command with metacharacters": ({"decision": "deny", "command": "rm *"}, "must be one or more plain words"),
    "a word of the shell": (
        {"decision": "deny", "command": "time make"},
        "'time' is a word of the shell itself; name the program that it runs",
    ),
    "two commands": ({"decision": "allow", "command": "ls; ls"}, "must be one or more plain words"),
    "a runner allowed": ({"decision": "allow", "command": "xargs"}, "no rule can allow 'xargs'"),
    "empty path": ({"decision": "allow", "path": ""}, "a path rule needs a pattern"),
    "host that is none": ({"decision": "deny", "host": "*.*"}, "host pattern"),
    "example that does not match": (
        {"decision": "allow", "command": "git log", "match": ["git logout"]},
        "does not match its example",
    ),
    "example that matches": ({"decision": "deny", "path": "a/**", "not_match": ["A/b"]}, "matches its example 'A/b'"),
    "examples of nothing": ({"decision": "deny", "match": ["x"]}, "this rule has no such condition"),
}


@pytest.mark.parametrize("what", WRONG_RULES)
def test_rules_that_cannot_mean_what_they_say_are_refused(what: str) -> None:
    keys, words = WRONG_RULES[what]
    with pytest.raises(PolicyError, match=words):
        Rule(**keys)


def test_examples_are_checked() -> None:
    Rule(
        "allow",
        command="git log",
        match=["git log", "git log -1 | git log"],
        not_match=["git logout", "git log > x", "git log --output=x"],
    )
    Rule("deny", path=".env*", match=["a/.ENV"], not_match=["env"])
    Rule("allow", host="*.example.org", match=["a.example.org", "https://b.example.org/x"], not_match=["example.org"])


POLICY = """
default = "deny"

[tools]
read_file = "allow"
edit = "ask"

[[rules]]
decision = "deny"
path = "secrets/**"
justification = "keys"
match = ["secrets/a.pem"]

[[rules]]
decision = "allow"
tools = ["exec_command"]
command = "git log"
"""


def test_policy_files(tmp_path: Path) -> None:
    file = tmp_path / "policy.toml"
    file.write_text(POLICY)
    policy = SecurityPolicy[str].load(file)
    assert (policy.default, policy.tools, len(policy.rules)) == ("deny", {"read_file": "allow", "edit": "ask"}, 2)
    assert policy._judge("read_file", READ, Preview(reads=("secrets/x",))).decision == "deny"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("defualt = 'deny'", r"policy\.toml:1:1: unknown key 'defualt'\. Did you mean 'default'\?"),
        ("default = 'maybe'", "the decision for 'default' must be allow, ask or deny"),
        (
            "[[rules]]\ndecision = 'deny'\npaht = 'x'",
            r"policy\.toml:3:1: unknown key 'paht' in a rule\. Did you mean 'path'\?",
        ),
        ("[[rules]]\npath = 'x'", r"policy\.toml:1:1: a rule needs a decision"),
        ("[[rules]]\ndecision = 'deny'\ncommand = 'rm *'", r"policy\.toml:3:1: .*plain words"),
        ("rules = 3", "'rules' must be a list of tables"),
        ("tools = 3", "'tools' must be a table"),
        ("= nonsense", r"policy\.toml:1:1: not valid TOML: invalid statement"),
        ("x = " + "[" * 5000, "the policy cannot be read: .*nested"),
        ("default = ['allow']", "the decision for 'default' must be allow, ask or deny"),
        (
            "[tools]\nread_file = {}",
            "policy.toml:2:1: the decision for the tool 'read_file' must be allow, ask or deny",
        ),
        ("[[rules]]\ndecision = ['deny']", "policy.toml:2:1: the decision for a rule must be allow, ask or deny"),
        ("[[rules]]\ndecision = 'deny'\npermission = ['read']", "is not a permission"),
        *(
            (
                f"[[rules]]\ndecision = '{decision}'\n{key} = {value}",
                f"policy.toml:3:1: .*'{key}' must be a string",
            )
            for decision in ("allow", "deny")
            for key in ("path", "command", "host", "justification")
            for value in ("{}", "3", "['x']", "true")
        ),
        *(
            (f"[[rules]]\ndecision = 'deny'\npath = 'x'\n{key} = {value}", f"'{key}' must be a list of strings")
            for key in ("tools", "match", "not_match")
            for value in ("{}", "3", "[3]")
        ),
        ("[[rules]]\ndecision = 'deny'\npath = 'x'\nmatch = 'xx'", "'match' must be a list of strings"),
        ("", r"policy\.toml:1:1: the policy is empty"),
        ("default = 'deny'\n\ndefault = 'ask'", r"policy\.toml:3:1: this key is given twice; keep one of them"),
        ("[tools]\n[tools]", r"policy\.toml:2:1: this table is declared twice; join the two"),
        ("default = 'alow'", r"policy\.toml:1:1: .* not 'alow'\. Did you mean 'allow'\?"),
        (
            "[[rules]]\ndecision = 'deny'\npath = 'x'\nhost = 'a.example.org'",
            r"policy\.toml:4:1: a rule has only one condition",
        ),
        (
            "[[rules]]\ndecision = 'deny'\npath = 'x'\nmatch = ['y']",
            r"policy\.toml:4:1: .*does not match its example 'y'",
        ),
    ],
)
def test_mistakes_in_policy_files(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "policy.toml"
    file.write_text(text)
    with pytest.raises(PolicyError, match=words):
        SecurityPolicy[str].load(file)
    with pytest.raises(PolicyError, match="the policy cannot be read: No such file"):
        SecurityPolicy[str].load(tmp_path / "missing.toml")


BASH = ("bash", "--noprofile", "--norc", "-c")
LETTERS = st.text(st.sampled_from(list("ab '\"\\$`;&|<>(){}*?[]#~!=\n\t\x00\u00a0%^-/.")), max_size=24)
PLAIN = ["a", "b", "-a", "a/b", " ", " ", " ; ", " && ", " | ", "'a b'", '"a;b"']
# Words and signs that mean something to a shell, most of them only in certain places.
TOKENS = [
    "a", "b", "-a", "a/b", " ", "  ", "'a b'", '"a b"', "''", "'", '"', "\\", "if", "then", "fi", "{", "}", "!", "[[", "]]", "time", "coproc",
    "function", "case", "in", "esac", "select", "do", "done", "while", "until", "for", "a=b", "a+=b", "a[0]=b", "a()", "=", "~", "~/", "~+",
    "{a,b}", "{1..3}", "*", "?", "[", "]", "#", "$", "$a", "$(a)", "`", "&", "&&", "|&", "||", "|", ";", ";;", ";&", "<<<", "<", ">", "2>", "!!",
    "^", "%", "%1", "@", "+", ",", ":", ".", "\n", "\r", "\t", "\v", "\u00a0", "\u3000", "\N{LATIN SMALL LETTER E WITH ACUTE}",
]  # fmt: skip


@tries(300)
@given(LETTERS | st.lists(st.sampled_from(PLAIN) | st.sampled_from(TOKENS), max_size=12).map("".join))
@pytest.mark.slow
def test_text_that_is_taken_for_plain_is_read_as_a_shell_reads_it(text: str) -> None:
    """Whatever we call plain, bash must split into the same words."""
    commands = plain_commands(text)
    if commands is None:
        return
    script = "".join(f"printf '%s\\0' {part}; printf '\\1'\n" for part in _parts(text))
    done = subprocess.run([*BASH, script], capture_output=True, timeout=20)
    seen = [tuple(word.decode() for word in row.split(b"\0")[:-1]) for row in done.stdout.split(b"\1")[:-1]]
    assert seen == commands
    # And see no more structure in it: how bash itself writes the text down is plain again, and the same.
    written = subprocess.run([*BASH, f"f() {{ {text}\n}}; declare -f f"], capture_output=True, text=True, timeout=20)
    body = written.stdout.partition("{")[2].rpartition("}")[0]
    assert plain_commands(body.replace("\n", " ")) == commands


def _parts(text: str) -> list[str]:
    """The text split at its operators outside quotes; a real shell prints each part word by word."""
    parts, quote, current = [], "", ""
    for before, letter in zip(" " + text, text, strict=False):
        if quote:
            quote = "" if letter == quote else quote
        elif before == "\\":
            pass
        elif letter in "'\"":
            quote = letter
        elif letter in ";&|":
            parts.append(current)
            current = ""
            continue
        current += letter
    return [part for part in [*parts, current] if part.strip()]
