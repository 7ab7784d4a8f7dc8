"""What a reader of the tree may rely on: a module is a concept, and one class has one name."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from pathlib import Path

from tests.projects import REPOSITORY

MAX_MODULES, MAX_FOLDERS, MAX_LEVELS = 350, 45, 3
MAX_MAP_BYTES = 10_000
SHARED_ON_PURPOSE = {"Accumulator"}
"""Every provider's stream has one."""


def product_files() -> list[Path]:
    return [
        file
        for name in ("toolkit", "codegen")
        for file in (REPOSITORY / name).rglob("*.py")
        if "template" not in file.parts and not {"codegen", "generated"} & set(file.relative_to(REPOSITORY).parts[1:2])
    ]


def test_the_house_stays_small_enough_for_one_head() -> None:
    files = [file.relative_to(REPOSITORY) for file in product_files()]
    folders = {file.parent for file in files}
    assert len(files) <= MAX_MODULES
    assert len(folders) <= MAX_FOLDERS
    assert [folder for folder in folders if len(folder.parts) > MAX_LEVELS + 1] == []


def test_the_map_fits_one_page_and_names_every_folder() -> None:
    page = (REPOSITORY / "ARCHITECTURE.md").read_text()
    assert len(page.encode()) <= MAX_MAP_BYTES
    folders = {file.parent.relative_to(REPOSITORY) for file in product_files()}
    listed = [folder for folder in folders if folder.parts[1:2] not in (("adapters",), ("builtin",))]
    assert [folder.as_posix() for folder in listed if f"{folder.name}/" not in page] == []


def test_no_two_classes_share_a_name() -> None:
    found: dict[str, list[str]] = defaultdict(list)
    texts = {file: file.read_text() for file in product_files()}
    seem = {file: re.findall(r"^\s*class\s+(\w+)", text, re.MULTILINE) for file, text in texts.items()}
    count = Counter(name for names in seem.values() for name in names)
    for file, text in texts.items():
        if all(count[name] == 1 for name in seem[file]):  # parsing them all takes seconds
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(file.relative_to(REPOSITORY).as_posix())
    repeated = {name: files for name, files in found.items() if len(files) > 1 and name not in SHARED_ON_PURPOSE}
    assert repeated == {}


def test_no_module_has_a_name_that_says_nothing() -> None:
    vague = {"utils", "util", "helpers", "helper", "common", "misc", "stuff"}
    assert [file for file in product_files() if file.stem in vague] == []
