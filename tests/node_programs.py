"""Programs of others that run on node: installed once with npm, where a test needs them."""

from __future__ import annotations

import fcntl
import json
import os
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

NODE = "22.23.3"
OLDEST_NODE = (22, 19)
FOLDER = "TOOLKIT_NODE_PROGRAMS"
"""A variable that names a folder into which the programs, and a node that is new enough, were installed with npm."""


@dataclass(frozen=True)
class NodePackage:
    """A package of npm with a program in it. ``main`` is its file, below the folder of the package."""

    name: str
    version: str
    main: str


@dataclass(frozen=True)
class NodeProgram:
    """An installed program."""

    node: Path
    file: Path

    def command(self, *arguments: str) -> list[str]:
        return [str(self.node), str(self.file), *arguments]


def find_program(package: NodePackage, request: pytest.FixtureRequest) -> NodeProgram:
    """The program in the folder that a variable names, or in pytest's cache, installed now; skips where there is neither."""
    cache = request.config.cache
    assert cache is not None
    given = os.environ.get(FOLDER)
    root = Path(given) if given else cache.mkdir("node-programs")
    wanted = [f"{package.name}@{package.version}", f"{_node_package()}@{NODE}"]
    with (root / "lock").open("w") as lock:  # other workers of pytest may install it at the same time
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _is_installed(package, root) and not given:
            _install(wanted, root)
    node = _find_node(root)
    if node is None or not _is_installed(package, root):
        pytest.skip(f"{root} lacks {' or '.join(wanted)}")
    return NodeProgram(node, _folder(package, root) / package.main)


def _folder(package: NodePackage, root: Path) -> Path:
    return root / "node_modules" / package.name


def _is_installed(package: NodePackage, root: Path) -> bool:
    described = _folder(package, root) / "package.json"
    return described.exists() and json.loads(described.read_text())["version"] == package.version


def _node_package() -> str:
    machine = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    return f"node-{sys.platform}-{machine}"


def _find_node(root: Path) -> Path | None:
    """A node that the programs run on."""
    for node in (shutil.which("node"), root / "node_modules" / _node_package() / "bin" / "node"):
        if node is not None and Path(node).exists():
            version = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=60).stdout
            major, minor, *_ = version.strip().lstrip("v").split(".")
            if (int(major), int(minor)) >= OLDEST_NODE:
                return Path(node)
    return None


def _install(wanted: list[str], root: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip(f"npm is not on this machine: install it, or name a folder with {wanted[0]} in {FOLDER}")
    options = ["--prefix", str(root), "--ignore-scripts", "--no-audit", "--no-fund"]
    try:
        subprocess.run([npm, "install", *options, *wanted], capture_output=True, text=True, timeout=120, check=True)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired, OSError) as error:
        said = getattr(error, "stderr", None) or error
        pytest.skip(f"npm could not install {wanted[0]}, perhaps without a network: {str(said)[-300:]}")
