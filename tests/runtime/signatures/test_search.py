"""Search by words: the tool that a person would expect comes first."""

from __future__ import annotations

from typing import Any

import pytest

from acme.generated import SecurityPolicy
from tests.runtime.conftest import MakeDoor
from toolkit.runtime.discovery import ToolIndex


def found(door: Any, query: str, limit: int = 10) -> list[str]:
    return [definition.name for definition in door.search_tools(query, limit=limit)]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("read_file", "read_file"),
        ("readFile", "read_file"),
        ("reading files", "read_file"),
        ("fetch a web page", "webfetch"),
        ("URL", "webfetch"),
        ("regular expression", "grep"),
        ("wildcard", "glob"),
        ("git branch", "git_status_summary"),
        ("apply a diff to many files", "apply_patch"),
        ("run shell text", "bash"),
        ("delegate to a subagent", "task"),
        ("directories", "list"),
        ("create or replace whole file", "write_file"),
        ("expected_replacements", "edit"),
    ],
)
def test_the_best_match_is_first(make_door: MakeDoor, query: str, first: str) -> None:
    assert found(make_door(), query)[0] == first


@pytest.mark.parametrize("query", ["", "   ", "teleportation", "the of and", "\x00", "(" * 1000])
def test_a_query_without_words_of_any_tool_finds_nothing(make_door: MakeDoor, query: str) -> None:
    assert found(make_door(), query) == []


def test_the_number_of_matches_is_limited(make_door: MakeDoor) -> None:
    door = make_door()
    assert len(found(door, "file")) > 2
    assert found(door, "file", limit=2) == found(door, "file")[:2]


def test_only_tools_that_the_policy_may_allow_are_found(make_door: MakeDoor) -> None:
    policy: Any = SecurityPolicy("deny", {"write_file": "allow"})
    assert found(make_door(policy), "file") == ["write_file"]


def rows(**descriptions: str) -> dict[str, dict[str, Any]]:
    return {
        name: {"name": name, "title": None, "description": text, "inputSchema": {"type": "object"}}
        for name, text in descriptions.items()
    }


def test_equally_good_tools_are_in_the_order_of_their_names() -> None:
    index = ToolIndex(rows(b="Send mail.", c="Send mail.", a="Send mail."))
    assert index.search("mail", ["c", "b", "a"], 10) == ["a", "b", "c"]


def test_a_rare_word_counts_more_than_a_common_one() -> None:
    index = ToolIndex(rows(one="Send a letter.", two="Send a letter.", three="Send a pigeon."))
    assert index.search("send pigeon", ["one", "two", "three"], 1) == ["three"]


def test_the_exact_name_is_first_whatever_it_consists_of() -> None:
    index = ToolIndex(rows(x="Do something.", mail="x x x x"))
    assert index.search("x", ["mail", "x"], 10)[0] == "x"


def test_no_tools() -> None:
    assert ToolIndex({}).search("mail", [], 10) == []
