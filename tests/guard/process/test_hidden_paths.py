"""Path rules as commands obey them: what a rule hides cannot be opened by any command, what it keeps cannot be changed."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.guard import nobody
from tests.guard.ways import FULL, SANDBOXED, Way, guard_in
from toolkit.errors import ToolNotAllowed
from toolkit.guard import ProcessGuard
from toolkit.guard.files.consent import PathLimit

SECRET = "the secret"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    for name in ("secret/k", "secret/deep/k", "app/.env", "app/main.py", "docs/a.md", "a/b/keys/k"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"open: {name}" if name.endswith((".py", ".md")) else f"{SECRET} of {name};")
    return folder


def hiding(guard: ProcessGuard, *patterns: str) -> ProcessGuard:
    return guard.with_limits(tuple(PathLimit(pattern, f"the rule on {pattern}") for pattern in patterns))


def output(guard: ProcessGuard, text: str) -> str:
    result = guard.shell(text)
    return (result.stdout + result.stderr).decode()


COVERED = {
    pattern: [f"{SECRET} of {name};" for name in names.split()]
    for names, patterns in [
        ("secret/k secret/deep/k", ["secret/**", "secret", "secret/", "/secret/**", "SECRET/**"]),
        ("secret/k secret/deep/k a/b/keys/k", ["**/k"]),
        ("app/.env", [".env*", "app/.env"]),
        ("a/b/keys/k", ["a/b/keys/**", "a/*/keys/**", "**/keys/k", "**/b/**/k"]),
        ("secret/k secret/deep/k app/.env a/b/keys/k", ["**"]),
    ]
    for pattern in patterns
}
# Each reads the secret where no rule hides it.
WAYS_TO_READ = [
    ("secret/**", "cat secret/k"),
    ("secret/**", "cat secret/deep/k"),
    ("secret", "cat secret/k"),
    ("secret/", "cat secret/k"),
    ("/secret/**", "cat secret/k"),
    ("**/k", "cat secret/deep/k"),
    ("SECRET/**", "cat secret/k"),
    (".env*", "cat app/.env"),
    ("app/.env", "cat app/.env"),
    ("a/b/keys/**", "cat a/b/keys/k"),
    ("a/*/keys/**", "cat a/b/keys/k"),
    ("**", "cat secret/k"),
    ("secret/**", "cd secret && cat k"),
    ("secret/**", "grep -r . secret"),
    ("secret/**", "ln -s secret/k link; cat link"),
    ("secret/**", "ln secret/k hard; cat hard"),
    ("secret/**", "cp -r secret copy; cat copy/k"),
    ("secret/**", "mv secret moved; cat moved/k"),
    ("a/b/keys/**", "mv a/b c; cat c/keys/k"),
    ("a/b/keys/**", "mv a c; cat c/b/keys/k"),
    ("**/keys/k", "mv a/b/keys c; cat c/k"),
    ("**/b/**/k", "mv a/b c; cat c/keys/k"),
    ("app/.env", "mv app/.env x; cat x"),
    ("app/.env", "mv app x; cat x/.env"),
    ("secret/**", "chmod -R 777 secret; cat secret/k"),
    ("secret/**", "umount secret; cat secret/k"),
    ("secret/**", "python3 -c \"print(open('secret/k').read())\""),
    ("secret/**", "cat /proc/self/cwd/secret/k"),
    ("secret/**", "cat $PWD/secret/k"),
    ("secret/**", "tar c secret | tar xO"),
]


@pytest.mark.every_row
@pytest.mark.parametrize(("pattern", "text"), WAYS_TO_READ)
@pytest.mark.parametrize("way", FULL)
def test_what_a_rule_hides_is_not_read(workspace: Path, way: Way, pattern: str, text: str) -> None:
    with guard_in(way, workspace) as guard:
        found = output(hiding(guard, pattern), text)
        assert not [secret for secret in COVERED[pattern] if secret in found]
        # What the first command left behind helps no second one.
        left = output(hiding(guard, pattern), f"{text}; cat */k */*/k */*/*/k .env */.env link hard x; grep -r . .")
        assert not [secret for secret in COVERED[pattern] if secret in left]
    assert (workspace / "secret/k").read_text() == f"{SECRET} of secret/k;"


@pytest.mark.every_row
@pytest.mark.parametrize(("pattern", "text"), WAYS_TO_READ)
def test_the_control_reads_it(workspace: Path, pattern: str, text: str) -> None:
    if "umount" in text or "ln secret" in text:
        text = text.partition(";")[2].replace("hard", "secret/k")
    with guard_in("full", workspace) as guard:
        found = output(guard, text)
        assert [secret for secret in COVERED[pattern] if secret in found]


@pytest.mark.parametrize("way", FULL)
def test_what_no_rule_covers_is_used_as_before(workspace: Path, way: Way) -> None:
    with guard_in(way, workspace) as guard:
        guard = hiding(guard, "secret/**", ".env*")
        result = guard.shell(
            "cat app/main.py docs/a.md && echo new > app/new && mv docs/a.md docs/b.md && rm app/main.py && mv docs d"
        )
        assert result.exit_code == 0, result.stderr
        assert result.stdout.decode() == "open: app/main.pyopen: docs/a.md"
    assert (workspace / "app/new").read_text() == "new\n"
    assert sorted(os.listdir(workspace / "d")) == ["b.md"]


@pytest.mark.parametrize("way", FULL)
def test_the_result_says_how_many_paths_were_hidden_and_by_which_rule(workspace: Path, way: Way) -> None:
    with guard_in(way, workspace) as guard:
        result = hiding(guard, "secret/**", "k", ".env*").shell("true")
        assert [(one.number, one.because) for one in result.hidden] == [
            (1, "the rule on secret/**"),
            (1, "the rule on k"),
            (1, "the rule on .env*"),
        ]
        assert str(result.hidden[0]) == "1 path by the rule on secret/**"
        assert hiding(guard, "nothing/**").shell("true").hidden == ()


@pytest.mark.parametrize("way", FULL)
def test_a_link_with_a_hidden_name_is_not_followed(workspace: Path, way: Way) -> None:
    (workspace / "app/real").write_text(SECRET)
    (workspace / "app/.env.local").symlink_to("real")
    (workspace / "dangling.env").symlink_to("nowhere")
    with guard_in(way, workspace) as guard:
        assert SECRET in output(guard, "cat app/.env.local")
        assert SECRET not in output(hiding(guard, ".env*", "*.env"), "cat app/.env.local; cat < app/.env.local")
    assert not (workspace / "nowhere").exists()


@pytest.mark.parametrize("way", FULL)
def test_a_rule_whose_path_leads_through_a_link_hides_the_real_place(workspace: Path, way: Way) -> None:
    (workspace / "current").symlink_to("a/b")
    with guard_in(way, workspace) as guard:
        assert SECRET in output(guard, "cat current/keys/k")
        for text in ("cat current/keys/k", "cat a/b/keys/k", "rm current; cat a/b/keys/k"):
            assert SECRET not in output(hiding(guard, "current/keys/**"), text)


@pytest.mark.parametrize("way", FULL)
def test_a_rule_on_what_is_in_a_directory_hides_it_also_if_that_is_a_link(workspace: Path, way: Way) -> None:
    (workspace / "current").symlink_to("secret")
    with guard_in(way, workspace) as guard:
        for text in ("cat current/k", "cat secret/k"):
            assert SECRET in output(guard, text)
            for pattern in ("current/**", "current/*", "current/k"):
                assert SECRET not in output(hiding(guard, pattern), text)


def test_a_name_that_begins_with_an_exclamation_mark_is_a_name(workspace: Path) -> None:
    (workspace / "app/!x").mkdir()
    (workspace / "app/!x/k").write_text(SECRET)
    with guard_in("full", workspace) as guard:
        assert SECRET not in output(hiding(guard, "app/!x/k"), "cat app/*/k")


def test_links_in_a_circle_take_no_time(workspace: Path) -> None:
    for number in range(60):
        (workspace / f"l{number}").symlink_to(".")
    with guard_in("full", workspace) as guard:
        assert SECRET not in output(hiding(guard, "*/*/*/*/*/k"), "cat l1/l2/l3/secret/k")


@pytest.mark.parametrize("way", FULL)
def test_rules_hold_in_other_roots_and_by_absolute_paths(tmp_path: Path, workspace: Path, way: Way) -> None:
    other = tmp_path / "other"
    (other / "secret").mkdir(parents=True)
    (other / "secret/k").write_text(SECRET)
    (tmp_path / "name").symlink_to("ws")
    for roots in ("read_roots", "write_roots"):
        with guard_in(way, tmp_path / "name", **{roots: [str(other)]}) as guard:  # type: ignore[arg-type]
            assert SECRET in output(guard, f"cat {other}/secret/k")
            for pattern in ("secret/**", f"{other}/secret/**", "k"):
                assert SECRET not in output(hiding(guard, pattern), f"cat {other}/secret/k")
            for pattern in (f"{workspace}/secret/**", f"{tmp_path}/name/secret/**"):
                assert SECRET not in output(hiding(guard, pattern), "cat secret/k")


@pytest.mark.parametrize("way", FULL)
def test_what_a_rule_keeps_is_read_and_not_changed(workspace: Path, way: Way) -> None:
    limits = (PathLimit("docs/**", "a rule", hides=False), PathLimit("docs/hidden", "another"))
    (workspace / "docs/hidden").write_text(SECRET)
    with guard_in(way, workspace) as guard:
        guard = guard.with_limits(limits)
        for text in (
            "echo x > docs/a.md",
            "echo x > docs/new",
            "mv docs/a.md x",
            "rm -rf docs",
            "mv docs x",
            "chmod 0 docs/a.md",
        ):
            assert guard.shell(text).exit_code != 0
        assert output(guard, "cat docs/a.md").startswith("open: docs/a.md")
        assert SECRET not in output(guard, "cat docs/hidden")
        assert guard.shell("echo x > app/new").exit_code == 0
    assert sorted(os.listdir(workspace / "docs")) == ["a.md", "hidden"]


@pytest.mark.parametrize("pattern", ["**", "*", "{}/**"])
@pytest.mark.parametrize("way", FULL)
def test_where_a_rule_keeps_everything_nothing_is_made(workspace: Path, way: Way, pattern: str) -> None:
    other = workspace.with_name("other")
    other.mkdir()
    subprocess.run(["git", "init", "--quiet", workspace], check=True)
    with guard_in(way, workspace, write_roots=[str(other)]) as guard:
        guard = guard.with_limits((PathLimit(pattern.format(workspace), "a rule", hides=False), PathLimit("k", "one")))
        for text in ("echo x > new", "mkdir folder", "touch app/x", "touch .git/x", "rm -rf .git"):
            assert "Read-only file system" in output(guard, text)
        assert SECRET not in output(guard, "cat docs/a.md secret/k; echo x > $TMPDIR/x")
        assert (guard.shell(f"echo x > {other}/new").exit_code == 0) == pattern.startswith("{")
    assert sorted(os.listdir(workspace)) == [".git", "a", "app", "docs", "secret"]


@pytest.mark.parametrize("way", FULL)
def test_an_approved_path_is_there_and_nothing_beside_it(workspace: Path, way: Way) -> None:
    limits = (PathLimit("secret/**", "a rule", asks=True), PathLimit(".env*", "another"))
    place = tuple(str(workspace / "secret/k").strip("/").split("/"))
    with guard_in(way, workspace) as guard:
        guard = guard.with_limits(limits, approved={limits[0]: [place]})
        assert output(guard, "cat secret/k").startswith(SECRET)
        assert SECRET not in output(guard, "cat secret/deep/k app/.env")
        # An approval lifts no rule that denies.
        denying = PathLimit("secret/**", "a rule")
        denied = guard.with_limits((denying,), approved={denying: [place]})
        assert SECRET not in output(denied, "cat secret/k")


@pytest.mark.parametrize("way", FULL)
def test_what_is_beside_an_approved_path_is_moved_to_no_other_name(workspace: Path, way: Way) -> None:
    limits = (PathLimit("secret", "a rule", asks=True),)
    with guard_in(way, workspace) as guard:
        place = tuple(str(workspace / "secret/k").strip("/").split("/"))
        output(guard.with_limits(limits, approved={limits[0]: [place]}), "mv secret moved")
        assert SECRET not in output(guard.with_limits(limits), "cat moved/deep/k")


def test_a_file_of_that_name_made_by_the_command_itself_is_its_own(workspace: Path) -> None:
    with guard_in("full", workspace) as guard:
        assert output(hiding(guard, "new/**"), "mkdir new && echo mine > new/f && cat new/f") == "mine\n"


def test_a_directory_that_cannot_be_read_hides_what_may_be_in_it(workspace: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root reads every directory")
    (workspace / "secret").chmod(0)
    with guard_in("full", workspace) as guard:
        assert SECRET not in output(hiding(guard, "k"), "chmod 700 secret; cat secret/k")


UNREADABLE = """
import os, sys
from pathlib import Path
from toolkit.errors import ToolNotAllowed
from toolkit.guard import ProcessGuard
from toolkit.guard.files.consent import PathLimit

base = Path(sys.argv[1])
limits = (PathLimit("k", "a rule"),)
for name, mode in (("listed", 0o400), ("known", 0o300)):
    (base / "ws" / name).mkdir()
    (base / "ws" / name / "k").write_text("SECRET")
    (base / "ws" / name).chmod(mode)
with ProcessGuard(str(base / "ws"), sandbox="full", carrier="own") as guard:
    done = guard.with_limits(limits).shell("cat known/k; chmod 700 *; mv known x; cat */k; echo ran")
    print(done.stdout.decode())
with ProcessGuard(str(base / "ws"), sandbox="full", carrier="own", read_roots=[str(base / "library")]) as guard:
    print(guard.shell(f"cat {base}/library/k").stdout.decode())
    try:
        guard.with_limits(limits).shell(f"cat {base}/library/k")
    except ToolNotAllowed as error:
        print(error.message)
"""


@nobody.only_root
def test_what_may_be_in_directories_that_cannot_be_read_is_hidden_or_the_command_refused() -> None:
    with nobody.folder("ws") as base:
        (base / "library").mkdir()
        (base / "library/k").write_text("CONTROL")
        (base / "library").chmod(0o711)
        told = nobody.run(UNREADABLE, str(base))
    assert "SECRET" not in told
    assert re.fullmatch(r"ran\n\nCONTROL\nthe command was not run: '.*/library' cannot be read, so what .*\n", told)


@pytest.mark.parametrize("way", FULL)
def test_directories_deeper_than_a_path_can_say_do_not_stop_other_commands(workspace: Path, way: Way) -> None:
    dig = "n=$(printf 'a%.0s' $(seq 250)); for i in $(seq 17); do mkdir $n && cd $n; done; echo mine > k"
    with guard_in(way, workspace) as guard:
        guard.shell(dig)
        assert output(hiding(guard, "k"), "cat app/main.py; cat secret/k").startswith("open: app/main.py")


@pytest.mark.parametrize("way", FULL)
def test_a_workspace_that_is_moved_hides_what_it_did(workspace: Path, way: Way) -> None:
    with guard_in(way, workspace) as guard:
        assert SECRET not in output(hiding(guard, "secret/**"), "cat secret/k")
        workspace.rename(workspace.with_name("moved"))
        try:
            assert SECRET not in output(hiding(guard, "secret/**"), "cat secret/k")
        except ToolNotAllowed:
            assert way == "bubblewrap"


def test_the_reduced_tier_refuses_what_it_cannot_hide(workspace: Path) -> None:
    with guard_in("reduced", workspace) as guard:
        assert SECRET in output(guard, "cat secret/k")
        with pytest.raises(
            ToolNotAllowed, match=r"could open what the rule on secret/.* keeps from it.*unenforced_rules="
        ):
            hiding(guard, "secret/**").shell("true")
        assert hiding(guard, "nothing/**").shell("true").exit_code == 0
    with guard_in("reduced", workspace, unenforced_rules="accept") as guard:
        assert SECRET in output(hiding(guard, "secret/**"), "cat secret/k")


def test_the_search_for_hidden_paths_can_be_cancelled(workspace: Path) -> None:
    for number in range(1_500):
        (workspace / f"d{number}").mkdir()
    asked = []

    def check() -> None:
        asked.append(True)
        if len(asked) == 3:
            raise KeyboardInterrupt

    with guard_in("full", workspace) as guard, pytest.raises(KeyboardInterrupt):
        hiding(guard, "k").run(["sh", "-c", "touch ran; sleep 5"], check=check)
    assert not (workspace / "ran").exists()


@pytest.mark.parametrize("way", SANDBOXED)
def test_too_many_paths_are_refused(workspace: Path, way: Way) -> None:
    for number in range(2_001):
        (workspace / f"f{number}.pem").touch()
    with guard_in(way, workspace) as guard, pytest.raises(ToolNotAllowed, match="cover 2,001 paths one by one"):
        hiding(guard, "*.pem").shell("true")


@pytest.mark.every_tier
@pytest.mark.parametrize("way", ["bubblewrap"])
def test_more_paths_than_bubblewrap_mounts_are_refused_with_the_way_out(workspace: Path, way: Way) -> None:
    for number in range(1_990):
        (workspace / f"f{number}.pem").touch()
    with guard_in(way, workspace) as guard, pytest.raises(ToolNotAllowed, match="name the directory around them"):
        hiding(guard, "*.pem").shell("true")


@pytest.mark.parametrize("way", FULL)
def test_a_program_that_goes_on_running_obeys_them(workspace: Path, way: Way) -> None:
    with guard_in(way, workspace) as guard:
        program = hiding(guard, "secret/**").start(["cat", "secret/k"])
        program.close(grace=10)
        assert "denied" in program.last_stderr()
