"""Shared specs as user projects: spec files by origin, one generated package each."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests import command_line
from tests.corpus.specs import FILES, rows
from toolkit.schema.spec import attribute_name

MCP_KEYS = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")


@dataclass(frozen=True, slots=True)
class SharedTool:
    """One row of the corpus, under a name that no other row has."""

    file: str
    key: str
    origin: str
    wire: str
    definition: dict[str, Any]


def shared_tools(corpus: Path) -> list[SharedTool]:
    """Every shared spec; colliding names get their origin as a prefix, as a user would prefix servers."""
    found = [(file, row) for file in FILES for row in rows(corpus, file)]
    names = [row["name"] for _, row in found]
    prefixed = [f"{_origin(row)}_{row['name']}" for _, row in found]
    keyed = [f"{_origin(row)}_{row['key']}_{row['name']}" for _, row in found]
    for longer in (prefixed, keyed):
        count = Counter(map(attribute_name, names))
        names = [new if count[attribute_name(old)] > 1 else old for old, new in zip(names, longer, strict=True)]
    return [
        SharedTool(file, row["key"], _origin(row), wire, _definition(row, wire))
        for (file, row), wire in zip(found, names, strict=True)
    ]


def _origin(row: dict[str, Any]) -> str:
    """``mcp-server-git`` -> ``mcp_server_git``, ``bfcl:BFCL_v4_simple_java`` -> ``simple_java``."""
    name = row.get("server") or Path(row["source"].rpartition(":")[2]).stem.removeprefix("BFCL_v4_")
    return re.sub(r"\W+", "_", name).strip("_").lower()


def _definition(row: dict[str, Any], wire: str) -> dict[str, Any]:
    definition = {**{key: row[key] for key in MCP_KEYS if row.get(key) is not None}, **row.get("extra", {})}
    return definition if wire == row["name"] else {**definition, "rename": wire}


@dataclass(slots=True)
class SharedProject:
    """Some of the tools in one package. Several packages may share one root; they are generated one after the other."""

    root: Path
    name: str
    tools: Sequence[SharedTool]
    refused: dict[str, str] = field(default_factory=dict)
    """Reasons by key."""

    @property
    def package(self) -> str:
        return f"{self.name}.generated"

    @property
    def output(self) -> Path:
        return self.root / self.name / "generated"

    @property
    def served(self) -> list[SharedTool]:
        return [tool for tool in self.tools if tool.key not in self.refused]

    def rows(self) -> list[dict[str, Any]]:
        """The manifest's row for each tool."""
        manifest = json.loads((self.output / "manifest.json").read_text(encoding="utf-8"))
        found: list[dict[str, Any]] = manifest["tools"]
        return found

    def generate(self) -> None:
        """Generates with the command line. Refused tools are removed, and their reasons kept, until the rest passes."""
        while True:
            sources = self._write()
            done = command_line.toolkit(self.root, "generate", "--json")
            if done.returncode == 0:
                return
            report = json.loads(done.stdout or "{}")
            found = [_blamed(problem, sources) for problem in report.get("problems", ())]
            if not found:
                raise AssertionError(
                    f"nothing was generated, and no problem names a tool\n{done.stdout}\n{done.stderr}"
                )
            # The first reason of each tool is kept.
            self.refused = {**dict(reversed(found)), **self.refused}

    def _write(self) -> dict[str, list[SharedTool]]:
        """Writes settings and spec files. Returns the tools of each file."""
        settings = {"specs": f"{self.name}/tools", "package": self.package, "class": "AcmeToolkit"}
        lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
        shutil.rmtree(self.root / self.name / "tools", ignore_errors=True)
        sources: dict[str, list[SharedTool]] = {}
        for tool in self.served:
            sources.setdefault(f"{self.name}/tools/{Path(tool.file).stem}/{tool.origin}.json", []).append(tool)
        for source, tools in sources.items():
            file = self.root / source
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps({"tools": [tool.definition for tool in tools]}), encoding="utf-8")
        (self.root / "pyproject.toml").write_text("\n".join(["[tool.toolkit]", *lines, ""]))
        (self.root / self.name / "__init__.py").touch()
        return sources


def _blamed(problem: dict[str, Any], sources: dict[str, list[SharedTool]]) -> tuple[str, str]:
    """The key of the tool a problem is about, and the reason."""
    return sources[problem["file"]][int(problem["pointer"].split("/")[2])].key, problem["message"]
