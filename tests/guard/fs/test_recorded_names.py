"""How records name the places that paths lead to: the same by every way to find them, links and missing files included."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolkit.guard import ResolverName, SandboxFS

NAMES: list[tuple[str, str | None]] = [
    ("a.txt", "a.txt"),
    ("./sub/../a.txt", "a.txt"),
    ("sub", "sub/"),
    ("sub/", "sub/"),
    (".", "./"),
    ("sub/..", "./"),
    ("link", "sub/"),
    ("link/b.txt", "sub/b.txt"),
    ("file-link", "a.txt"),
    ("link/../a.txt", "a.txt"),
    ("new.txt", "new.txt"),
    ("new/deep/x", "new/deep/x"),
    ("link/new", "sub/new"),
    ("dangling", "nowhere"),
    ("out", None),
    ("out/x", None),
    ("../x", None),
    ("/etc/passwd", None),
    ("loop", None),
    ("a.txt/x", None),
    ("", None),
    ("a\0b", None),
    ("EXTRA", "EXTRA/"),
    ("EXTRA/x", "EXTRA/x"),
]


@pytest.mark.every_row
@pytest.mark.parametrize("resolver", ["auto", "walk"])
@pytest.mark.parametrize(("path", "name"), NAMES)
def test_a_path_is_recorded_by_where_it_leads(
    tmp_path: Path, resolver: ResolverName, path: str, name: str | None
) -> None:
    workspace, extra = tmp_path / "workspace", tmp_path / "extra"
    (workspace / "sub").mkdir(parents=True)
    extra.mkdir()
    for file in (workspace / "a.txt", workspace / "sub" / "b.txt", extra / "x"):
        file.write_text("")
    links = {"link": "sub", "file-link": "sub/../a.txt", "dangling": "nowhere", "out": "..", "loop": "loop"}
    for link, target in links.items():
        (workspace / link).symlink_to(target)
    path = path.replace("EXTRA", str(extra))
    name = None if name is None else name.replace("EXTRA", str(extra))
    with SandboxFS(workspace, read_roots=[extra], resolver=resolver) as fs:
        assert fs.name_real(path) == name
        assert fs.locate(path).name == name
