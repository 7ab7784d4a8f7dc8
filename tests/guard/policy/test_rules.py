"""Policies judged on what a call touches: the order of rules, paths, commands, shell text, hosts, files of rules."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from toolkit.errors import PolicyError
from toolkit.guard import Permission, Preview, Rule, SecurityPolicy

EXECUTE: tuple[Permission, ...] = ("execute",)
READ: tuple[Permission, ...] = ("read",)
WRITE: tuple[Permission, ...] = ("write",)
NETWORK: tuple[Permission, ...] = ("network",)


def shell(text: str, *rules: Rule[str], default: Any = "deny") -> str:
    return SecurityPolicy(default, rules=rules)._judge("bash", EXECUTE, Preview(shell=text)).decision


ALLOWED_LOG: list[Rule[str]] = [
    Rule("allow", command=f"{words} *") for words in ("git log", "ls", "find", "wc", "rg", "sed", "tar")
]

READABLE = ["git log", "git log -1 --oneline", "git log && ls", "ls | wc -l", "ls; git log", "ls || ls", "ls 'a b' \"c d\"", "find . -name x",
            "sed -n 1,5p a.txt", "rg pattern src", "tar tf a.tar", "  ls  ", "ls;", "ls\tx", "git log\nls", "ls 2>&1", "ls 2>/dev/null", "ls # x",
            "ls *", "ls [a]?", "ls $x ~/y {a,b}/c", "ls a~b~ HEAD^ {} '\u00a0'", "ls $(git log -1 | wc -l) `wc x`", 'ls "$(git log "$(ls)")"', "cd src/a && cd 'b c' && ls", "ls \\\n  x",
            "ls 'a\nb' '*' \"it's\""]  # fmt: skip


@pytest.mark.parametrize("text", READABLE)
def test_text_all_of_whose_parts_are_allowed(text: str) -> None:
    assert shell(text, *ALLOWED_LOG) == "allow"


NOT_COVERED = {
    66: ["git log; rm x", "git log && rm x", "git log || rm x", "git log | sh", "git log & rm x", "git log &"],
    67: ["git log\nrm x", "git log\rrm x", "git log\x0brm x"],
    68: ["git log $(rm x)", "git log `rm x`", "git log <(rm x)", "git log >(rm x)", "ls ${x@P}", "ls $'a'", 'ls "$(ls $(rm x))"', 'ls "`rm x`"', "ls ${x:=a}", "ls $((x))",
         "$(echo ls)", "$x", "ls $(", 'ls $"a"'],
    69: ["git log > x", "git log >> x", "git log < x", "ls << E", "ls <<< x", "ls &> x", "ls 2> x", "ls >$x", "> x", "ls 2>&1 >x", "ls >&x", "ls <> x"],
    70: ["git logout", "git-log", "gitlog", "git LOG"],
    71: ["X=1 git log", "env git log", "xargs git log", "nohup git log", "timeout 5 git log", "sudo git log", "sh -c 'git log'", "X=1", "PATH=.; ls", "X=$(rm x) ls"],
    73: ["g'i't log", "g\\it log", "git$IFS log", "git {log,x}", "git() { rm x; }; git log", "'git' log", "\"git\" log", "~/git log", "git \\\nlog\\\nout"],
    74: ["./git log", "/tmp/git log", "bin/git log"],
    75: ["alias ls=rm; ls", "export PATH=.; ls", "hash -p rm ls; ls", "set x; ls", "cd", "cd - && ls", "cd ~ && ls", "cd / && ls", "cd .. && ls", "cd a/../.. && ls", "cd *; ls", "cd $x && ls", "X=1 cd x && ls", "CDPATH=x; cd y && ls"],
    76: [" && ".join(["ls"] * 60 + ["rm x"])],
    0: ["", " ", ";", "ls &&", "&& ls", "ls ;; ls", "if ls", "! ls", "ls\u00a0x", "ls \x00", "time ls", "{ ls; }", "( ls )", "ls |& wc", "[[ ls ]]", "ls =wc", "ls 10>x",
        "for x in a; do ls; done", "%1"],
}  # fmt: skip


@pytest.mark.every_row
@pytest.mark.parametrize(("row", "text"), [(row, text) for row, texts in NOT_COVERED.items() for text in texts])
def test_text_no_allow_rule_covers(row: int, text: str) -> None:
    assert shell(text, *ALLOWED_LOG) == "deny"
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
        "ls &",
        "echo $X",
        "X=rm; ls",
        "ls > rm",
    ],
)
def test_deny_and_ask_rules_match_text_that_cannot_be_read(text: str) -> None:
    assert shell(text, Rule("deny", command="rm"), default="allow") == "deny"
    assert shell(text, Rule("ask", command="rm *"), default="allow") == "ask"


def test_deny_rules_leave_other_commands_alone() -> None:
    for text in ("rmdir x", "ls rm.txt --rm", "ls \\\nls", "echo 'rms'", "pytest -q 2>&1 | tail -5", "FOO=1 ls *"):
        assert shell(text, Rule("deny", command="rm"), default="allow") == "allow"


def test_without_command_rules_text_is_not_parsed() -> None:
    assert shell("echo $(id) > x", Rule("deny", path="secrets/**"), default="allow") == "allow"


def argv(*words: str, rule: Rule[str]) -> str:
    return SecurityPolicy("deny", rules=[rule])._judge("exec_command", EXECUTE, Preview(argv=words)).decision


def test_argv_is_never_split() -> None:
    assert argv("git", "log", ";", "rm", "$(id)", rule=Rule("allow", command="git log *")) == "allow"
    assert argv("git", "log; rm x", rule=Rule("allow", command="git log *")) == "deny"
    assert argv("git log", rule=Rule("allow", command="git log *")) == "deny"


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
    "command with a variable": ({"decision": "deny", "command": "rm $x"}, "must not have variables"),
    "command with a tilde": ({"decision": "allow", "command": "ls ~/x"}, "must not have variables or '~'"),
    "command without a program": ({"decision": "allow", "command": "* --version"}, "write its program out"),
    "an assignment alone": ({"decision": "allow", "command": "X=1"}, "must be one command"),
    "a redirection denied": ({"decision": "deny", "command": "ls > x"}, "leave out assignments and redirections"),
    "command as a list": (
        {"decision": "allow", "command": ["git", "log", "a b"]},
        """write command = "git log 'a b'"$""",
    ),
    "a word of the shell": (
        {"decision": "deny", "command": "time make"},
        "'time' is a word of the shell itself; name the program that it runs",
    ),
    "two commands": ({"decision": "allow", "command": "ls; ls"}, "must be one command such as"),
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
        command="git log *",
        match=["git log", "git log -1 | git log"],
        not_match=["git logout", "git log > x", "git -c x=y log"],
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
        ("[[rules]]\ndecision = 'deny'\ncommand = 'rm; ls'", r"policy\.toml:3:1: .*one command such as"),
        (
            "[[rules]]\ndecision = 'allow'\ncommand = ['git', 'log']",
            r"policy\.toml:3:1: a rule's 'command' must be a string: write command = \"git log\"$",
        ),
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
            for value in ("{}", "3", "['x']", "true", "[]")
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
