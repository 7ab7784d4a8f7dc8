"""Shell text as the policy reads it: only what bash and dash read in the same way."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import tries
from tests.shells import PROGRAMS, Shell, is_run_by
from toolkit.guard.policy.shell_text import Word, read_shell

WORDS = ["a", "b", "git", "-a", "a.b", "1", "2", "12", "{}", "a=b", "b=", "HEAD~1", "'a b'", '"a b"', "''", '""', "a'b'", 'a"b"\'c\'', "\\a", "a\\ b", "\\'", '"\\$a"',
         '"\\a"', "'\\'", "a#b", "!", "^", "@{u}", "a@{0}", "[", "]", "%1", "+x", "*", "a*", "'*'", "[ab]", "?", "~", "~/a", "a~b", "$a", "${a}", '"$a"', '"a $b c"',
         "$1", "$?", "$(a)", '"$(b c)"', '"a $(b "c d")"', "$(a $(b))", "`a b`", '"`a`"', '"a$"', '"$ $/$|$.$,$)"', "a:b", "a,b", ".", ":", "A=~", "a=$(b)", "b='c d'"]  # fmt: skip
OPERATORS = [" ", "  ", " ; ", ";", " && ", "&&", " || ", " | ", "|", "\n", " \n ", " \\\n ", ">", " >", " > ", ">>", "<", " 2>", "2>&1", " 2>&1 ", ">&2", " >/dev/null ", "&>",
             " 2>/dev/null", ">|", "\t"]  # fmt: skip
# What means something only in certain places, or to some shells only.
SIGNS = ["'", '"', "\\", "$", "`", "#", " # a\n", "#a\n", "{", "}", "{a,b}", "{1..3}", "(", ")", "&", " & ", "|&", ";;", "!!", "<<", "<<<", "<<a\n", "<(a)", ">(a)", "<>", "$(", "$((1))",
         "${a:-b}", "${a", "$'a'", '$"a"', "if", "then", "fi", "do", "done", "for", "in", "case", "esac", "time", "function", "coproc", "select", "while", "until", "[[", "]]",
         "a()", "a+=b", "a[0]=b", "=a", "=", "10>", "{a}>", "2", "\\\n", "\r", "\v", "\0", "\u00a0", "\u3000", "\N{LATIN SMALL LETTER E WITH ACUTE}", "'\N{LATIN SMALL LETTER E WITH ACUTE}'",
         "&>>", ">&", ">&a", "<&0", "-", "~a", "+(a)", "!(a)", "@(a|b)", "$a[0]", "\t", "\x01", "a\\", "exec", "eval", "set"]  # fmt: skip
TEXTS = st.lists(
    st.sampled_from(WORDS) | st.sampled_from(OPERATORS) | st.sampled_from(SIGNS), min_size=1, max_size=12
).map("".join) | st.lists(
    st.tuples(st.sampled_from(WORDS), st.sampled_from(OPERATORS)).map("".join), min_size=1, max_size=8
).map("".join)


READ: list[tuple[str, list[tuple[Word, ...]]]] = [
    ("git log -1 && ls src | wc -l", [("git", "log", "-1"), ("ls", "src"), ("wc", "-l")]),
    ("git diff $(git merge-base main HEAD) x", [("git", "merge-base", "main", "HEAD"), ("git", "diff", None, "x")]),
    ('a "b $(c "d e") `f`" \'g $h\'', [("c", "d e"), ("f",), ("a", None, "g $h")]),
    ("a>b c 2>&1 </dev/null >&2", [("a", "c")]),
    ("# a\na # b\n\n", [("a",)]),
    ("a \\\n  b", [("a", "b")]),
    ('a \'b\nc\' "d\\"\\e$"', [("a", "b\nc", 'd"\\e$')]),
    ("find . ! -name a -exec b {} \\;", [("find", ".", "!", "-name", "a", "-exec", "b", "{}", ";")]),
]


@pytest.mark.parametrize(("text", "commands"), READ)
def test_commands_are_read_word_by_word(text: str, commands: list[tuple[Word, ...]]) -> None:
    read = read_shell(text)
    assert read is not None
    assert [command.words for command in read] == commands


def test_assignments_and_redirections_are_told_apart() -> None:
    read = read_shell("A=1 B='x y' C=$(d) a E=2 2>f >>'g h' <$i >/dev/null 2>&1")
    assert read is not None
    assert read[-1].assigned == ("A=1", "B=x y", None)
    assert read[-1].words == ("a", "E=2")
    assert read[-1].redirects == (("2>", "f"), (">>", "g h"), ("<", None))


UNREADABLE = [
    "", " ", "a &", "a & b", "a |& b", "a ;; b", "; a", "a &&", "a | | b", "( a )", "{ a; }", "a )", "a $(b", "a `b", "a 'b", 'a "b', "a() { b; }", "function a { b; }",
    "if a; then b; fi", "for a in b; do c; done", "while a; do b; done", "time a", "! a", "[[ a ]]", "coproc a", "do", "a {b,c}", "a {1..3}", "a b{", "a $'b'", 'a $"b"', "a ${b:-c}", "a ${b@P}",
    "a $((1))", "a $[1]", "a <(b)", "a >(b)", "a << b", "a <<< b", "a <> b", "a >&b", "a 10>b", "a {b}>c", "a >", "a > b=c", "a+=b", "a[0]=b", "a=(b c)", "=a", "a =b", "'a' b", "a'b' c", "\\a b",
    "a\\\nb", "a +(b)", "a @(b|c)", "a\rb", "a \vb", "a \x01", "a '\x00'", "a\u00a0b", "a \u3000b", "a \N{LATIN SMALL LETTER E WITH ACUTE}", "a $", "%1", "a \"`b \"c\"`\"", "a `b \\`c\\``", "*", "a* b",
    "$(" * 9 + "a" + ")" * 9, "a" * 200_000, "a '\ud800'", "a $(b $(c)", "a $()",
]  # fmt: skip


@pytest.mark.every_row
@pytest.mark.parametrize("text", UNREADABLE, ids=lambda text: ascii(text)[:30])
def test_what_shells_may_read_otherwise_is_unreadable(text: str) -> None:
    assert read_shell(text) is None


@pytest.fixture(scope="module", params=["bash", "dash"])
def shell(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Shell:
    return Shell(request.param, tmp_path_factory.mktemp("shell"))


def check(shell: Shell, name: str, text: str) -> None:
    commands = read_shell(text)
    if commands is None:
        return
    programs = [command.words[0] for command in commands if command.words]
    # dash reads `&>` as `&` and `>`, and its builtins cannot be replaced.
    if name == "dash" and ("&>" in text or not all(word in PROGRAMS for word in programs)):
        return
    seen, files = shell.run(text)
    for argv in seen:
        assert any(is_run_by(command, argv) for command in commands), (text, argv, commands)
    # A redirection or a program that is not there may fail, and then what follows does not run.
    if all(command.words and not command.redirects and _is_recorded(command.words[0], name) for command in commands):
        for command in commands:
            assert any(is_run_by(command, argv) for argv in seen), (text, command, seen)
    targets = [target for command in commands for _, target in command.redirects]
    is_known = all(isinstance(target, str) for target in targets)
    assert not is_known or all(file in targets for file in files), (text, files, targets)


def _is_recorded(program: Word, shell: str) -> bool:
    if not isinstance(program, str):
        return False
    return program in PROGRAMS if shell == "dash" else "/" not in program


@tries(1200)
@given(TEXTS)
def test_a_shell_runs_what_was_read(shell: Shell, text: str) -> None:
    check(shell, shell.name, text)


def test_and_would_show_a_wrong_reading(shell: Shell) -> None:
    """The control: words that are only split at blanks."""
    seen, _ = shell.run("a 'b c' \\d")
    assert seen[0] == ("a", "b c", "d")
    with pytest.raises(AssertionError, match="yntax error"):
        shell.run("a )")
