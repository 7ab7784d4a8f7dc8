"""Allow rules on commands: everyday lines can be allowed, and nothing passes a rule that does not spell it.

Each variant is an everyday command with an argument that makes it load or run what somebody else chose.
"""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import tries
from toolkit.guard import Permission, Preview, Rule, SecurityPolicy, Verdict
from toolkit.guard.policy.commands import exact_rule

EXECUTE: tuple[Permission, ...] = ("execute",)


def judge(rules: list[str], command: str | tuple[str, ...], cwd: str = ".", variables: tuple[str, ...] = ()) -> Verdict:
    text, argv = (command, None) if isinstance(command, str) else (None, command)
    allowing: list[Rule[str]] = [Rule("allow", command=words) for words in rules]
    preview = Preview(shell=text, argv=argv, cwd=cwd, variables=variables)
    return SecurityPolicy("deny", rules=allowing)._judge("bash", EXECUTE, preview)


EVERYDAY: list[tuple[str, list[str]]] = [
    ("pytest -q 2>&1 | tail -5", ["pytest -q", "tail -5"]),
    ("git diff HEAD~1 -- src/", ["git diff HEAD~1 -- src/"]),
    ("FOO=bar make test", ["FOO=bar make test"]),
    ("cd sub && make", ["make"]),
    ("git log --oneline -5", ["git log *"]),
    ("git status --short && git diff --stat", ["git status --short", "git diff --stat"]),
    ("ls -la src/*.py", ["ls -la src/*.py"]),
    ("grep -rn 'TODO' src | head -20", ["grep -rn * src", "head -*"]),
    ("find . -name '*.py' | xargs wc -l", ["find . -name *.py", "xargs wc -l"]),
    ("cat data.txt | sort | uniq -c | sort -rn", ["cat *.txt", "sort", "uniq -c", "sort -rn"]),
    ("python3 -m pytest tests/test_a.py::test_b -x", ["python3 -m pytest tests/*::* -x"]),
    ('echo "version: $(git describe --tags)"', ["echo *", "git describe --tags"]),
    ("git diff $(git merge-base main HEAD) -- src", ["git diff *", "git merge-base main HEAD"]),
    ("make build > build.log 2>&1", ["make build > build.log"]),
    ("npm ci && npm test", ["npm ci", "npm test"]),
    ("rm -rf build dist *.egg-info", ["rm -rf build dist *.egg-info"]),
    ("mkdir -p out && cp README.md out/", ["mkdir -p out", "cp README.md out/"]),
    ("sed -n '1,40p' src/app.py", ["sed -n 1,40p src/app.py"]),
    ("python3 -c 'import sys; print(sys.version)'", ["python3 -c 'import sys; print(sys.version)'"]),
    ("curl -s https://example.org/x.json | jq .name", ["curl -s https://example.org/*", "jq *"]),
    ('git add -A && git commit -m "Fix the parser"', ["git add -A", "git commit -m *"]),
    ("test -f a.txt || touch a.txt", ["test -f a.txt", "touch a.txt"]),
    ("[ -d build ] && ls build", ["[ -d build ]", "ls build"]),
    ("PYTHONPATH=src python3 app.py", ["PYTHONPATH=* python3 app.py"]),
    ("wc -l < data.csv", ["wc -l < *.csv"]),
    ("git stash && git pull --rebase && git stash pop", ["git stash", "git pull --rebase", "git stash pop"]),
    ("tail -n 50 log.txt 2>/dev/null", ["tail -n * log.txt"]),
    ("docker compose up -d", ["docker compose up -d"]),
    ("awk -F, '{print $2}' data.csv", ["awk -F, '{print $2}' data.csv"]),
    ("# build\nmake -j4\n\nmake install  # as root", ["make -j4", "make install"]),
]


@pytest.mark.every_row
@pytest.mark.parametrize(("line", "rules"), EVERYDAY, ids=[line for line, _ in EVERYDAY])
def test_an_everyday_line_is_allowed_by_the_rules_that_spell_it(line: str, rules: list[str]) -> None:
    verdict = judge(rules, line)
    assert verdict.decision == "allow", verdict.because
    for place in range(len(rules)):  # each rule is needed
        assert judge(rules[:place] + rules[place + 1 :], line).decision == "deny"
    assert judge(rules, f"{line.partition('#')[0] or 'make'}; rm x").decision == "deny"


# What one would allow, and the same with an argument that runs something.
VARIANTS: list[tuple[str, str]] = [
    ("mypy src", "mypy --python-executable ./x.sh src"),
    ("mypy src", "mypy --config-file evil.ini src"),
    ("pylint src", "pylint --init-hook 'import evil' src"),
    ("pylint src", "pylint --load-plugins=evil src"),
    ("flake8 src", "flake8 --config evil.cfg src"),
    ("pyright", "pyright --pythonpath ./x.sh"),
    ("pytest -q", "pytest -q -p evil"),
    ("pytest -q", "pytest -q -c evil.ini"),
    ("pytest -q", "pytest -q --rootdir evil"),
    ("pytest tests/*", "pytest tests/a.py @evil.txt"),
    ("python3 -m pytest", "python3 -m evil"),
    ("python3 app.py", "python3 -i app.py"),
    ("python3 app.py", "python3 -c 'import evil' app.py"),
    ("tox", "tox -c evil.ini"),
    ("nox", "nox -f evil.py"),
    ("coverage run -m pytest", "coverage run --rcfile=evil.cfg -m pytest"),
    ("sphinx-build docs out", "sphinx-build -c evil docs out"),
    ("mkdocs build", "mkdocs build -f evil.yml"),
    ("alembic upgrade head", "alembic -c evil.ini upgrade head"),
    ("gunicorn app:app", "gunicorn -c evil.py app:app"),
    ("uvicorn app:app", "uvicorn --app-dir evil app:app"),
    ("flask run", "flask --app evil run"),
    ("django-admin check", "django-admin check --settings=evil"),
    ("ansible-playbook site.yml", "ansible-playbook site.yml evil.yml"),
    ("pip install -r requirements.txt", "pip install -r requirements.txt ./evil"),
    ("uv sync", "uv run ./x.sh"),
    ("poetry install", "poetry run ./x.sh"),
    ("hatch build", "hatch run ./x.sh"),
    ("jupyter nbconvert a.ipynb", "jupyter nbconvert a.ipynb --execute evil.ipynb"),
    ("pre-commit run", "pre-commit run -c evil.yaml"),
    ("cmake -B build", "cmake -P evil.cmake"),
    ("cmake -B build", "cmake -C evil.cmake -B build"),
    ("ctest", "ctest -S evil.cmake"),
    ("make test", "make -f evil.mk test"),
    ("make test", "make test SHELL=./x.sh"),
    ("make test", "make test --eval='$(shell ./x.sh)'"),
    ("ninja", "ninja -f evil.ninja"),
    ("meson setup build", "meson setup build --native-file evil.ini"),
    ("gcc -c a.c", "gcc -c a.c -wrapper ./x.sh"),
    ("gcc -c a.c", "gcc -c a.c -fplugin=./evil.so"),
    ("clang -c *.c", "clang -c a.c -fplugin=./evil.so"),
    ("ld -o a a.o", "ld -plugin ./evil.so -o a a.o"),
    ("cargo test", "cargo test --config 'target.x.runner=\"./x.sh\"'"),
    ("cargo build", "cargo build --manifest-path evil/Cargo.toml"),
    ("rustc a.rs", "rustc a.rs -C linker=./x.sh"),
    ("go test ./...", "go test -exec ./x.sh ./..."),
    ("go vet ./...", "go vet -vettool=./x.sh ./..."),
    ("go build ./...", "go build -toolexec ./x.sh ./..."),
    ("npm test", "npm test --script-shell=./x.sh"),
    ("npm install", "npm install ./evil"),
    ("npx tsc", "npx ./evil"),
    ("yarn build", "yarn exec ./x.sh"),
    ("pnpm test", "pnpm exec ./x.sh"),
    ("node app.js", "node -r ./evil.js app.js"),
    ("deno task build", "deno run evil.ts"),
    ("bun test", "bun test --preload ./evil.ts"),
    ("jest", "jest --config evil.js"),
    ("jest", "jest --globalSetup ./evil.js"),
    ("mocha", "mocha --require ./evil.js"),
    ("vitest run", "vitest run --config evil.ts"),
    ("eslint src", "eslint --config evil.js src"),
    ("eslint src", "eslint --rulesdir evil src"),
    ("prettier --check .", "prettier --check . --plugin=./evil.js"),
    ("webpack", "webpack --config evil.js"),
    ("rollup -c", "rollup -c evil.js"),
    ("vite build", "vite build --config evil.ts"),
    ("babel src", "babel src --plugins ./evil.js"),
    ("gulp build", "gulp -f evil.js build"),
    ("mvn test", "mvn -f evil/pom.xml test"),
    ("gradle test", "gradle -I evil.gradle test"),
    ("ant test", "ant -f evil.xml test"),
    ("java -jar app.jar", "java -javaagent:evil.jar -jar app.jar"),
    ("javac A.java", "javac -processorpath evil A.java"),
    ("ruby app.rb", "ruby -r ./evil app.rb"),
    ("rspec", "rspec -r ./evil"),
    ("rake test", "rake -f evil.rb test"),
    ("bundle install", "bundle exec ./x.sh"),
    ("perl a.pl", "perl -Mevil a.pl"),
    ("prove -l t", "prove -l --exec ./x.sh t"),
    ("lua a.lua", "lua -l evil a.lua"),
    ("php a.php", "php -d auto_prepend_file=evil.php a.php"),
    ("git log -5", "git -c core.pager=./x.sh log -5"),
    ("git log -*", "git log -5 --output=evil"),
    ("git diff", "git diff --ext-diff"),
    ("git fetch origin", "git fetch --upload-pack=./x.sh origin"),
    ("git push origin main", "git push --receive-pack=./x.sh origin main"),
    ("rg TODO *", "rg --pre ./x.sh TODO src"),
    ("find . -name a*", "find . -name a -exec ./x.sh ';'"),
    ("fd py", "fd py -x ./x.sh"),
    ("tar tf a.tar", "tar tf a.tar --checkpoint=1 --checkpoint-action=exec=./x.sh"),
    ("sed -n 1,5p *", "sed -n '1e ./x.sh' f"),
    ("awk '{print $1}' f", "awk 'BEGIN{system(\"./x.sh\")}' f"),
    ("sort f", "sort --compress-program=./x.sh f"),
    ("rsync -av a b", "rsync -av -e ./x.sh a b"),
    ("man ls", "man -P ./x.sh ls"),
    ("docker build .", "docker build -f evil ."),
    ("terraform plan", "terraform -chdir=evil plan"),
    ("kubectl get pods", "kubectl --kubeconfig evil get pods"),
    ("ssh host uptime", "ssh -o ProxyCommand=./x.sh host uptime"),
    ("sqlite3 a.db .tables", "sqlite3 a.db '.shell ./x.sh'"),
]


def test_the_variants_are_many() -> None:
    assert len(VARIANTS) >= 98
    assert len({variant.split()[0] for _, variant in VARIANTS}) >= 79


@pytest.mark.every_row
@pytest.mark.parametrize(("rule", "variant"), VARIANTS, ids=[variant for _, variant in VARIANTS])
def test_no_variant_passes_a_rule_that_does_not_spell_it(rule: str, variant: str) -> None:
    rules = [rule for rule, _ in VARIANTS]
    assert judge(rules, variant).decision == "deny"
    assert judge(rules, tuple(shlex.split(variant))).decision == "deny"
    # The controls: the everyday command passes, and so does the variant with a rule that spells it, or ends with a star.
    everyday = rule.replace("*", "x")
    assert judge([rule], everyday).decision == judge([rule], tuple(shlex.split(everyday))).decision == "allow"
    assert judge([variant], variant).decision == judge([f"{variant.split()[0]} *"], variant).decision == "allow"


SPELLED: list[tuple[str, str | tuple[str, ...], bool]] = [
    ("git log", "git log", True),
    ("git log", "git log -1", False),
    ("git log *", "git log", True),
    ("git log *", "git log --oneline -5", True),
    ("git log *", "git", False),
    ("git log *", "git logout", False),
    ("git log*", "git logout", True),
    ("git * log", "git --no-pager log", True),
    ("git * log", "git log", False),
    ("git * log", "git -C x log", False),
    ("git log --format=*", "git log '--format=a b'", True),
    ("git log --format=*", "git log --format=", True),
    ("git log --*=*x", "git log --a=bx", True),
    ("git log --*=*x", "git log --abx", False),
    ("ls '*'", ("ls", "*"), True),
    ("ls '*'", ("ls", "a"), False),
    ("ls \\*", ("ls", "*"), True),
    ("ls 'a b'", "ls a\\ b", True),
    ("ls ''", "ls", False),
    ("ls a?", ("ls", "ab"), False),
    ("ls a?", ("ls", "a?"), True),
    ("ls a?", "ls a?", True),
    ("ls a?", "ls 'a?'", True),
    ("ls *.py", "ls *.py", True),
    ("ls *.py", "ls a*.py", False),
    ("ls *.py", "ls a.py", True),
    ("ls *", "ls $x", True),
    ("ls * -l", "ls $x -l", False),
    ("ls * -l", 'ls "$x" -l', False),
    ("ls a*", "ls a$x", False),
    ("./git log", "git log", False),
    ("git log", "./git log", False),
    ("git log", ("/usr/bin/git", "log"), False),
    ("make test > build.log", "make test >build.log 2>&1", True),
    ("make test > build.log", "make test > build.log2", False),
    ("make test > build.log", "make test >> build.log", False),
    ("make test > build.log", "make test 2> build.log", False),
    ("make test > build.log", "make test > build.log > x", False),
    ("make test > build.log", "make test", False),
    ("make test > *.log", "> a.log make test", True),
    ("make * > a.log", "make x y > a.log", True),
    ("make test *", "make test > x", False),
    ("FOO=bar make", "FOO=bar make", True),
    ("FOO=bar make", "make", False),
    ("FOO=bar make", "FOO='bar' make", True),
    ("FOO=bar make", "FOO=bar BAZ=x make", False),
    ("FOO=* make", "FOO='a b' make", True),
    ("FOO=* make", "FOO=$x make", False),
    ("make *", "FOO=bar make", False),
    ("FOO=bar make", ("FOO=bar", "make"), False),
    ("env FOO=bar make", "env FOO=bar make", True),
    ("cd sub", "cd sub", True),
    ("make", "cd sub; make", True),
    ("make", "cd sub", False),
    ("make", "cd a b; make", False),
    ("export A=*", "export A=1", True),
    ("sudo make *", "sudo make install", True),
    ("sh -c 'make x'", "sh -c 'make x'", True),
    ("sh -c 'make x'", "sh -c 'make x; rm y'", False),
]  # fmt: skip


@pytest.mark.every_row
@pytest.mark.parametrize(("rule", "command", "is_covered"), SPELLED)
def test_a_rule_covers_the_words_that_it_spells(rule: str, command: str | tuple[str, ...], is_covered: bool) -> None:
    assert judge([rule], command).decision == ("allow" if is_covered else "deny")


PLACES: list[tuple[str, str | tuple[str, ...], str, bool]] = [
    ("./ok.sh", "./ok.sh", ".", True),
    ("./ok.sh", "./ok.sh", "././", True),
    ("./ok.sh", "./ok.sh", "evil", False),
    ("./ok.sh", "./ok.sh", "evil/..", False),
    ("./ok.sh", ("./ok.sh",), "/evil", False),
    ("./ok.sh", "cd evil && ./ok.sh", ".", False),
    ("bin/ls", "bin/ls", "evil", False),
    ("make test", "make test", "evil", True),
    ("/bin/ls", "/bin/ls", "src", True),
]


@pytest.mark.parametrize(("rule", "command", "cwd", "is_covered"), PLACES)
def test_the_directory_does_not_choose_what_a_name_runs(
    rule: str, command: str | tuple[str, ...], cwd: str, is_covered: bool
) -> None:
    assert judge([rule], command, cwd).decision == ("allow" if is_covered else "deny")


@pytest.mark.every_row
@pytest.mark.parametrize(
    ("variable", "is_covered"),
    [
        *((name, True) for name in ("LANG", "LC_ALL", "TZ", "CI", "NO_COLOR", "PYTHONUNBUFFERED", "COLUMNS")),
        *((name, False) for name in ("TAR_OPTIONS", "RIPGREP_CONFIG_PATH", "XDG_CONFIG_HOME", "CC", "PIP_INDEX_URL")),
        *((name, False) for name in ("npm_config_script_shell", "GOFLAGS", "RUSTC", "LANGUAGE", "lang", "LC_", "")),
    ],
)
def test_a_variable_of_the_call_is_covered_if_it_is_harmless_or_spelled(variable: str, is_covered: bool) -> None:
    for rule in ("tar tf x.tar", "tar *"):
        verdict = judge([rule], ("tar", "tf", "x.tar"), variables=("TZ", variable))
        assert verdict.decision == ("allow" if is_covered else "deny")
    if variable and not is_covered:
        spelled = [f"{variable}=* tar tf x.tar"]
        assert judge(spelled, ("tar", "tf", "x.tar"), variables=(variable,)).decision == "allow"
        assert judge([f"{variable}=x tar tf x.tar"], ("tar", "tf", "x.tar"), variables=(variable,)).decision == "deny"
        assert judge(spelled, ("tar", "tf", "x.tar")).decision == "deny"


@pytest.mark.parametrize(
    ("rule", "command", "reason", "exact"),
    [
        ("git log", "git log -1 secret", "Rule('allow', command='git log'): it covers only the words that it spells", "git log -1 secret"),
        ("git log *", "git diff 'secret *'", "Rule('allow', command='git log *'): it covers only the words that it spells", "git diff 'secret *'"),
        ("ls", "ls $(secret)", "", None),
        ("ls", "ls $secret", "Rule('allow', command='ls'): it covers only the words that it spells, not a glob, a variable or $(…)", None),
        ("ls", "ls &", "allow rules cover only commands that can be read", None),
        ("make", "make > secret", "Rule('allow', command='make'): it does not spell the redirection", "make > secret"),
        ("make", "A=secret make", "Rule('allow', command='make'): it does not spell the assignment", "A=secret make"),
        ("./ok.sh", "cd x; ./ok.sh", "Rule('allow', command='./ok.sh'): it covers this program only in the workspace's own directory", None),
        ("git diff", "git diff | head secret", "Rule('allow', command='git diff'): it covers only a part of what is run", "head secret"),
    ],
)  # fmt: skip
def test_the_verdict_says_what_is_not_covered(rule: str, command: str, reason: str, exact: str | None) -> None:
    verdict = judge([rule], command)
    assert verdict.because.startswith(f"the policy's default is deny ({reason}" if reason else "the policy's default")
    assert verdict.exact_rule == exact
    # The reason goes into the audit log.
    assert "secret" not in verdict.because
    # A rule about something else is no reason.
    assert judge(["wc"], command.replace(" &", "")).because == "the policy's default is deny"


def test_the_exact_rule_is_the_nearest_to_what_runs() -> None:
    verdict = judge(["git *", "git log", "git log --stat"], "git log -1")
    assert verdict.decision == "allow"
    verdict = judge(["git diff", "git log", "git log --stat --all"], "git log --stat")
    assert "command='git log --stat --all'" in verdict.because
    assert verdict.exact_rule == "git log --stat"


EXACT: list[tuple[Preview, str | None]] = [
    (Preview(shell="git log -1"), "git log -1"),
    (Preview(argv=("git", "log", "--grep=a *")), "git log '--grep=a *'"),
    (Preview(argv=("grep", "$x", "it's", "", "=a", "~/b", "a\nb")), "grep '$x' 'it'\"'\"'s' '' '=a' '~/b' 'a\nb'"),
    (Preview(shell="A='b c' D= make  x>y.log 2>&1 <z"), "A='b c' D='' make x > y.log < z"),
    (Preview(shell="ls *"), None),
    (Preview(shell="ls $x"), None),
    (Preview(shell="ls $(id)"), None),
    (Preview(shell="ls | wc"), None),
    (Preview(shell="cd sub && make"), None),
    (Preview(shell="ls &"), None),
    (Preview(shell="X=1"), None),
    (Preview(shell="> x"), None),
    (Preview(argv=()), None),
    (Preview(argv=("a b", "c")), None),
    (Preview(argv=("A=b", "c")), None),
    (Preview(argv=("time", "c")), None),
    (Preview(argv=("./x",)), "./x"),
    (Preview(argv=("./x",), cwd="sub"), None),
    (Preview(argv=("make",), variables=("CC",)), None),
    (Preview(argv=("make",), variables=("CI",)), "make"),
    (Preview(argv=("make", "\x1b")), None),
]


@pytest.mark.parametrize(("preview", "text"), EXACT)
def test_the_exact_rule_of_a_call(preview: Preview, text: str | None) -> None:
    assert exact_rule(preview) == text


LETTERS = st.characters(exclude_categories=["Cs"])
WORD = st.text(LETTERS | st.sampled_from("*?[]'\"\\$~= "), max_size=6)


@tries(400)
@given(st.lists(WORD, max_size=4), st.lists(WORD, max_size=4))
def test_the_exact_rule_covers_this_and_nothing_else(words: list[str], others: list[str]) -> None:
    rule = exact_rule(Preview(argv=("git", *words)))
    if rule is None:
        return
    assert judge([rule], ("git", *words)).decision == "allow"
    assert (judge([rule], ("git", *others)).decision == "allow") == (words == others)


def test_long_commands_are_judged_in_linear_time() -> None:
    """With quadratic time these would take minutes."""
    rules = ["git log *", "a a" + "*b" * 50, "sort -*"]
    for command in (
        ("git", *["--no-pager"] * 90_000),
        ("sort", *["-u"] * 300_000),
        ("a", "a" + "b" * 100_000 + "x"),
    ):
        assert judge(rules, command).decision == "deny"
    for text in (
        "a|" * 60_000 + "a",
        "$(" * 60_000,
        "'" * 120_001,
        "a && " * 20_000 + "a",
        '"$(' * 30_000,
        "\\" * 120_001,
    ):
        assert judge(rules, text).decision == "deny"


def test_and_the_variants_would_have_run(tmp_path: Path) -> None:
    """A control with the programs that every machine has."""
    (tmp_path / "x.sh").write_text("#!/bin/sh\ntouch pwned\n")
    (tmp_path / "x.sh").chmod(0o755)
    (tmp_path / "f").write_text("b\n")
    subprocess.run(["tar", "cf", "a.tar", "f"], cwd=tmp_path, check=True)
    for program in ("find", "tar", "sed", "awk"):
        variant = next(variant for _, variant in VARIANTS if variant.startswith(program))
        subprocess.run(["bash", "-c", variant.replace("-name a", "-name f")], cwd=tmp_path, capture_output=True)
        assert (tmp_path / "pwned").exists(), variant
        (tmp_path / "pwned").unlink()
