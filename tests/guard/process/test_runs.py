"""Ordinary work in each tier, and the arguments, variables, directories and programs that are refused."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.guard.ways import ALL, FULL, SANDBOXED, Way, guard_in
from toolkit.errors import InvalidArguments, SandboxViolation, SetupError, ToolFailed, ToolkitError
from toolkit.guard import ProcessGuard, ProcessResult, SandboxFS
from toolkit.guard.process.program import find

WATCHDOG = 120.0
# Without plugins that take a second to load, or are installed from a checkout that the sandbox does not show. By default,
# pytest would move old directories beside its own out of the way: among them the one that holds the packages it runs from.
PYTEST = ["-m", "pytest", "-q", "-p", "no:langsmith_plugin", "-p", "no:toolkit", "--basetemp=temporary"]
D, A, E = "SANDBOX_VIOLATION", "INVALID_TOOL_ARGUMENTS", "TOOL_FAILED"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    folder.mkdir()
    return folder


@pytest.fixture(params=ALL)
def guard(workspace: Path, request: pytest.FixtureRequest) -> Iterator[ProcessGuard]:
    with guard_in(request.param, workspace) as guard:
        yield guard


@pytest.fixture(params=FULL)
def full(workspace: Path, request: pytest.FixtureRequest) -> Iterator[ProcessGuard]:
    with guard_in(request.param, workspace) as guard:
        yield guard


def succeeded(result: ProcessResult) -> str:
    assert result.exit_code == 0, result.stderr.decode()
    return result.stdout.decode()


def test_a_result_says_everything(guard: ProcessGuard, workspace: Path) -> None:
    (workspace / "sub").mkdir()
    result = guard.run(["bash", "-c", "echo out; echo err >&2; exit 3"], cwd="sub")
    assert result.command == ("bash", "-c", "echo out; echo err >&2; exit 3")
    assert (result.cwd, result.exit_code, result.signal) == ("sub", 3, None)
    assert (result.stdout, result.stderr) == (b"out\n", b"err\n")
    assert (result.stdout_bytes, result.stderr_bytes) == (4, 4)
    assert not (result.stdout_truncated or result.stderr_truncated or result.timed_out)
    assert result.network == ("host" if guard.choice.unsafe else "none")
    assert result.tier == guard.tier == guard.choice.name
    assert result.duration_ms >= 0


def test_a_signal_is_reported(guard: ProcessGuard) -> None:
    result = guard.shell("kill -SEGV $$")
    assert (result.exit_code, result.signal, result.signal_name) == (None, signal.SIGSEGV, "SIGSEGV")
    assert guard.shell(f"kill -{signal.SIGRTMIN + 3} $$").signal_name == f"SIG{signal.SIGRTMIN + 3}"
    assert guard.run(["true"]).signal_name is None


def test_65_arguments_are_never_shell_text(guard: ProcessGuard) -> None:
    hostile = ["; touch pwned", "$(touch pwned)", "`touch pwned`", "| touch pwned", "$HOME", "*", "\n", "-n"]
    out = succeeded(guard.run(["printf", "%s\\0", *hostile]))
    assert out.split("\0")[:-1] == hostile
    assert succeeded(guard.run(["ls"])) == ""


def test_shell_text_is_a_pipeline(guard: ProcessGuard) -> None:
    assert succeeded(guard.shell("seq 1000 | grep 7 | tee f | wc -l; cat <(head -1 f)")) == "271\n7\n"


def test_shell_text_is_never_an_option_of_the_shell(guard: ProcessGuard) -> None:
    for text in ("-x", "-i", "--version", "+e"):
        result = guard.shell(text)
        assert (result.exit_code, result.stdout) == (127, b""), text
        assert f"{text}: command not found".encode() in result.stderr


def test_75_nothing_of_one_call_reaches_the_next(guard: ProcessGuard, workspace: Path) -> None:
    poison = "export LATER=1; alias git=evil; git() { echo evil; }; export -f git; cd /; umask 0; ulimit -n 5; touch $TMPDIR/left ~/left"
    succeeded(guard.shell(poison))
    assert succeeded(guard.shell("echo [$LATER]; type -t git; pwd; ulimit -n")).splitlines()[:3] == [
        "[]",
        "file",
        str(workspace),
    ]
    assert subprocess.run(
        ["bash", "-c", f"{poison}; echo [$LATER]; type -t git"], capture_output=True
    ).stdout.startswith(b"[1]\nfunction")


def test_81_input_is_empty_or_what_was_given(guard: ProcessGuard) -> None:
    assert succeeded(guard.run(["cat"], timeout=WATCHDOG)) == ""
    data = bytes(range(256)) * 5000
    result = guard.run(["cat"], stdin=data, max_output=len(data))
    assert result.stdout == data and not result.stdout_truncated


def test_88_output_is_bytes_as_they_came(guard: ProcessGuard) -> None:
    assert guard.run(["printf", r"\033[31m\000\377\n"]).stdout == b"\x1b[31m\0\xff\n"


def test_output_is_heard_as_it_comes(guard: ProcessGuard) -> None:
    heard: list[tuple[str, bytes]] = []
    guard.shell("echo one; echo two >&2", on_output=lambda name, data: heard.append((name, data)))
    assert sorted(heard) == [("stderr", b"two\n"), ("stdout", b"one\n")]


@pytest.mark.every_tier
def test_80_only_three_descriptors(guard: ProcessGuard, workspace: Path) -> None:
    code = "import os; print(sorted(fd for fd in range(1000) if os.path.exists(f'/proc/self/fd/{fd}')))"
    number = os.open(workspace, os.O_RDONLY)
    os.set_inheritable(number, True)
    try:
        assert eval(succeeded(guard.run([sys.executable, "-c", code]))) == [0, 1, 2]
        leaky = subprocess.run([sys.executable, "-c", code], close_fds=False, capture_output=True, text=True)
        assert number in eval(leaky.stdout)
    finally:
        os.close(number)


@pytest.mark.every_tier
def test_78_no_variable_is_inherited(guard: ProcessGuard, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("API_KEY", "CLIENT_SECRET", "GITHUB_TOKEN", "DB_PASSWORD", "AWS_CREDENTIALS", "HARMLESS_NAME"):
        monkeypatch.setenv(name, "inherited-value")
    names = {line.partition("=")[0] for line in succeeded(guard.run(["env"])).splitlines()}
    assert names == {"PATH", "HOME", "TMPDIR", "LANG", "TERM"}
    assert b"inherited-value" in subprocess.run(["env"], capture_output=True).stdout


def test_variables_given_are_there(guard: ProcessGuard) -> None:
    given = {"CI": "1", "GREETING": "a b\nc", "PYTHONUNBUFFERED": "1", "MY_TOKEN_COUNT": "3"}
    out = succeeded(guard.run(["env", "-0"], env=given))
    assert set(given.items()) <= {tuple(pair.split("=", 1)) for pair in out.split("\0") if pair}


@pytest.mark.parametrize(
    "name",
    [
        "BASH_ENV", "LD_PRELOAD", "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONHOME", "PERL5OPT", "PERL5LIB",
        "NODE_OPTIONS", "GIT_SSH_COMMAND", "GIT_DIR", "GIT_CONFIG_COUNT", "IFS", "PS4", "ENV", "PATH", "HOME", "RUBYOPT",
        "ld_preload", "Bash_Env", "SHELLOPTS", "PROMPT_COMMAND", "PAGER", "EDITOR", "BASH_FUNC_x", "TAR_OPTIONS",
        "RIPGREP_CONFIG_PATH", "XDG_CONFIG_HOME", "xdg_config_dirs", "GREP_OPTIONS", "LESS", "ZIPOPT", "RUSTC_WRAPPER",
    ],
)  # fmt: skip
def test_101_variables_that_run_code_are_refused_by_name(guard: ProcessGuard, name: str) -> None:
    with pytest.raises(SandboxViolation, match=name):
        guard.run(["true"], env={name: "hostile-value"})


def test_101_and_would_have_run_code(workspace: Path) -> None:
    (workspace / "rc").write_text("echo pwned")
    out = subprocess.run(["bash", "-c", ":"], env={"BASH_ENV": str(workspace / "rc")}, capture_output=True).stdout
    assert out == b"pwned\n"


@pytest.mark.parametrize(
    "env", [{"": "x"}, {"A=B": "x"}, {"A": "\0"}, {"A": "\ud800"}, {"1A": "x"}, {"A": "x" * 200_000}, {"A": 1}]
)
def test_malformed_variables_are_refused(guard: ProcessGuard, env: dict[str, str]) -> None:
    with pytest.raises(InvalidArguments):
        guard.run(["true"], env=env)


@pytest.mark.parametrize(
    "argv",
    [[], [""], ["true", "\0"], ["true", "x" * 5_000_000], ["true", *["x" * 1000] * 5000], ["true", "\ud800"], "true", ["true", 1], ["true", b"x"]],
    ids=["empty", "empty-name", "NUL", "5MB-word", "5MB", "surrogate", "text", "number", "bytes"],
)  # fmt: skip
def test_100_malformed_commands_are_refused(guard: ProcessGuard, argv: list[str]) -> None:
    with pytest.raises(InvalidArguments):
        guard.run(argv)


@pytest.mark.parametrize("timeout", [0, -1, float("nan")])
def test_a_time_limit_is_above_zero(guard: ProcessGuard, timeout: float) -> None:
    with pytest.raises(InvalidArguments):
        guard.run(["true"], timeout=timeout)


def test_100_a_long_command_just_below_the_limit_runs(guard: ProcessGuard) -> None:
    word = "x" * 100_000
    assert succeeded(guard.run(["printf", "%s", *[word] * 9], timeout=WATCHDOG)) == word * 9


def test_99_programs_that_cannot_run(guard: ProcessGuard, workspace: Path) -> None:
    (workspace / "plain").write_text("text")
    (workspace / "folder").mkdir()
    for name, mode in (("no-shebang", "x"), ("bad-shebang", "#!/nonexistent/interpreter\n")):
        (workspace / name).write_text(mode)
        (workspace / name).chmod(0o755)
    rows = {
        "no-such-program": "COMMAND_NOT_FOUND",
        "./none": "COMMAND_NOT_FOUND",
        "none/none": "COMMAND_NOT_FOUND",
        "/nonexistent/host/path": "COMMAND_NOT_FOUND",
        "./plain": "NOT_EXECUTABLE",
        "./folder": "NOT_EXECUTABLE",
        "/usr": "NOT_EXECUTABLE",
        "./no-shebang": "NOT_EXECUTABLE",
        "./bad-shebang": "NOT_EXECUTABLE",
    }
    for name, reason in rows.items():
        with pytest.raises(ToolFailed) as caught:
            guard.run([name])
        assert caught.value.reason == reason, name
        assert str(workspace) not in str(caught.value) and "nonexistent" not in str(caught.value)


def test_74_a_bare_name_is_never_a_file_of_the_workspace(guard: ProcessGuard, workspace: Path) -> None:
    for name in ("git", "only-here"):
        (workspace / name).write_text("#!/bin/sh\necho from the workspace\n")
        (workspace / name).chmod(0o755)
    assert "git version" in succeeded(guard.run(["git", "--version"]))
    with pytest.raises(ToolFailed, match="COMMAND_NOT_FOUND"):
        guard.run(["only-here"])
    assert "git version" in succeeded(guard.shell("git --version"))
    assert succeeded(guard.run(["./git"])) == "from the workspace\n"
    searched = subprocess.run(["git"], env={"PATH": f"{workspace}:/usr/bin"}, capture_output=True)
    assert searched.stdout == b"from the workspace\n"


def test_74_a_relative_program_is_relative_to_the_working_directory(guard: ProcessGuard, workspace: Path) -> None:
    (workspace / "a/b").mkdir(parents=True)
    (workspace / "a/run").write_text("#!/bin/sh\npwd\n")
    (workspace / "a/run").chmod(0o755)
    assert succeeded(guard.run(["../run"], cwd="a/b")).rstrip().endswith("/a/b")
    assert succeeded(guard.run(["a/run"])).rstrip() == str(workspace)


def test_find_looks_nowhere_but_on_the_path(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("")
    (tmp_path / "x").chmod(0o755)
    assert find("x", str(tmp_path), "/") == str(tmp_path / "x")
    for path in ("", ":", ".", "relative"):
        with pytest.raises(FileNotFoundError):
            find("x", path, str(tmp_path))


CWD = [
    ("..", D), ("/", D), ("/etc", D), ("sub/../..", D), ("link-out", D), ("link-out/", D), ("link-abs", D), ("/proc/self/cwd", D),
    ("none", E), ("file", E), ("", A), ("\0", A), ("\ud800", A), ("x" * 5000, A),
]  # fmt: skip


@pytest.mark.parametrize(("cwd", "code"), CWD)
def test_77_a_working_directory_outside_is_refused(guard: ProcessGuard, workspace: Path, cwd: str, code: str) -> None:
    (workspace.parent / "outside").mkdir()
    (workspace / "sub").mkdir()
    (workspace / "file").touch()
    (workspace / "link-out").symlink_to("../outside")
    (workspace / "link-abs").symlink_to(workspace.parent / "outside")
    with pytest.raises(ToolkitError) as caught:
        guard.run(["pwd"], cwd=cwd)
    assert caught.value.code == code
    assert str(workspace.parent) not in str(caught.value)


def test_77_a_working_directory_that_is_not_there_names_those_that_are(guard: ProcessGuard, workspace: Path) -> None:
    (workspace / "source").mkdir()
    (workspace / "file").touch()
    (workspace / "dangling").symlink_to("nowhere")
    rows = {
        "suorce": "the working directory 'suorce' does not exist. Did you mean 'source'?",
        "elsewhere": "the working directory 'elsewhere' does not exist",
        "dangling": "the working directory 'dangling' does not exist",
        "file": "the working directory 'file' is not a directory, or is below something that is not a directory",
    }
    for cwd, words in rows.items():
        with pytest.raises(ToolFailed) as caught:
            guard.run(["pwd"], cwd=cwd)
        assert (caught.value.message, caught.value.details["path"]) == (words, cwd)


def test_99_names_like_a_missing_program_are_told(guard: ProcessGuard) -> None:
    for name, near in {"bahs": "bash", "pyhton3": "python3", "gti-lgo": None, "./bahs": None, "b" * 1000: None}.items():
        with pytest.raises(ToolFailed, match="COMMAND_NOT_FOUND") as caught:
            guard.run([name])
        found = caught.value.details.get("near", [])
        assert isinstance(found, list)
        assert found == [] if near is None else near in found, name


def test_77_a_working_directory_inside_is_taken(guard: ProcessGuard, workspace: Path) -> None:
    (workspace / "sub/deep").mkdir(parents=True)
    (workspace / "link-in").symlink_to("sub")
    for cwd in ("sub/deep", "link-in/deep", "sub/../sub/deep/", f"{workspace}/sub/deep"):
        assert succeeded(guard.run(["pwd", "-P"], cwd=cwd)).rstrip() == f"{workspace}/sub/deep"


def test_77_the_working_directory_never_moves_the_root(full: ProcessGuard, workspace: Path) -> None:
    (workspace / "sub").mkdir()
    assert succeeded(full.shell("echo x > ../beside && cat ../beside", cwd="sub")) == "x\n"
    full.shell("echo x > ../outside")
    assert not (workspace.parent / "outside").exists(), "it went to the command's own /tmp, if anywhere"


def test_98_a_link_made_by_a_command_is_not_followed_by_file_tools(guard: ProcessGuard, workspace: Path) -> None:
    (workspace.parent / "secret").write_text("SECRET")
    succeeded(guard.run(["ln", "-s", str(workspace.parent / "secret"), "innocent"]))
    with SandboxFS(workspace) as fs, pytest.raises(SandboxViolation):
        fs.open_file("innocent")
    assert (workspace / "innocent").read_text() == "SECRET"


def test_102_no_controlling_terminal(guard: ProcessGuard) -> None:
    code = "import os, sys; assert os.getsid(0) == os.getpid(), 'session'\ntry: open('/dev/tty')\nexcept OSError: print('none')"
    assert succeeded(guard.run([sys.executable, "-c", code])) == "none\n"


@pytest.mark.every_tier
def test_102_a_terminal_cannot_be_fed(guard: ProcessGuard) -> None:
    code = "import fcntl, sys\ntry: fcntl.ioctl(1, 0x5412, b'x')\nexcept OSError as error: print(error.errno)"
    refused, no_terminal = "1\n", "25\n"
    assert succeeded(guard.run([sys.executable, "-c", code])) == (no_terminal if guard.tier == "none" else refused)


# --- work that must go on


def test_git_init_add_commit(guard: ProcessGuard) -> None:
    identity = "git config user.name n && git config user.email e@example.org"
    succeeded(guard.shell(f"git init -q && {identity} && echo a > a && git add a && git commit -qm first"))
    succeeded(guard.shell("echo b > a && git commit -qam second && git checkout -q -b topic && git stash list"))
    assert len(succeeded(guard.run(["git", "log", "--oneline"])).splitlines()) == 2


@pytest.mark.parametrize("way", ALL)
def test_venv_and_pytest_in_it(workspace: Path, way: Way) -> None:
    """Offline: what would have been installed is a root to read, and found by a line in the environment's own files."""
    packages = Path(pytest.__file__).parents[1]
    find = "import sysconfig; print(sysconfig.get_path('purelib'))"
    (workspace / "test_it.py").write_text(
        "import sys\ndef test_it(tmp_path):\n    assert sys.prefix.endswith('env')\n    (tmp_path / 'f').write_text('x')\n"
    )
    with guard_in(way, workspace, read_roots=[str(packages)]) as guard:
        succeeded(guard.run([sys.executable, "-m", "venv", "--without-pip", "env"], timeout=WATCHDOG))
        place = succeeded(guard.run(["env/bin/python", "-c", find])).rstrip()
        succeeded(guard.shell(f"echo {packages} > {place}/packages.pth"))
        assert "1 passed" in succeeded(guard.run(["env/bin/python", *PYTEST], timeout=WATCHDOG))


@pytest.mark.whole
@pytest.mark.parametrize("way", FULL)
def test_a_venv_with_pip(workspace: Path, way: Way) -> None:
    """The standard library brings pip along, so this needs no network."""
    if importlib.util.find_spec("ensurepip") is None:
        pytest.skip("this Python comes without ensurepip")
    with guard_in(way, workspace) as guard:
        succeeded(guard.run([sys.executable, "-m", "venv", "env"], timeout=WATCHDOG))
        assert succeeded(guard.run(["env/bin/pip", "--version"], timeout=WATCHDOG)).startswith("pip ")


@pytest.mark.whole
def test_pytest(guard: ProcessGuard, workspace: Path) -> None:
    (workspace / "test_it.py").write_text("def test_it(tmp_path):\n    (tmp_path / 'f').write_text('x')\n")
    assert "1 passed" in succeeded(guard.run([sys.executable, *PYTEST, "test_it.py"], timeout=WATCHDOG))


def test_make(guard: ProcessGuard, workspace: Path) -> None:
    (workspace / "Makefile").write_text("all: a b\na b:\n\techo $@ > $@\n")
    succeeded(guard.run(["make", "-s", "-j2"]))
    assert (workspace / "b").read_text() == "b\n"


@pytest.mark.whole
def test_java(guard: ProcessGuard, workspace: Path) -> None:
    (workspace / "T.java").write_text('class T { public static void main(String[] a) { System.out.println("ran"); } }')
    try:
        subprocess.run(["java", "T.java"], cwd=workspace, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no Java that compiles")
    result = guard.run(["java", "T.java"], timeout=WATCHDOG)
    assert (result.stdout, result.exit_code) == (b"ran\n", 0), result.stderr.decode()


def test_a_file_of_100_megabytes(guard: ProcessGuard, workspace: Path) -> None:
    succeeded(guard.run(["dd", "if=/dev/zero", "of=big", "bs=1M", "count=100"], timeout=WATCHDOG))
    assert (workspace / "big").stat().st_size == 100 << 20


def test_where_memory_runs_out_commands_go_first(full: ProcessGuard) -> None:
    assert succeeded(full.run(["cat", "/proc/self/oom_score_adj"])) == "1000\n"


def test_the_private_tmp_is_bounded(full: ProcessGuard) -> None:
    code = "import os; os.posix_fallocate(os.open('/tmp/big', os.O_CREAT | os.O_WRONLY), 0, 1100 << 20)"
    assert b"No space left" in full.run([sys.executable, "-c", code]).stderr


def test_multiprocessing(full: ProcessGuard) -> None:
    code = "import multiprocessing as m; m.set_start_method('fork'); print(m.Pool(2).map(abs, [-1, -2]))"
    assert succeeded(full.run([sys.executable, "-c", code], timeout=WATCHDOG)) == "[1, 2]\n"


# --- what the guard was built with


def refused(result: ProcessResult) -> bool:
    return result.exit_code not in (0, None)


@pytest.mark.every_tier
@pytest.mark.parametrize("way", SANDBOXED)
def test_read_only_holds_for_commands(workspace: Path, way: Way) -> None:
    (workspace / "f").write_text("kept")
    with guard_in(way, workspace, mode="read-only") as guard:
        for act in ("echo x > f", "rm f", "mkdir d", "ln -s f l", "mv f g"):
            assert refused(guard.shell(act)), act
        assert succeeded(guard.shell("cat f; echo x > $TMPDIR/t; cat $TMPDIR/t")) == "keptx\n"
    with guard_in(way, workspace) as guard:
        assert refused(guard.read_only().shell("echo x > f"))
        succeeded(guard.shell("echo x > f"))


@pytest.mark.every_tier
@pytest.mark.parametrize("way", SANDBOXED)
def test_other_roots_are_read_or_written_as_given(tmp_path: Path, workspace: Path, way: Way) -> None:
    for name in ("readable", "writable", "neither"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "f").write_text(name)
    readable, writable = [str(tmp_path / "readable")], [str(tmp_path / "writable")]
    with guard_in(way, workspace, read_roots=readable, write_roots=writable) as guard:
        assert succeeded(guard.run(["cat", f"{tmp_path}/readable/f", f"{tmp_path}/writable/f"])) == "readablewritable"
        assert refused(guard.run(["touch", f"{tmp_path}/readable/new"]))
        succeeded(guard.run(["touch", f"{tmp_path}/writable/new"]))
        assert refused(guard.run(["cat", f"{tmp_path}/neither/f"]))
        assert refused(guard.read_only().run(["touch", f"{tmp_path}/writable/more"]))


@pytest.mark.every_tier
def test_home_and_tmp_are_private_and_not_in_the_workspace(guard: ProcessGuard, workspace: Path) -> None:
    home, tmp = succeeded(guard.shell("touch ~/f $TMPDIR/g && echo $HOME && echo $TMPDIR")).splitlines()
    assert not home.startswith(str(workspace)) and home != str(Path.home())
    assert list(workspace.iterdir()) == []
    if guard.tier == "full":
        assert not os.path.exists(f"{tmp}/g")


def test_git_config_and_hooks_stay_as_they_are(full: ProcessGuard, workspace: Path) -> None:
    succeeded(full.shell("git init -q && git config user.name n && git config user.email e@example.org"))
    config = (workspace / ".git/config").read_bytes()
    for act in (
        "git config core.fsmonitor evil",
        "echo x >> .git/config",
        "mv .git/config c",
        "rm .git/config",
        "echo x > .git/hooks/pre-commit",
        "mv .git/hooks h",
        "rm -r .git/hooks",
        "mv .git elsewhere",
        "chmod 777 .git/config",
        "ln -sf /dev/null .git/config",
    ):
        assert refused(full.shell(act)), act
    assert (workspace / ".git/config").read_bytes() == config
    succeeded(full.shell("echo a > a && git add a && git commit -qm x && git gc -q"))


@pytest.mark.parametrize("way", FULL)
def test_the_interpreter_cannot_be_replaced_from_a_workspace_around_it(workspace: Path, way: Way) -> None:
    prefix = os.path.realpath(sys.prefix)
    with guard_in(way, workspace) as beside:
        assert refused(beside.run(["touch", f"{prefix}/x"]))
    parent = os.path.dirname(prefix)
    if parent == "/" or not os.access(parent, os.W_OK) or parent in ("/usr", "/opt"):
        pytest.skip("the interpreter's own directory lies in no directory that could be a workspace")
    with guard_in(way, Path(parent)) as around:
        assert refused(around.run(["touch", f"{prefix}/x"]))
        assert refused(around.run(["mv", prefix, f"{prefix}-moved"]))


@pytest.mark.parametrize("way", FULL)
def test_an_interpreter_reached_through_links_works(
    tmp_path: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch, way: Way
) -> None:
    """As some installers leave it: a link to a program below a link to the directory of one version."""
    real = os.path.realpath(sys.executable)
    (tmp_path / "python-3").symlink_to(os.path.dirname(os.path.dirname(real)))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python").symlink_to(tmp_path / "python-3/bin" / os.path.basename(real))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin/python"))
    monkeypatch.setattr(sys, "base_prefix", str(tmp_path / "python-3"))
    with guard_in(way, workspace) as guard:
        assert succeeded(guard.run([sys.executable, "-c", "import json, ctypes; print(1)"])) == "1\n"


@pytest.mark.parametrize("way", FULL)
def test_the_workspace_is_pinned_when_the_guard_is_made(tmp_path: Path, workspace: Path, way: Way) -> None:
    (workspace / "f").write_text("mine")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/f").write_text("SECRET")
    with guard_in(way, workspace) as guard:
        workspace.rename(tmp_path / "moved")
        workspace.symlink_to("other")
        assert guard.run(["cat", "f"]).stdout == b"mine"


@pytest.mark.parametrize("way", FULL)
def test_a_workspace_given_by_a_link(tmp_path: Path, workspace: Path, way: Way) -> None:
    (tmp_path / "link").symlink_to("ws")
    with guard_in(way, tmp_path / "link") as guard:
        assert guard.workspace == str(workspace)
        assert succeeded(guard.run(["pwd"])).rstrip() == str(workspace)


@pytest.mark.parametrize(
    "place", ["/", "/tmp", "/usr", "/etc", "/proc", "/proc/self", "/sys", "/dev", "/no/such/place"]
)
def test_places_that_cannot_be_a_workspace(place: str, workspace: Path) -> None:
    with pytest.raises(SetupError):
        ProcessGuard(place)
    with pytest.raises(SetupError):
        ProcessGuard(str(workspace), write_roots=[place])


def test_wrong_settings_are_refused(workspace: Path) -> None:
    with pytest.raises(SetupError, match="sandbox"):
        ProcessGuard(str(workspace), sandbox="none")  # type: ignore[arg-type]
    with pytest.raises(SetupError, match="mode"):
        ProcessGuard(str(workspace), mode="write")  # type: ignore[arg-type]
