"""The settings of a context: groups, their shorthands, and never both."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

import pytest

from toolkit import (
    CallSettings,
    CommandLimits,
    CommandSettings,
    Concurrency,
    FileSettings,
    SecurityPolicy,
    SetupError,
    ToolkitContext,
)
from toolkit.guard import CommandNetwork, GitMode, Mode, SandboxChoice
from toolkit.runtime.context import ToolkitContext as AnyContext
from toolkit.runtime.surface import OMIT

GROUPS: Mapping[str, type[Any]] = {"files": FileSettings, "commands": CommandSettings, "calls": CallSettings}
SHORTHANDS: Mapping[str, tuple[str, str, object]] = {
    "mode": ("files", "mode", "read-only"),
    "read_roots": ("files", "read_roots", ("/usr",)),
    "write_roots": ("files", "write_roots", ("/srv",)),
    "sandbox": ("commands", "sandbox", "unsafe-none"),
    "command_network": ("commands", "network", "guarded"),
    "git": ("commands", "git", "write"),
    "coerce": ("calls", "coerce", True),
    "output_check": ("calls", "output_check", "warn"),
    "deadline": ("calls", "deadline", 2.5),
}
ONLY_IN_A_GROUP: Mapping[str, tuple[str, str, object]] = {
    "ask_before_writing": ("files", "ask_before_writing", ("ci/**",)),
    "command_limits": ("commands", "limits", CommandLimits(processes=4)),
    "unenforced_rules": ("commands", "unenforced_rules", "accept"),
    "concurrency": ("calls", "concurrency", Concurrency(calls=2)),
}


def made(**settings: Any) -> ToolkitContext:
    return ToolkitContext(".", SecurityPolicy(default="allow"), **settings)


def test_every_shorthand_is_tried() -> None:
    parameters = inspect.signature(AnyContext.__init__).parameters.values()
    assert {parameter.name for parameter in parameters if parameter.default is OMIT} == set(SHORTHANDS)


def test_every_field_of_a_group_is_tried() -> None:
    tried = {(group, field) for group, field, _ in (*SHORTHANDS.values(), *ONLY_IN_A_GROUP.values())}
    assert tried == {(group, field.name) for group, kind in GROUPS.items() for field in fields(kind)}


@pytest.mark.parametrize("word", [*SHORTHANDS, *ONLY_IN_A_GROUP])
def test_a_setting_is_given_in_its_group(word: str) -> None:
    group, field, value = {**SHORTHANDS, **ONLY_IN_A_GROUP}[word]
    assert getattr(made(**{group: GROUPS[group](**{field: value})}), word) == value
    assert getattr(made(), word) != value


@pytest.mark.parametrize("word", SHORTHANDS)
def test_a_shorthand_says_the_same(word: str) -> None:
    _, _, value = SHORTHANDS[word]
    assert getattr(made(**{word: value}), word) == value


@pytest.mark.parametrize("word", SHORTHANDS)
def test_a_group_and_its_shorthand_are_refused(word: str) -> None:
    group, field, value = SHORTHANDS[word]
    with pytest.raises(SetupError, match=rf"{group}= and its shorthand {word}= are both given; write .*\({field}="):
        made(**{group: GROUPS[group](), word: value})
    default = getattr(made(), word)
    with pytest.raises(SetupError, match=f"{word}= are both given"):
        made(**{group: GROUPS[group](**{field: value}), word: default})


def test_a_group_and_a_shorthand_of_another_one_fit(tmp_path: Path) -> None:
    context = made(files=FileSettings(read_roots=[tmp_path]), git="write", deadline=3)
    assert (context.read_roots, context.git, context.deadline) == ((str(tmp_path),), "write", 3)


@pytest.mark.parametrize(
    ("word", "field", "words"),
    [
        ("mode", "mode", get_args(Mode)),
        ("sandbox", "sandbox", get_args(SandboxChoice)),
        ("command_network", "network", get_args(CommandNetwork)),
        ("git", "git", get_args(GitMode)),
    ],
)
def test_a_wrong_word_is_refused_wherever_it_stands(word: str, field: str, words: tuple[str, ...]) -> None:
    expected = f"{word} must be one of {', '.join(words)}, not 'sometimes'"
    with pytest.raises(SetupError, match=f"^{expected}$"):
        made(**{word: "sometimes"})
    group, _, _ = SHORTHANDS[word]
    with pytest.raises(SetupError, match=f"^{expected}$"):
        GROUPS[group](**{field: "sometimes"})


@pytest.mark.parametrize("name", GROUPS)
def test_a_group_of_the_wrong_type_is_refused(name: str) -> None:
    with pytest.raises(SetupError, match=rf"{name} must be {GROUPS[name].__name__}\(\.\.\.\), not dict"):
        made(**{name: {"mode": "read-only"}})
    with pytest.raises(SetupError, match=r"concurrency must be Concurrency\(\.\.\.\), not int"):
        CallSettings(concurrency=3)  # type: ignore[arg-type]
