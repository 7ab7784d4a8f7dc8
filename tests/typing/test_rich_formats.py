"""A package with ``formats = "rich"``: models have rich types, and callers may give a value or its text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.codegen.test_formats import BOOKING
from tests.projects import Project
from tests.typing.checkers import CHECKERS, MYPY_AND_REST

pytestmark = pytest.mark.xdist_group("typing")

PROGRAM = """\
from datetime import UTC, date, datetime, time
from typing import reveal_type
from uuid import UUID

from acme.generated import AcmeToolkit, BookArgs, BookInput
from pydantic import AnyUrl


def takes_values_and_texts(toolkit: AcmeToolkit, ids: list[UUID], texts: list[str]) -> None:
    reveal_type(toolkit.invoke("book", {"date-time": "x", "date": "x", "time": "x", "uuid": "x", "uri": "x"}).content.at)  # revealed: datetime
    now = datetime.now(UTC)
    toolkit.invoke("book", {"date-time": now, "date": date.today(), "time": time(8), "uuid": UUID(int=1), "uri": AnyUrl("a:b")})
    toolkit.tools.book(date_time=now, date="2026-01-31", time="08:00:00Z", uuid=ids[0], uri="a:b", ids=ids, ends=None)
    toolkit.tools.book(date_time="x", date="x", time="x", uuid="x", uri="x", ids=texts, links={"a": AnyUrl("a:b")})
    args: BookArgs = {"date-time": now, "date": "x", "time": "x", "uuid": "x", "uri": "x", "ids": [UUID(int=1)], "short": "x"}
    toolkit.invoke("book", args)


def gives_values(value: BookInput) -> None:
    reveal_type(value.date_time)  # revealed: datetime
    reveal_type(value.ids)  # revealed: list[UUID] | None
    reveal_type(value.first)  # revealed: str


def refuses_other_types(toolkit: AcmeToolkit) -> None:
    toolkit.tools.book(date_time=7, date="x", time="x", uuid="x", uri="x")  # error
    toolkit.tools.book(date_time="x", date=time(8), time="x", uuid="x", uri="x")  # error
    toolkit.tools.book(date_time="x", date="x", time="x", uuid="x", uri="x", short=date.today())  # error
    toolkit.invoke("book", {"date-time": 7, "date": "x", "time": "x", "uuid": "x", "uri": "x"})  # error
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    made = Project(tmp_path_factory.mktemp("rich"), [BOOKING], formats="rich")
    made.generate()
    made.write("use.py", PROGRAM)
    return made


@pytest.mark.parametrize("checker", MYPY_AND_REST)
def test_checkers_agree_on_rich_formats(project: Project, checker: str) -> None:
    files: list[Path] = [project.root / "use.py", project.output / "models" / "book.py"]
    report = CHECKERS[checker](files, project.root)
    lines = dict(enumerate(PROGRAM.splitlines(), start=1))
    assert set(report.errors) == {("use.py", number) for number, line in lines.items() if line.endswith("# error")}
    wanted = {number: found[1] for number, line in lines.items() if (found := re.search(r"# revealed: (.+)$", line))}
    assert {number: report.revealed.get(("use.py", number)) for number in wanted} == wanted
