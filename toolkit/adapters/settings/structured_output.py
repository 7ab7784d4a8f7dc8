"""Answers that are values of a pydantic model: the schema to ask with, and reading what came."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from typing_extensions import TypeVar

from toolkit.adapters.plain_json import JsonDict
from toolkit.adapters.strict import StrictReceipt, StrictRules
from toolkit.adapters.strict.adapter import output_receipt
from toolkit.errors import OutputError
from toolkit.wire.json_types import JsonObject
from toolkit.wire.output import Output, OutputSchema
from toolkit.wire.query import FinishReason, QueryResult

if TYPE_CHECKING:
    from pydantic import BaseModel

ModelT = TypeVar("ModelT", bound="BaseModel")

# Providers want an object at the root; the value of any other model is this property of one.
_WRAPPER: Final = "value"
_DEFINITIONS: Final = "$defs"
_MAX_ERRORS: Final = 3
_WHY: Final[dict[FinishReason, str]] = {
    "length": "the answer was cut at the token limit: raise 'max_tokens'",
    "tool_calls": "the model called tools instead of answering: run the calls, and ask again with their results",
    "refused": "the model declined to answer",
    "filtered": "the provider's safety filter blocked the request or the answer",
    "paused": "the provider paused the turn: send the conversation again as it is",
    "needs_action": "the provider waits for an approval, or for an action of one of its own tools",
}


def output_schema(model: type[BaseModel]) -> OutputSchema:
    """The schema to ask for values of a model with."""
    schema = model.model_json_schema()
    if not _is_wrapped(model):
        return OutputSchema(model.__name__, JsonObject(schema))
    definitions = {_DEFINITIONS: schema.pop(_DEFINITIONS)} if _DEFINITIONS in schema else {}
    made = {"type": "object", "properties": {_WRAPPER: schema}, "required": [_WRAPPER], "additionalProperties": False}
    return OutputSchema(model.__name__, JsonObject({**made, **definitions}))


def _is_wrapped(model: type[BaseModel]) -> bool:
    from pydantic import RootModel

    return issubclass(model, RootModel)


def enforced_schema(output: OutputSchema, rules: StrictRules, provider: str) -> JsonDict:
    """The schema for a provider that takes none but strict ones; raises ValueError for one that it cannot enforce."""
    receipt = output_receipt(output, rules)
    if not receipt.is_strict:
        places = "; ".join(f"{pointer or 'the schema'}: {why}" for pointer, why in receipt.problems[:_MAX_ERRORS])
        raise ValueError(f"{provider} cannot enforce the schema of {output.name!r}: {places}; change the model there")
    return receipt.schema


def read_output(result: QueryResult, model: type[ModelT], rules: StrictRules | None) -> Output[ModelT]:
    """The value in an answer; raises ``OutputError`` if there is none."""
    from pydantic import ValidationError

    if result.finish_reason != "stop":
        error = result.metadata.get("error")
        why = _WHY.get(result.finish_reason, f"the query failed: {error}")
        raise OutputError(why, result) from (error if isinstance(error, BaseException) else None)
    try:
        answer: Any = json.loads(result.content)
    except (ValueError, RecursionError) as error:
        raise OutputError(f"the answer is not JSON: {error}", result) from error
    receipt = StrictReceipt({}) if rules is None else output_receipt(output_schema(model), rules)
    if isinstance(answer, dict):
        answer = receipt.decode(answer)
        answer = answer.get(_WRAPPER, answer) if _is_wrapped(model) else answer
    try:
        return Output(model.model_validate_json(json.dumps(answer)), result)
    except ValidationError as error:
        found = [f"{'/'.join(map(str, one['loc'])) or 'the whole'}: {one['msg']}" for one in error.errors()]
        more = f"; and {len(found) - _MAX_ERRORS} more" if len(found) > _MAX_ERRORS else ""
        what = "; ".join(found[:_MAX_ERRORS])
        raise OutputError(f"the answer does not fit {model.__name__}: {what}{more}", result) from error
