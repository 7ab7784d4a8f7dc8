"""What the wheel and the source distribution say and hold: names, extras, versions, and one content for both."""

from __future__ import annotations

import re
import tarfile
import tomllib
import zipfile
from email import message_from_string
from email.message import Message
from pathlib import Path

import pytest

import toolkit
from tests.projects import REPOSITORY
from tests.wheel.installed import build

pytestmark = pytest.mark.xdist_group("scale")

PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
INSTALLATION = (REPOSITORY / "docs" / "installation.md").read_text()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    return zipfile.ZipFile(build("wheel", tmp_path_factory.mktemp("dist")))


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> Message:
    [name] = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
    return message_from_string(wheel.read(name).decode())


def test_the_wheel_claims_one_name(wheel: zipfile.ZipFile) -> None:
    top = {name.partition("/")[0] for name in wheel.namelist()}
    assert top == {"toolkit", f"typed_toolkit-{toolkit.__version__}.dist-info"}
    held = set(wheel.namelist())
    assert {"toolkit/py.typed", "toolkit/generated/py.typed", "toolkit/generated/manifest.json"} <= held
    builtin = REPOSITORY / "toolkit" / "builtin"
    texts = {file.relative_to(REPOSITORY).as_posix() for kind in ("yaml", "md") for file in builtin.rglob(f"*.{kind}")}
    assert len(texts) > 20 and texts <= held
    assert not [name for name in held if "__pycache__" in name or name.endswith(".pyc")]


def test_entry_points(wheel: zipfile.ZipFile) -> None:
    [name] = [name for name in wheel.namelist() if name.endswith("entry_points.txt")]
    assert wheel.read(name).decode().split("\n") == [
        *("[console_scripts]", "toolkit = toolkit.cli.app:main", ""),
        *("[pytest11]", "toolkit = toolkit.testing.plugin", ""),
    ]


def test_metadata(metadata: Message) -> None:
    assert (metadata["Name"], metadata["Version"]) == ("typed-toolkit", toolkit.__version__)
    assert (metadata["License-Expression"], metadata["Requires-Python"]) == ("MIT", ">=3.11")
    classifiers = metadata.get_all("Classifier") or []
    versions = [one.rpartition(" ")[2] for one in classifiers if one.startswith("Programming Language :: Python :: 3.")]
    assert versions == ["3.11", "3.12", "3.13"]
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata.get_payload() == (REPOSITORY / "README.md").read_text()
    assert set(metadata.get_all("Provides-Extra") or []) == set(PROJECT["optional-dependencies"])


@pytest.mark.whole
def test_the_source_distribution_makes_the_same_wheel(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    with tarfile.open(build("sdist", tmp_path)) as archive:
        assert not [member.name for member in archive if member.issym() or member.islnk()]
        archive.extractall(tmp_path / "source", filter="data")
    [source] = (tmp_path / "source").iterdir()
    again = zipfile.ZipFile(build("wheel", tmp_path / "again", source))
    ours = {name: wheel.read(name) for name in wheel.namelist() if not name.endswith("RECORD")}
    assert {name: again.read(name) for name in again.namelist() if not name.endswith("RECORD")} == ours


def test_the_table_of_extras_is_what_the_package_declares() -> None:
    rows = re.findall(r"^\| `(\w+)` \| .+? \| (.+?) \|$", INSTALLATION, re.MULTILINE)
    shown = {extra: re.findall(r"`([\w.-]+)`", packages) for extra, packages in rows}
    declared = {
        extra: [re.match(r"[\w.-]+", one)[0] for one in required]  # type: ignore[index]
        for extra, required in PROJECT["optional-dependencies"].items()
    }
    assert shown == declared


def test_every_command_of_the_page_names_an_extra_that_exists() -> None:
    for extras in re.findall(r"typed-toolkit\[([\w,]+)\]", INSTALLATION):
        assert set(extras.split(",")) <= set(PROJECT["optional-dependencies"])
    assert "pip install 'typed-toolkit[codegen]'" in INSTALLATION
    assert "uv add 'typed-toolkit[codegen]'" in INSTALLATION
