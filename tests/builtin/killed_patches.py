"""Run as a program: a toolkit that is killed at each step of ``apply_patch``, and the next toolkit in that workspace."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

from tests.builtin.patches import add, delete, envelope, update
from tests.files.killed import build, journals, killed_at, tree
from toolkit.generated import SecurityPolicy, Toolkit, ToolkitContext, create_agent_toolkit

PATCH = envelope(
    update("a.txt", "@@", "-a", "+new a"),
    add("new/deep/b.txt", "new b"),
    delete("d.txt"),
    add("new/c.sh", "new c"),
    update("e.txt", "@@", "-e", "+new e", to="sub/e2.txt"),
)


def toolkit_over(base: Path) -> Toolkit:
    policy: SecurityPolicy = SecurityPolicy(default="allow")
    return create_agent_toolkit(ToolkitContext(workspace=base / "ws", policy=policy, state_dir=base / "state"))


def apply(base: Path) -> None:
    with toolkit_over(base) as toolkit:
        toolkit.tools.apply_patch(patch=PATCH)


def main(base: Path) -> None:
    for number in range(1, 1000):
        shutil.rmtree(base, ignore_errors=True)
        build(base)
        was_killed = killed_at(number, apply, base)
        left = tree(base / "ws")
        toolkit_over(base).close()
        found = {
            "left": left,
            "tree": tree(base / "ws"),
            "journals": [n for n in journals(base) if "journal" in n or "left" in n],
        }
        sys.stdout.write(json.dumps(found) + "\n")
        if not was_killed:
            return


if __name__ == "__main__":
    os.umask(0o022)
    main(Path(sys.argv[1]))
