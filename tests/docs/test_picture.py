"""The picture of the README shows what mypy really says."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from docs.site.editor_picture import draw, read_mistakes
from tests.docs.environment import Environment
from tests.docs.pages import PageRun
from tests.guard.ways import needs
from tests.projects import REPOSITORY

pytestmark = pytest.mark.xdist_group("pages")

PICTURE = REPOSITORY / "docs" / "images" / "editor.svg"
PROGRAM = """\
from acme.generated import AcmeToolkit


def read_plan(tk: AcmeToolkit) -> str:
    now = tk.tools.time_get_current_time(timzone="Europe/Berlin")
    if now.weekday == "Monday":
        tk.invoke("read_flie", {"path": "plan.md"})
    return now.datetime
"""


@pytest.mark.slow
def test_the_picture_is_what_mypy_says_about_the_project_of_the_readme(
    run_page: Callable[[str], PageRun], environment: Environment, request: pytest.FixtureRequest
) -> None:
    needs("full")
    project = run_page("README.md").folder
    (project / "plan.py").write_text(PROGRAM)
    (project / "plugin.ini").write_text("[mypy]\nplugins = toolkit.mypy\n")
    command = ["mypy", "--strict", "--show-error-end", "--config-file=plugin.ini", "plan.py"]
    mistakes = read_mistakes(environment.run(command, project, plugin=True).stdout)
    assert [mistake.line for mistake in mistakes] == [5, 6, 7]
    drawn = draw("plan.py", PROGRAM, mistakes)
    if request.config.getoption("--update-snapshots"):
        PICTURE.write_text(drawn)
    assert PICTURE.read_text() == drawn
