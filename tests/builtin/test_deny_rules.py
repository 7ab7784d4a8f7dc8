"""One deny rule, through every tool that touches files: by the path itself, through links, in other case, by walking."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from toolkit import ToolCall
from toolkit.generated import Rule, SecurityPolicy, Toolkit, ToolkitContext, create_agent_toolkit

SECRET = "the-key-itself"
WAYS_IN = ["secrets/key", "link-to-key", "link-to-folder/key", "SECRETS/key", "a/../secrets/key", "./secrets//key"]


def patch_of(path: str) -> str:
    return f"*** Begin Patch\n*** Update File: {path}\n@@\n-{SECRET}\n+changed\n*** End Patch\n"


def git_patch_of(path: str) -> str:
    return f"--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-{SECRET}\n+changed\n"


BY_PATH: dict[str, Callable[[str], tuple[str, dict[str, Any]]]] = {
    "read_file": lambda path: ("read_file", {"path": path}),
    "write_file": lambda path: ("write_file", {"path": path, "content": "changed\n"}),
    "edit": lambda path: ("edit", {"path": path, "old_string": SECRET, "new_string": "changed"}),
    "edit, guessing": lambda path: ("edit", {"path": path, "old_string": "the-key-itsel", "new_string": "changed"}),
    "edit, dry": lambda path: ("edit", {"path": path, "old_string": SECRET, "new_string": "c", "dry_run": True}),
    "apply_patch": lambda path: ("apply_patch", {"patch": patch_of(path)}),
    "apply_patch, git": lambda path: ("apply_patch", {"patch": git_patch_of(path)}),
    "apply_patch, delete": lambda path: ("apply_patch", {"patch": f"*** Begin Patch\n*** Delete File: {path}\n*** End Patch\n"}),
    "apply_patch, move": lambda path: ("apply_patch", {"patch": f"*** Begin Patch\n*** Update File: {path}\n*** Move to: out.txt\n@@\n-{SECRET}\n+{SECRET}\n*** End Patch\n"}),
    "grep": lambda path: ("grep", {"pattern": "key", "path": path}),
}  # fmt: skip
WALKS: dict[str, tuple[str, dict[str, Any]]] = {
    "grep": ("grep", {"pattern": "key"}),
    "grep, files": ("grep", {"pattern": "key", "output": "files"}),
    "glob": ("glob", {"pattern": "**/key", "include_hidden": True, "respect_gitignore": False}),
    "list": ("list", {"recursive": True, "include_hidden": True}),
    "tree": ("tree", {"include_hidden": True, "max_depth": 12, "respect_gitignore": False}),
}


def workspace(root: Path) -> Path:
    for path, text in {"secrets/key": SECRET, "a/note": "a key is elsewhere", "open/key": "an open key"}.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")
    (root / "link-to-key").symlink_to("secrets/key")
    (root / "link-to-folder").symlink_to("secrets")
    return root


def toolkit_over(root: Path, *rules: Rule) -> Toolkit:
    return create_agent_toolkit(ToolkitContext(root, SecurityPolicy(default="allow", rules=list(rules))))


@pytest.mark.each("act", "way")
@pytest.mark.parametrize("way", WAYS_IN)
@pytest.mark.parametrize("act", BY_PATH)
def test_no_tool_gets_at_it(tmp_path: Path, act: str, way: str) -> None:
    root = workspace(tmp_path)
    name, arguments = BY_PATH[act](way)
    with toolkit_over(root, Rule("deny", path="secrets/**")) as toolkit:
        result = toolkit.call(ToolCall("1", name, arguments))

    told = json.dumps(result.value, default=str)
    assert SECRET not in told
    assert (root / "secrets" / "key").read_text() == f"{SECRET}\n"
    assert not (root / "out.txt").exists()
    assert result.kind == "error", told


@pytest.mark.parametrize("walk", WALKS)
def test_no_walk_shows_it(tmp_path: Path, walk: str) -> None:
    root = workspace(tmp_path)
    name, arguments = WALKS[walk]
    with toolkit_over(root, Rule("deny", path="secrets/**")) as toolkit:
        message = toolkit.invoke(name, arguments)  # type: ignore[arg-type]

    told = message.content.model_dump_json() + message.text()
    assert SECRET not in told
    assert "secrets/key" not in told
    assert "open/key" in told or walk == "tree", "its neighbour is there"
    assert message.content.hidden >= 1


@pytest.mark.parametrize("act", BY_PATH)
def test_without_the_rule_each_of_them_does(tmp_path: Path, act: str) -> None:
    """The control: what the rule stops would have happened."""
    root = workspace(tmp_path)
    name, arguments = BY_PATH[act]("secrets/key")
    with toolkit_over(root) as toolkit:
        result = toolkit.call(ToolCall("1", name, arguments))

    changed = (root / "out.txt").exists() or not (root / "secrets/key").exists() or "changed" in (root / "secrets/key").read_text()  # fmt: skip
    assert changed or SECRET in json.dumps(result.value, default=str)


@pytest.mark.parametrize("walk", WALKS)
def test_without_the_rule_walks_show_it(tmp_path: Path, walk: str) -> None:
    root = workspace(tmp_path)
    name, arguments = WALKS[walk]
    with toolkit_over(root) as toolkit:
        told = toolkit.invoke(name, arguments).content.model_dump_json()  # type: ignore[arg-type]
    assert "secrets/key" in told
