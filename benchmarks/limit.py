"""The limit that calls are compared with: the same checks by pydantic-core alone, without a toolkit around them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

from pydantic import BaseModel

TEXT: Final = '{"a": 2, "b": 3}'
LIMIT: Final = "pydantic-core: validate_json, call, validate_python, to_json"
PLAIN_LIMIT: Final = "pydantic-core, its methods looked up at each call"


class PlainInput(BaseModel):
    a: int
    b: int


class PlainOutput(BaseModel):
    sum: int


def add(a: int, b: int) -> dict[str, int]:
    return {"sum": a + b}


def make_limit() -> Callable[[], bytes]:
    """The least that checks arguments and output with models: no name, no policy, no context, no message."""
    validate = PlainInput.__pydantic_validator__.validate_json
    check = PlainOutput.__pydantic_validator__.validate_python
    to_json = PlainOutput.__pydantic_serializer__.to_json

    def limit() -> bytes:
        args = validate(TEXT)
        return to_json(check(add(args.a, args.b)))

    return limit


def plain_limit() -> bytes:
    """The same as a person writes it: the methods are looked up at each call. The base for calls with Python values."""
    args = PlainInput.__pydantic_validator__.validate_json(TEXT)
    output = PlainOutput.__pydantic_validator__.validate_python({"sum": args.a + args.b})
    return PlainOutput.__pydantic_serializer__.to_json(output)


def by_hand() -> str:
    args = PlainInput.model_validate_json(TEXT)
    return PlainOutput.model_validate(add(args.a, args.b)).model_dump_json()


def unchecked() -> str:
    return json.dumps(add(**json.loads(TEXT)))
