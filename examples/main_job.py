"""``make run``: generate the typed surface, type-check the sample agent, run it in a sandboxed workspace. Offline."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from codegen.run import generate
from codegen.settings import find_settings
from examples.agent import ScriptedModel, first_line_of, open_toolkit, run_agent, script
from toolkit import ToolCall, ToolResult

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
        answer = run_in(Path(folder) / "workspace")
    print(f"\n   answer: {answer}")
    return 0


def run_in(workspace: Path) -> str:
    for path, text in {
        "src/version.py": '__version__ = "1.4.2"\n',
        "src/app.py": "print('hi')\n",
        "README.md": "# Demo\n",
    }.items():
        file = workspace / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    (workspace.parent / "secrets.txt").write_text("not for agents\n")
    with open_toolkit(workspace) as toolkit:
        answer = run_agent(toolkit, ScriptedModel(script()), show_call)
        print(
            f'\n   your own code: first_line_of(toolkit, "src/version.py") == {first_line_of(toolkit, "src/version.py")!r}'
        )
    return answer


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
