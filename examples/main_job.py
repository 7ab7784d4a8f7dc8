"""``make run``: generates the typed API, type-checks the sample agent, and runs it in a sandboxed workspace. Offline."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from examples import programs
from examples.agent import changed_files, open_toolkit, run_agent, scripted_model
from toolkit import ToolCall, ToolResult
from toolkit.codegen.run import generate
from toolkit.codegen.settings import find_settings
from toolkit.runtime.audit import AuditReport, verify

HERE = Path(__file__).parent
ROOT = HERE.parent


def main() -> int:
    say("1. Specs become types", "toolkit/builtin/*/*.yaml -> generated/")
    changed = generate(find_settings(ROOT))
    print(f"   {len(changed)} files changed" if changed else "   generated/ is up to date")

    say("2. mypy --strict checks the agent", "examples/agent.py")
    checked = mypy([HERE / "agent.py"])
    print(f"   {checked.splitlines()[-1]}")
    if "Success" not in checked:
        print(checked)
        return 1

    say("3. A wrong program is a type error", "examples/misspelt.py.txt")
    show_mistakes()

    say("4. The agent works in a sandboxed workspace", "a scripted model, no network")
    with tempfile.TemporaryDirectory() as folder:
        answer, report = run_in(Path(folder))
    print(f"\n   answer: {answer}")
    print(f"   audit: {report.head.lines} records, {'; '.join(report.problems) or 'the hash chain is intact'}")

    say("5. A model writes a program, and mypy reads it first", "examples/programs.py")
    programs.main()
    return 1 if report.problems else 0


def run_in(folder: Path) -> tuple[str, AuditReport]:
    workspace, audit = folder / "workspace", folder / "audit.jsonl"
    shutil.copytree(HERE / "shop_project", workspace)
    (folder / "secrets.txt").write_text("not for agents\n")
    has_git = make_repository(workspace)
    with open_toolkit(workspace, audit) as tk:
        answer = run_agent(tk, scripted_model(), show_call)
        if has_git:
            print(f"\n   your own code: changed_files(tk) == {changed_files(tk)!r}")
    return answer, verify(audit)


def make_repository(workspace: Path) -> bool:
    """Create a first commit to compare with, if git is installed."""
    if shutil.which("git") is None:
        return False
    person = ["-c", "user.name=example", "-c", "user.email=example@example.org"]
    for command in (["init", "--quiet"], ["add", "."], [*person, "commit", "--quiet", "-m", "A shop"]):
        subprocess.run(["git", *command], cwd=workspace, check=True)
    return True


def show_call(call: ToolCall, result: ToolResult) -> None:
    arguments = call.raw_arguments or ", ".join(f"{key}={value!r}" for key, value in call.arguments.items())
    mark = "x" if result.kind == "error" else ">"
    print(f"\n   {call.name}({arguments})")
    for line in str(result.value).splitlines():
        print(f"     {mark} {line}")


def show_mistakes() -> None:
    source = (HERE / "misspelt.py.txt").read_text().splitlines()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "misspelt.py"
        copy.write_text("\n".join(source) + "\n")
        for line in mypy([copy]).splitlines():
            found = re.search(r"misspelt\.py:(\d+): error: (.*)", line)
            if found:
                print(f"   {source[int(found[1]) - 1].strip()}\n     x {found[2]}")


def mypy(files: list[Path]) -> str:
    command = [sys.executable, "-m", "mypy", "--strict", "--no-pretty", *map(str, files)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout


def say(title: str, detail: str) -> None:
    print(f"\n{title}  ({detail})")


if __name__ == "__main__":
    sys.exit(main())
