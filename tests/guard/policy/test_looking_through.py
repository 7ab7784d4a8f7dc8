"""Deny and ask rules on commands: their words count wherever they stand, and so does what cannot be read.

Each attack runs ``touch pwned`` in a way that hides it from a rule on ``touch``. Without a guard it must succeed, or the row
proves nothing. The neighbours use the same programs for something else, and go on working.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import tries
from toolkit.guard import Permission, Preview, Rule, SecurityPolicy
from toolkit.guard.policy.shell_text import read_shell

EXECUTE: tuple[Permission, ...] = ("execute",)
PATH = "/usr/sbin:/usr/bin:/bin"


def judge(command: str | list[str], rule: Rule[str], default: Any = "allow") -> str:
    preview = Preview(shell=command) if isinstance(command, str) else Preview(argv=tuple(command))
    return SecurityPolicy(default, rules=[rule])._judge("bash", EXECUTE, preview).decision


# Shell text. A list is an argument list, which no shell reads.
ATTACKS: list[str | list[str]] = [
    "sh -c 'touch pwned'",
    "bash -lc 'touch pwned'",
    "bash -c -- 'touch pwned'",
    "bash -o pipefail -ec 'touch pwned'",
    "bash --norc --noprofile -c 'touch pwned'",
    "dash -c 'touch pwned'",
    "zsh -c 'touch pwned'",
    "/bin/sh -c 'touch pwned'",
    "sh -c 'sh -c \"touch pwned\"'",
    "echo 'touch pwned' | sh",
    "echo 'touch pwned' | bash -s",
    "echo 'touch pwned' | bash /dev/stdin",
    "echo 'touch pwned' | bash -x",
    "eval touch pwned",
    "eval 'touch pwned'",
    "eval 'to''uch' pwned",
    "env touch pwned",
    "env X=1 touch pwned",
    "env -i X=1 /usr/bin/touch pwned",
    "env -u X touch pwned",
    "env -S 'touch pwned'",
    "env '-Stouch pwned'",
    "env -vS 'touch pwned'",
    "env '--split-string=touch pwned'",
    "env '--split=touch pwned'",
    "env -S '-i touch' pwned",
    "env sh -c 'touch pwned'",
    "echo pwned | xargs touch",
    "echo pwned | xargs -n 1 -- touch",
    "echo touch pwned | xargs env",
    "echo 'touch pwned' | xargs -I % sh -c %",
    "echo touch | xargs -I % env % pwned",
    "printf touch | xargs -0I% env % pwned",
    "echo 5 touch pwned | xargs timeout",
    "echo 'touch pwned' | xargs -d '\\n' sh -c",
    r"find . -maxdepth 0 -exec touch pwned \;",
    "find . -maxdepth 0 -execdir touch pwned ';'",
    r"find . -maxdepth 0 -exec true \; -exec touch pwned \;",
    "find . -maxdepth 0 -exec sh -c 'touch pwned' {} +",
    "fd -x touch pwned",
    "fd --exec=touch pwned",
    "fd -Hxtouch pwned",
    "flock lock touch pwned",
    "flock -n lock -c 'touch pwned'",
    "flock -w 5 lock sh -c 'touch pwned'",
    "timeout 5 touch pwned",
    "timeout -s KILL 5 touch pwned",
    "timeout --signal=KILL 5 touch pwned",
    "timeout --sig KILL 5 touch pwned",
    "timeout -k 1 5 env touch pwned",
    "nohup touch pwned",
    "nice touch pwned",
    "nice -n 5 touch pwned",
    "nice -5 touch pwned",
    "ionice -c 3 touch pwned",
    "stdbuf -oL touch pwned",
    "setsid -w touch pwned",
    "sudo touch pwned",
    "sudo -u root -E touch pwned",
    "sudo -s touch pwned",
    "sudo X=1 touch pwned",
    "doas touch pwned",
    "su -c 'touch pwned'",
    "su root -c 'touch pwned'",
    "su '--command=touch pwned' root",
    "command touch pwned",
    "command -p touch pwned",
    "exec touch pwned",
    "exec -a ls touch pwned",
    "time touch pwned",
    ["time", "-o", "x", "touch", "pwned"],
    "watch -n 1 touch pwned",
    "watch -g 'touch pwned'",
    "parallel touch ::: pwned",
    "parallel ::: 'touch pwned'",
    "script -qc 'touch pwned' log",
    "script -q log -c 'touch pwned'",
    "ssh host touch pwned",
    "ssh -o 'ProxyCommand=touch pwned' host",
    "chroot / touch pwned",
    "unshare -r touch pwned",
    "strace -f touch pwned",
    "strace -o '|touch pwned' true",
    "busybox touch pwned",
    "busybox sh -c 'touch pwned'",
    "git -c 'alias.x=!touch pwned' x",
    "git -c 'alias.x=!touch' x pwned",
    "git -C . -c 'alias.x=!sh -c \"touch pwned\"' x",
    "git -c 'core.fsmonitor=touch pwned' status",
    "git -c 'core.sshCommand=touch pwned' fetch",
    "git bisect run touch pwned",
    "git rebase -x 'touch pwned' HEAD",
    "git rebase '--exec=touch pwned' HEAD",
    "git submodule foreach 'touch pwned'",
    "git grep -nO'touch pwned;' a",
    "git clone -u 'touch pwned;' file:///nowhere there",
    "git clone -qu 'touch pwned;' file:///nowhere there",
    "git clone -c 'core.sshCommand=touch pwned;' ssh://nowhere/x there",
    "git clone --conf 'core.sshCommand=touch pwned;' ssh://nowhere/x there",
    "npx -c 'touch pwned'",
    "npm exec '--call=touch pwned'",
    "npm --silent x --call 'touch pwned'",
    "npm explore . -- touch pwned",
    "pnpm touch pwned",
    "pnpm -c exec 'touch pwned'",
    "echo touch pwned | xargs npx",
    "echo touch pwned | xargs uv run --quiet",
    "pyenv exec touch pwned",
    "rustup run stable touch pwned",
    "mise exec -- touch pwned",
    "uvx touch pwned",
    "bun x touch pwned",
    "ssh-agent touch pwned",
    "linux64 touch pwned",
    "x86_64 -R touch pwned",
    "choom -n 0 -- touch pwned",
    "dbus-run-session -- touch pwned",
    "chronic touch pwned",
    "gosu root touch pwned",
    "ksh93 -c 'touch pwned'",
    "nu -c 'touch pwned'",
    "trap 'touch pwned' EXIT",
    "printf -v 'a[$(touch pwned)]' x",
    "test -v 'a[$(touch pwned)]'",
    "echo x | read 'a[$(touch pwned)]'",
    "declare 'a[$(touch pwned)]=1'",
    "let 'a[$(touch pwned)]'",
    "hash -p /usr/bin/touch harmless; harmless pwned",
    "compgen -C 'touch pwned'",
    "env 'BASH_FUNC_ls%%=() { touch pwned; }' bash -c ls",
    "taskset 1 touch pwned",
    "setpriv --reuid=0 touch pwned",
    "prlimit --nofile=100 touch pwned",
    "runuser -u root -- touch pwned",
    "uv run touch pwned",
    "uv run --with x sh -c 'touch pwned'",
    "poetry run touch pwned",
    "npx touch pwned",
    "/lib64/ld-linux-x86-64.so.2 /usr/bin/touch pwned",
    "echo 'touch pwned' | fakeroot",
    "echo 'touch pwned' | at now",
    "fish -C 'touch pwned' x",
    "ssh host -t 'touch pwned'",
    "git difftool -yx 'touch pwned' HEAD",
    "git grep '-Otouch pwned;' x",
    "git grep '--open-files=touch pwned;' x",
    "git fetch '--upload-pa=touch pwned;' .",
    "git ls-remote '--upload-pack=touch pwned;' .",
    "/usr/bin/touch pwned",
    "/usr/bin/../bin/touch pwned",
    "\\touch pwned",
    "t\"\"ouch pwned",
    "'touch' pwned",
    "$(echo touch) pwned",
    "ls\ntouch pwned",
    "\n\n  touch pwned\n",
    ">x touch pwned",
    "ls 2>&1 >x; touch pwned 2>x",
    "sh -c 'ls &>x touch pwned'",
    "echo 'touch pwned' >x; sh <x",
    "echo 'touch pwned' > x\nsh x*",
    "sh -c 'touch pwned *'",
    "echo >5; echo >touch; timeout * pwned",
    "cat <<E | sh\ntouch pwned\nE",
    "cat <(touch pwned)",
    "ls >$(touch pwned)",
    ["/usr/bin/touch", "pwned"],
    ["sh", "-c", "t\\ouch pwned"],
    ["bash", "-c", "$0 pwned", "touch"],
    ["env", "-S", "${X}touch pwned"],
    # Shells and wrappers behind programs whose options are not known.
    "echo 'touch pwned' | taskset 1 sh",
    "echo 'touch pwned' | linux64 sh",
    "echo 'touch pwned' | linux64 -R dash",
    "echo 'touch pwned' | setpriv --reuid=0 bash",
    "echo 'touch pwned' | prlimit --nofile=100 sh",
    "echo 'touch pwned' | chrt -o 0 sh",
    "echo touch pwned | taskset 1 xargs env",
    "echo 'touch pwned' | env linux64 taskset 1 sh",
    "echo 'touch pwned' | gosu timeout sh",
    "echo 'touch pwned' | uv run --with timeout sh",
    "linux64 sh -c 'touch pwned'",
    # Abbreviated options of git that name a program.
    "git clone --u='touch pwned;' file:///nowhere there",
    "git ls-remote --u='touch pwned;' .",
    "git push --e='touch pwned;' . HEAD",
    "git push --rece='touch pwned;' . HEAD",
    "git send-pack --e='touch pwned;' . HEAD",
    "git send-pack --receive='touch pwned;' . HEAD",
    "git fetch-pack --e='touch pwned;' . HEAD",
    "git archive --remote=. --e='touch pwned;' HEAD",
    "git submodule--helper foreach touch pwned",
    "git merge-index touch -a",
    "git web--browse -b touch pwned",
    "/usr/lib/git-core/git-submodule foreach touch pwned",
    "/usr/lib/git-core/git-ls-remote --upload-pack='touch pwned;' .",
    # Programs that run others as their arguments say.
    "jobs -x touch pwned",
    "builtin jobs -x touch pwned",
    "command jobs -x touch pwned",
    "echo x | split --filter='touch pwned'",
    "echo x | split --fi 'touch pwned' - part",
    "sort --compress-program=touch f",
    "sort --co touch f",
    "fakeroot touch pwned",
    "fakeroot-sysv touch pwned",
    "fakeroot-tcp touch pwned",
    "echo 'touch pwned' | fakeroot-sysv",
    "sem touch pwned",
    "systemd-cat touch pwned",
    "systemd-inhibit touch pwned",
    "nix develop -c touch pwned",
    "nix shell nixpkgs#coreutils --command touch pwned",
    "nix run nixpkgs#coreutils -- touch pwned",
    "debconf touch pwned",
    "sotruss touch pwned",
    "memusage touch pwned",
    "pee 'touch pwned'",
    "lckdo lock touch pwned",
    "pipesz touch pwned",
    "uname26 touch pwned",
    "aarch64 touch pwned",
    "coresched new -- touch pwned",
    "ip netns exec x touch pwned",
    "coreutils --coreutils-prog=touch pwned",
    "ccache touch pwned",
    "cross-env X=1 touch pwned",
    "envdir . touch pwned",
    "doppler run -- touch pwned",
    "printf 'x:\\n\\ttouch pwned\\n' | make -f /dev/stdin",
    "printf 'x:\\n\\ttouch pwned\\n' | make -f -",
    "printf 'x:\\n\\ttouch pwned\\n' | make -sf-",
    "printf 'x:\\n\\ttouch pwned\\n' | make --file /dev/stdin",
    "printf 'x:\\n\\ttouch pwned\\n' | make --makef=-",
    "make '--eval=$(shell touch pwned)'",
    "make '--ev=$(shell touch pwned)'",
    "make x SHELL=touch",
    "tar cf x.tar -I 'touch pwned' x",
    "tar cIf 'touch pwned' x.tar x",
    "tar -cvI 'touch pwned' -f x.tar x",
    "tar cf x.tar --use-comp='touch pwned' x",
    "tar cf x.tar . --checkpoint=1 --checkpoint-act='exec=touch pwned'",
    "tar xf x.tar --to-comm='touch pwned'",
    "rsync -ave 'touch pwned' x host:",
    "rsync --rs='touch pwned' x host:",
    "echo x >f; zip -q o.zip f -T -TT 'touch pwned;'",
    "rg --pre=touch x",
    "prove --exec touch pwned",
    "prove -ve 'touch pwned' x",
    "man -P 'touch pwned' ls",
    "wget --use-ask=touch http://localhost/",
    "sdiff --diff-pr=touch pwned f",
    "install -s --strip-prog=touch pwned x",
    "gcc -wrapper touch,pwned -c x.c",
    "go test -exec touch pwned",
    "nc -e touch localhost 1",
    "echo 'touch pwned' | bash /usr/../dev/stdin",
    "echo 'touch pwned' | bash //dev/stdin",
    "echo 'touch pwned' | bash /./dev/fd/0",
    "echo 'touch pwned' | env sh ../../../../../../../dev/stdin",
    "printf 'x:\\n\\ttouch pwned\\n' | make -f //dev/stdin",
    "logsave log touch pwned",
    "dbus-launch touch pwned",
    "gdb -batch -ex 'shell touch pwned'",
    "lftp -e '!touch pwned'",
    "tmux new-session -d 'touch pwned'",
    "gcc-12 -wrapper touch,pwned -c x.c",
    "x86_64-linux-gnu-gcc-12 -wrapper touch,pwned -c x.c",
    "c99 -wrapper touch,pwned -c x.c",
    # Spellings inside quotes, for what is evaluated once more.
    ["bash", "-c", "t''ouch pwned"],
    ["bash", "-c", 't"o"uch pwned'],
    ["bash", "-c", "/usr/bin/t*ch pwned"],
    ["bash", "-c", "x=to; ${x}uch pwned"],
    ["bash", "-c", "$(echo to)uch pwned"],
    ["python3", "-c", "import os; os.system('touch pwned')"],
    ["awk", 'BEGIN{system("touch pwned")}'],
    "x=touch; $x pwned",
    "x=$(echo touch); \"$x\" pwned",
    "alias t=touch\nt pwned",
    "t() { touch pwned; }; t",
    "for p in touch; do $p pwned; done",
    "if true; then touch pwned; fi",
    "(touch pwned)",
    "touch pwned &",
    "! touch pwned",
    "/usr/bin/to[u]ch pwned",
    "cd /usr/bin && ./touch $OLDPWD/pwned",
    "echo dG91Y2ggcHduZWQ= | base64 -d | sh",
    "base64 -d <<< dG91Y2ggcHduZWQ= | bash -s",
    "printf 'to%s pwned' uch | env bash",
    "printf 'to%s pwned' uch | find . -maxdepth 0 -exec bash ';'",
    "printf 'to%s pwned' uch | nice -n 5 sh",
    # Shells that read text in ways of their own.
    "zsh -c 'nice =touch pwned'",
    "zsh -c 'noglob touch pwned'",
    "zsh -c 'repeat 1 touch pwned'",
    "fish -c 'and touch pwned'",
    "csh -c 'repeat 1 touch pwned'",
    "nu -c 'run-external touch pwned'",
]  # fmt: skip
# What waits for a terminal, a password or another host, needs a repository with history, or acts outside its directory.
NOT_RUN = (
    "alias",  # only an interactive shell looks for one
    "watch",
    "su ",
    "ssh",
    "chroot",
    "git bisect",
    "git rebase",
    "git submodule",
    "git difftool",
    "git grep",
    "git -c 'core.ssh",
    # These find their programs elsewhere, or ask for a package that is not installed.
    "npm explore",
    "echo touch pwned | xargs npx",
    "echo touch pwned | xargs uv",
    "pyenv",
    "rustup",
    "uvx",
    "bun",
    # Not every version of git abbreviates or opens these; sort needs more input than memory; the rest waits for a host.
    "git fetch-pack",
    "git archive",
    "git merge-index",
    "git web--browse",
    "/usr/lib/git-core",
    "sort",
    "rsync",
    "wget",
    "nc",
    "nix",
    "go",
    # These need a file or a right of their own, or run the program with other arguments.
    "make x SHELL",
    "tar xf",
    "ip netns",
    "sdiff",
    "install",
    "c99",
    "gcc",
    "x86_64-linux",
    "gdb",
    "tmux",
    "lftp",
    "dbus-launch",
    "rg",
    "man",
    "memusage",
    "systemd-",
    "echo 'touch pwned' | gosu",
    "echo 'touch pwned' | uv",
)
BUILTINS = ("builtin", "command", "compgen", "declare", "eval", "exec", "hash", "jobs", "let", "time", "trap", "unset")


def name(command: str | list[str]) -> str:
    return command if isinstance(command, str) else " ".join(command)


@pytest.mark.every_row
@pytest.mark.parametrize("command", ATTACKS, ids=name)
def test_a_wrapped_command_is_denied_and_asked_for(command: str | list[str]) -> None:
    assert judge(command, Rule("deny", command="touch")) == "deny"
    assert judge(command, Rule("ask", command="touch")) == "ask"


@pytest.mark.sample(every=8)
@pytest.mark.parametrize("command", [row for row in ATTACKS if not name(row).startswith(NOT_RUN)], ids=name)
def test_and_would_have_run(tmp_path: Path, command: str | list[str]) -> None:
    argv = ["bash", "--noprofile", "--norc", "-c", command] if isinstance(command, str) else command
    ours = (*BUILTINS, "harmless", "read", "alias", "cd", "t")
    programs = [str(one.words[0]) for one in read_shell(name(command)) or () if one.words and one.words[0] not in ours]
    missing = [program for program in programs if program != "None" and shutil.which(program, path=PATH) is None]
    if missing:
        pytest.skip(f"this machine has no {missing[0]}")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    if "HEAD" in name(command):
        author = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
        subprocess.run(["git", *author, "commit", "-q", "--allow-empty", "-m", "first"], cwd=tmp_path, check=True)
    subprocess.run(argv, cwd=tmp_path, capture_output=True, timeout=30, env={"PATH": PATH, "HOME": str(tmp_path)})
    assert (tmp_path / "pwned").exists()


NEIGHBOURS: list[str | list[str]] = [
    "sh -c 'ls src'", "bash -lc 'ls | wc -l && git status'", "bash script.sh touched", "bash -n script.sh", "source venv/bin/activate",
    "env X=1 ls", "env -i -u HOME ls", "env -S 'ls -l'", r"find . -exec grep -n 'a(b|c)$' {} \;",
    "find . -type f -exec wc -l {} +", "git ls-files | xargs wc -l", "xargs -0 -n 5 grep -l 'x y'", "xargs -I{} cp {} {}.bak",
    "fd -e py -x wc -l", "flock lock make", "flock lock -c 'make all'", "timeout 60 pytest -k 'a and not b'", "timeout -s KILL 5 ls",
    "nohup make", "nice -n 5 make", "ionice -c 3 make", "stdbuf -oL make", "setsid ls", "sudo -u root ls", "su -c 'ls -l' root",
    "command -v python3", "exec ls", "watch -n 1 ls -l", "script -qc 'ls -l' log", "ssh host ls -l", "chroot / ls", "unshare -r ls",
    "strace -f -e openat ls", "busybox ls", 
    "git -c alias.x=status x", "git rebase main", "printf '%d%%\\n' 5", "export X=1", 
    "python3 -c 'print(1)'", "touchy x", 
    ["timeout", "5", "grep", "a(b", "f"], "uv run pytest -q", "npm run build", "docker run --rm image touchy", "git fetch --prune",
    "git push --recurse-submodules=no", "valgrind ./a.out", "tmux ls", "perf stat ./a.out",
    "pytest -q 2>&1 | tail -5", "make >log 2>/dev/null", "ls *.py src/*/x?.py", "git add src/*.py", "ls\ngit status\n", "wc -l <f >>log",
    "cat f |\n wc -l", "bash -c 'make 2>&1 | tail -20'", 
    "git grep -n OK", "git clone -q -b main https://example.org/x.git", "npx eslint -c config.js src", "npx -y prettier --check .",
    "git ls-files | xargs npx eslint", "git ls-files | xargs uv run ruff check", "pnpm install", "npm exec -- jest", "uvx ruff check",
    "pyenv versions", "rustup show", "bun test", "linux64 uname -m", "uv run ruff check .", "npx prettier --write .",
    "poetry run pytest -k 'local and wait' test", "uv run pytest -k local tests", "npm run source", "xargs -I{} echo {} {}",
    "taskset 1 make -j4 test", "taskset 1 sh script.sh", "taskset 1 /bin/sh -c 'ls -l'", "linux64 env X=1 uname -m", "setpriv --reuid=0 git status",
    "git push --dry-run origin main", "git clone --depth=1 https://example.org/x.git", "git push --recurse-submodules=check origin",
    "/usr/lib/git-core/git-status --short", "git-lfs ls-files", "jobs", "jobs -l", "split -l 5 --verbose f", "split --bytes=1M f part", "sort -u --check f",
    "sort -t, -k2 f", "fakeroot make install", "nix build .", "nix flake check", "make -f other.mk test", "make -j4 --file=other.mk", "make CC=gcc test",
    "tar czf x.tgz src", "tar -xf x.tar -C out", "tar --checkpoint=100 -cf x.tar .", "tar cf x.tar --exclude=IF .", "rsync -av a b", "rsync --exclude=x a b",
    "zip -qr o.zip src", "rg -n --pretty x", "prove -v t", "man ls", "wget -q --user-agent=x https://example.org", "install -m 755 a b", "gcc -Wall -c x.c",
    "go test -run TestX ./...", "zsh -c 'test a = b && ls'", "zsh -c 'ls -l'", "ip addr show", "ccache gcc -c x.c", "nc -z localhost 80",
    "bash ./dev/setup.sh", "touches x", "x-touch y", "ls touch.txt touch_x.py", "git commit -m 'no touching'", "rg -n 'a.*b$' src", "awk '{print $1}' f", "ls *", "ls ?",
    "[ -d build ] && ls build", "FOO=bar make test", "X=1; ls", "> x", [], "cd sub && make", "# touch\nls", "wc -l *.py # touch", ["grep", "$(id) `id`", "f"], "bash scripts/proc/run.sh", "tmux kill-session -t x", "gcc-12 -O2 -c x.c", "logsave log make",
]  # fmt: skip


@pytest.mark.parametrize("command", NEIGHBOURS, ids=name)
def test_wrappers_of_other_commands_are_left_alone(command: str | list[str]) -> None:
    assert judge(command, Rule("deny", command="touch")) == "allow"


SAME_COMMAND: list[tuple[str, str, bool]] = [
    ("git push", "git push origin", True),
    ("git push", "git -C sub push", True),
    ("git push", "git --git-dir=x --no-pager push", True),
    ("git push", "git -c user.name=n push", True),
    ("git push", "git -c alias.x=push x", True),
    ("git push", "/usr/bin/git push", True),
    ("git push", "git pus*", True),
    ("git push", "git -C * status", True),
    ("git push", "git add *.py 2>&1", False),
    ("git push", "git 2>&1 push", True),
    ("git push", "echo push | xargs git", True),
    ("git push", "find push -exec git {} ';'", True),
    ("git push", "git stash push", False),
    ("git push", "git log push", False),
    ("git push", "git ls-files | xargs git add", False),
    ("git push --force", "git push origin main --force", True),
    ("git push --force", "git push origin main", False),
    ("docker compose down", "docker compose -f x.yaml down", True),
    ("npm publish", "npm --prefix pkg publish", True),
    ("./deploy.sh", "bash deploy.sh", True),
    ("./deploy.sh", "scripts/deploy.sh", True),
    ("./deploy.sh", "cat deploy.sh", True),
    ("/usr/bin/curl", "curl x", True),
    ("git push", "/usr/lib/git-core/git-push origin", True),
    ("git push", "linux64 git -C x push", True),
    ("git push", "git-lfs push", False),
    ("git push *", "git push", True),
    ("git push", "sh -c 'git -C x push origin'", True),
    ("git push", "python3 -c 'os.system(\"git push\")'", True),
    ("git push", "docker run --rm x git push", True),
    ("git push", "env -S 'git' push", True),
    ("git push", "xargs -a names git", True),
    ("git push", "git commit -m 'git: push it'", True),
    ("git push", "git commit -m 'push git'", False),
    ("git push", "git log; echo push", False),
    ("docker * rm", "docker container rm x", True),
    ("docker * rm", "docker run x", False),
    ("git push --*", "git push origin --force", True),
    ("docker compose", "docker-compose up", True),
    # Words are compared as they are written: another spelling of the same options is another command.
    ("rm -rf", "rm -rf x", True),
    ("rm -rf", "rm -fr x", False),
    ("rm -rf", "rm -r -f x", False),
    ("git push --force", "git push -f", False),
]


@pytest.mark.every_row
@pytest.mark.parametrize(("rule", "text", "matches"), SAME_COMMAND)
def test_other_spellings_of_a_command_of_several_words(rule: str, text: str, matches: bool) -> None:
    assert judge(text, Rule("deny", command=rule)) == ("deny" if matches else "allow")
    assert judge(text, Rule("ask", command=rule)) == ("ask" if matches else "allow")


def as_argv(text: str) -> list[str] | None:
    """The words of a text that is one command without anything that only a shell does."""
    commands = read_shell(text)
    if commands is None or len(commands) != 1 or commands[0].assigned or commands[0].redirects:
        return None
    words = [word for word in commands[0].words if isinstance(word, str)]
    return words if words and len(words) == len(commands[0].words) else None


ONE_COMMAND = [row for row in [*ATTACKS, *NEIGHBOURS] if isinstance(row, str) and as_argv(row) is not None]


@pytest.mark.parametrize("command", ONE_COMMAND)
def test_an_argument_list_and_shell_text_get_the_same_verdict(command: str) -> None:
    words = as_argv(command)
    assert words is not None
    for rule in (Rule[str]("deny", command="touch"), Rule[str]("ask", command="ls")):
        assert judge(words, rule) == judge(command, rule) == judge(shlex.join(words), rule)


LONG: dict[str, tuple[list[str] | None, str | None, str]] = {
    "one program, many words": (["env", *["a"] * 520_000], None, "allow"),
    "one program, many words, as text": (None, "env " + "a " * 64_000, "allow"),
    "one program again and again": (["env"] * 260_000, None, "allow"),
    "the denied program again and again": (["env", *["git"] * 260_000], None, "deny"),
    "one option after another": (["xargs", *(f"-I{mark}" for mark in range(9_900)), *["b"] * 9_900], None, "allow"),
    "one alias of git after another": (["x", *["-c", "alias.x=!ls"] * 6_000, *["z"] * 7_900], None, "allow"),
    "one alias of git after another, denied": (["git", *["-c", "alias.x=!ls"] * 16_000], None, "deny"),
    "names in one word": (["x", "a b;" * 30_000], None, "allow"),
    "names in many words": (["x", *(f"a;{number}" for number in range(30_000))], None, "deny"),
    "the denied program in one word": (["x", "git z;" * 20_000], None, "deny"),
    "a redirection without end": (None, "ls >" + "a" * 120_000 + "$", "deny"),
    "one redirection after another": (None, "ls " + ">a " * 40_000 + "$", "deny"),
    "shells in shells": (["sh"] * 300_000, None, "allow"),
    "shells in text": (None, "sh -c " * 20_000 + "ls", "allow"),
    "globs": (None, "ls " + "*a*b " * 20_000, "allow"),
    "quotes": (["sh", "-c", "'" * 100_000], None, "deny"),  # a program without a name
    "backslashes": (["x", "\\" * 130_000], None, "allow"),
    "options without end": (["git", *["-a"] * 340_000], None, "deny"),
    "more than a command may have": (["ls", *["a"] * 600_000], None, "deny"),
    "a longer word than a command may have": (["ls", "a" * 200_000], None, "deny"),
    "more text than a command may have": (None, "ls " + "a" * 200_000, "deny"),
}


@pytest.mark.parametrize("what", LONG)
def test_long_commands_are_judged_in_bounded_memory(what: str) -> None:
    argv, text, decision = LONG[what]
    rules = [Rule[str]("deny", command=f"git {word}") for word in "abcdefghij"]
    preview = Preview(argv=None if argv is None else tuple(argv), shell=text)
    tracemalloc.start()
    try:
        verdict = SecurityPolicy("allow", rules=rules)._judge("bash", EXECUTE, preview)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert verdict.decision == decision
    assert peak < 32 << 20


WORDS = st.text(st.characters(exclude_categories=("Cc", "Cs")), max_size=12)
PROGRAMS = st.text(st.sampled_from("abcxyz019_./-"), min_size=1, max_size=8)


@tries(300)
@given(PROGRAMS, st.lists(WORDS, max_size=6))
def test_quoted_words_are_read_back(program: str, words: list[str]) -> None:
    assert as_argv(shlex.join([program, *words])) == [program, *words]


@tries(200)
@given(
    st.lists(
        st.sampled_from(["env", "nice", "timeout 5", "sh -c", "xargs", "sudo", "eval", "nohup", "mytool -x"]),
        max_size=6,
    )
)
def test_a_command_behind_any_wrappers_is_found(wrappers: list[str]) -> None:
    argv = ["touch", "x"]
    for wrapper in wrappers:
        first, *options = wrapper.split()
        argv = [first, *options, shlex.join(argv)] if first in ("sh", "eval") else [first, *options, *argv]
    assert judge(argv, Rule("deny", command="touch")) == "deny"
    assert judge(shlex.join(argv), Rule("deny", command="touch")) == "deny"


@tries(200)
@given(
    st.lists(st.sampled_from(["git", "push", "-C", "x", "--force", "stash", "/bin/git", "git push", "*"]), max_size=8)
)
def test_a_rule_that_matches_a_command_matches_it_behind_another(words: list[str]) -> None:
    rule = Rule[str]("deny", command="git push")
    if judge(words, rule) == "deny":
        assert judge(["mytool", "-x", *words], rule) == "deny"


def test_what_rules_on_commands_need_is_loaded_with_the_first_of_them() -> None:
    """Not before, and nothing when a call is judged: tools may have changed the files by then."""
    code = (
        "import sys\n"
        "from toolkit.guard import Preview, Rule, SecurityPolicy\n"
        "loaded = lambda: {name for name in sys.modules if name.startswith('toolkit.guard.policy.commands')}\n"
        "SecurityPolicy('allow', rules=[Rule('deny', path='x')])._judge('bash', ['execute'], Preview(shell='ls'))\n"
        "assert not loaded()\n"
        "policy = SecurityPolicy('deny', rules=[Rule('deny', command='rm'), Rule('allow', command='ls')])\n"
        "assert loaded()\n"
        "before = set(sys.modules)\n"
        "policy._judge('bash', ['execute'], Preview(shell='env ls -l | git log'))\n"
        "assert set(sys.modules) == before\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize("decision", ["deny", "ask"])
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("git push origin", ""),
        ("cd x && /usr/bin/git push origin", ""),
        ("pytest $OPTIONS | tail", " (it matches every command that cannot be read, like this one: write out variables and $(…)"),
        ("sh -c '$x'", " (it matches every command that cannot be read, like this one"),
        ("sudo git push", " (it matches 'git' wherever it stands in a command, even as an argument or in quotes; if it is only data"),
        ("ls 'a; git push'", " (it matches 'git' wherever it stands in a command"),
    ],
)  # fmt: skip
def test_the_verdict_says_why_a_rule_matches(decision: Any, text: str, reason: str) -> None:
    """Nobody understands why `pytest $OPTIONS` is refused by a rule on `git push`, unless it is said."""
    policy = SecurityPolicy[str]("allow", rules=[Rule(decision, command="git push")])
    because = policy._judge("bash", EXECUTE, Preview(shell=text)).because
    decided = f"decided by Rule({decision!r}, command='git push')"
    assert because.startswith(decided + reason)
    assert reason or because == decided
