from __future__ import annotations

from enum import Enum
from typing import Any

import pytest
from pydantic import BaseModel, Field

from toolkit.adapters.values import plain
from toolkit.wire import NamedTool


class Inner(BaseModel):
    kind: int = 0


class Outer(BaseModel):
    inner: Inner
    other_name: str = Field("", alias="otherName")
    unset: str = "default"


class Colour(Enum):
    RED = "red"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Outer(inner=Inner(kind=1), otherName="x"), {"inner": {"kind": 1}, "otherName": "x"}),
        ({1: (b"\x00\x01", Colour.RED)}, {"1": ["AAE=", "red"]}),
        (NamedTool("t"), {"name": "t"}),
        ("text", "text"),
        (None, None),
    ],
)  # fmt: skip
def test_makes_plain(value: Any, expected: Any) -> None:
    assert plain(value) == expected


def test_values_the_types_of_an_sdk_do_not_know_are_kept_without_a_warning() -> None:
    """SDKs build their objects without validation, so that servers may send what is newer than the SDK."""
    newer = Outer.model_construct(inner={"kind": "a word"}, _fields_set={"inner"})
    assert plain(newer) == {"inner": {"kind": "a word"}}
