"""What MkDocs does not know about this repository: pages that live above ``docs``, and what the reference lists.

The same Markdown is read on a code host and on the site. So the pages above ``docs`` keep their places, and their links are
rewritten here: ``docs/mcp.md`` in the README is ``mcp.md`` on the site, and ``../ARCHITECTURE.md`` is ``architecture.md``.
"""

from __future__ import annotations

import importlib
import posixpath
import re
from pathlib import Path
from typing import Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT: Final = Path(__file__).resolve().parents[2]
ABOVE: Final = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "SECURITY.md": "security.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
}
"""Pages of the site that stand at the top of the repository."""
LINKED: Final = (
    "LICENSE",
    "benchmarks/baseline.json",
    "examples/agent.py",
    "examples/one_loop.py",
    "examples/programs.py",
)
"""Files that pages link to; the site has copies."""

_LINK: Final = re.compile(r"(?P<open>\]\()(?P<target>[^)\s#]+)(?P<anchor>#[^)\s]*)?(?=\))")
_UNBUILT: Final = re.compile(r"^> This page is filled in on the built site .*\n+", re.MULTILINE)
"""What a page of the reference says to those who read it on a code host."""
_NAMES: Final = re.compile(r"^::: names (?P<module>[\w.]+)$", re.MULTILINE)


_WITH_BASES: Final = frozenset(f"toolkit.guard.{name}" for name in ("OpenFile", "SandboxDir", "SandboxFS"))
"""Classes shown with what they inherit, because their bases are not public."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for source, page in ABOVE.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text(encoding="utf-8")))
    for source in LINKED:
        files.append(File.generated(config, f"repository/{source}", content=(ROOT / source).read_bytes()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    here = page.file.src_uri
    source = next((source for source, made in ABOVE.items() if made == here), f"docs/{here}")
    markdown = _NAMES.sub(lambda found: list_names(found["module"]), _UNBUILT.sub("", markdown))
    return _LINK.sub(lambda found: _rewrite(found, source, here), markdown)


def _rewrite(found: re.Match[str], source: str, here: str) -> str:
    """A link of a file of the repository as a link of its page on the site."""
    target, anchor = found["target"], found["anchor"] or ""
    if ":" in target:
        return found[0]
    meant = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
    made = ABOVE.get(meant) or meant.removeprefix("docs/")
    if meant in LINKED:
        made = f"repository/{meant}"
    return f"{found['open']}{posixpath.relpath(made, posixpath.dirname(here) or '.')}{anchor}"


def list_names(module: str) -> str:
    """Directives for all public names of a module."""
    names = sorted(importlib.import_module(module).__all__, key=str.lower)
    return "\n\n".join(_directive(f"{module}.{name}") for name in names)


def _directive(name: str) -> str:
    return f"::: {name}\n    options:\n      inherited_members: true" if name in _WITH_BASES else f"::: {name}"
