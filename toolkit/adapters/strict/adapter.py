"""Strict mode in an adapter: which definitions are sent in it, and calls turned back to the tool's own schema."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from toolkit.adapters.lossless import forget_difference, keep_difference
from toolkit.adapters.plain_json import JsonDict
from toolkit.adapters.strict.check import check_strict
from toolkit.adapters.strict.receipt import StrictReceipt
from toolkit.adapters.strict.transform import to_strict
from toolkit.wire.call import ToolCall
from toolkit.wire.definition import AnyDefinition, ToolDefinition

_AS_SENT = "as_sent"


def strict_receipt(definition: ToolDefinition, strict: bool | None, provider: str) -> StrictReceipt | None:
    """The receipt of a definition for which strict mode is requested; None if it is sent as it is.

    The definition decides, else ``strict``. One that was decoded from this provider's traffic is sent again as it was.
    """
    wanted = definition.strict if definition.strict is not None else strict
    own = definition.metadata.get(provider)
    if not wanted or (isinstance(own, dict) and own.get(_AS_SENT)):
        return None
    return to_strict(definition.parameters)


def mark_as_sent(definition: ToolDefinition, provider: str) -> ToolDefinition:
    """A decoded definition, marked so that a strict schema that we would change is sent unchanged."""
    if not definition.strict or not check_strict(definition.parameters):
        return definition
    marked = {**definition.metadata, provider: {_AS_SENT: True}}
    return ToolDefinition(definition.name, definition.description, definition.parameters, definition.strict, marked)


def original_calls(
    calls: Sequence[ToolCall],
    definitions: Iterable[AnyDefinition],
    strict: bool | None,
    provider: str,
    sent_name: Callable[[str], str],
    encode_call: Callable[[ToolCall], JsonDict],
) -> list[ToolCall]:
    """Calls with arguments as the tools' own schemas want them.

    ``encode_call`` sends again what the model wrote, as long as the arguments are not changed. A call whose text is not a
    valid JSON object stays as it is: it is refused when it is run.
    """
    called = {call.name for call in calls}
    receipts: dict[str, StrictReceipt] = {}
    for definition in definitions:
        if isinstance(definition, ToolDefinition) and sent_name(definition.name) in called:
            receipt = strict_receipt(definition, strict, provider)
            if receipt is not None and receipt.is_strict:
                receipts[sent_name(definition.name)] = receipt
    return [
        _decode_call(call, receipts[call.name], encode_call, provider) if call.name in receipts else call
        for call in calls
    ]


def _decode_call(
    call: ToolCall, receipt: StrictReceipt, encode_call: Callable[[ToolCall], JsonDict], provider: str
) -> ToolCall:
    given = call.arguments if call.unread_text is None else _object(call.unread_text)
    arguments = None if given is None else receipt.decode(given)
    if arguments is None or arguments == given:
        return call
    made = forget_difference(ToolCall(call.id, call.name, arguments, call.metadata), provider)
    return keep_difference(made, provider, encode_call(call), encode_call(made))


def _object(text: str) -> JsonDict | None:
    """The JSON object in a text; None for what the call path would refuse: repeated keys, NaN, anything else."""
    try:
        value = json.loads(text, object_pairs_hook=_refuse_repeated_keys, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _refuse_repeated_keys(pairs: list[tuple[str, Any]]) -> JsonDict:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("a key is duplicated")
    return made


def _refuse_constant(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")
