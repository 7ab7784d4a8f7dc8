"""What a reader of the folder tree may rely on: few files beside each other, and one class for one name."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from pathlib import Path

from tests.projects import REPOSITORY

MAX_FILES = 15
SHARED_ON_PURPOSE = {"Accumulator"}
"""Every provider's stream has one."""


def product_files() -> list[Path]:
    return [file for name in ("toolkit", "codegen") for file in (REPOSITORY / name).rglob("*.py")]


def test_no_folder_holds_more_files_than_a_reader_takes_in() -> None:
    counts = Counter(file.parent.relative_to(REPOSITORY).as_posix() for file in product_files())
    assert {folder: count for folder, count in counts.items() if count > MAX_FILES} == {}


def test_no_two_classes_share_a_name() -> None:
    found: dict[str, list[str]] = defaultdict(list)
    for file in product_files():
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(file.relative_to(REPOSITORY).as_posix())
    repeated = {name: files for name, files in found.items() if len(files) > 1 and name not in SHARED_ON_PURPOSE}
    assert repeated == {}


def test_no_module_has_a_name_that_says_nothing() -> None:
    vague = {"utils", "util", "helpers", "helper", "common", "misc", "stuff"}
    assert [file for file in product_files() if file.stem in vague] == []
