"""Acme's imports: tools of three origins under prefixes, together with its own, in one typed toolkit."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from acme.generated import SecurityPolicy
from tests.projects import DOWNSTREAM, run
from tests.runtime.conftest import MakeDoor
from toolkit import ToolkitError


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [
        ("add", {"a": 1, "b": 2}, '{"sum":3}'),
        ("maths_add", {"numbers": [1, 2.5]}, "3.5"),
        ("maths_mean", {"numbers": [1, 2]}, "1.5"),
        ("library_find", {"title": "Emma", "shelf": None}, "Emma in any shelf"),
        ("library_lend-book", {"id": 7, "reader": {"name": "Ann"}}, "Ann has 7"),
        ("shapes_search", {"type": "circle"}, '{"names":["a circle"],"area":0.0}'),
    ],
)
def test_each_runs_under_its_own_name(make_door: MakeDoor, name: str, arguments: dict[str, Any], text: str) -> None:
    assert make_door().invoke(name, arguments).text() == text


def test_policies_rule_them_like_any_tool(make_door: MakeDoor) -> None:
    door = make_door(SecurityPolicy(default="deny", tools={"maths_add": "allow"}))
    assert [tool.name for tool in door.get_allowed_tools()] == ["maths_add"]
    for name, arguments in (("maths_mean", {"numbers": [1]}), ("library_find", {"title": "x"})):
        with pytest.raises(ToolkitError, match="TOOL_NOT_ALLOWED"):
            door.invoke(name, arguments)


@pytest.mark.slow
def test_what_is_committed_is_what_the_origins_tell() -> None:
    ran = run([sys.executable, "-m", "toolkit", "check", "--live", "--trust", "maths", "shapes", "library"], DOWNSTREAM)
    assert ran.stdout == "nothing changed\n"
