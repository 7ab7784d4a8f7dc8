"""Strict mode in an adapter: which definitions are sent in it, and calls turned back to the tool's own schema."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from toolkit.adapters.lossless import forget_difference, keep_difference
from toolkit.adapters.requests import OPENAI_NAME, name_argument, provider_name, text_tools, wants_strict
from toolkit.adapters.strict.check import check_strict, request_share
from toolkit.adapters.strict.receipt import Problem, StrictReceipt
from toolkit.adapters.strict.rules import OPENAI, StrictRules
from toolkit.adapters.strict.transform import to_strict
from toolkit.adapters.values import JsonDict
from toolkit.wire.call import ToolCall
from toolkit.wire.definition import AnyDefinition, OutputSchema, ToolDefinition
from toolkit.wire.query import QueryOptions, QueryResult

_AS_SENT = "as_sent"


def strict_receipt(
    definition: ToolDefinition, strict: bool | None, provider: str, rules: StrictRules
) -> StrictReceipt | None:
    """The receipt of a definition for which strict mode is requested; None if it is sent as it is.

    The definition decides, else ``strict``. One that was decoded from this provider's traffic is sent again as it was.
    """
    if not wants_strict(definition, strict) or _is_as_sent(definition, provider):
        return None
    return to_strict(definition.parameters, rules)


def output_receipt(output: OutputSchema, rules: StrictRules) -> StrictReceipt:
    """The receipt of a structured output. If it has more than a request may have, properties with a default are asked for
    instead of optional; if it still has more, the receipt says which limit it is.
    """
    receipt = to_strict(output.schema, rules)
    if _Room(rules).take(receipt, tools=0) is None:
        return receipt
    receipt = to_strict(output.schema, rules.leaner())
    why = _Room(rules).take(receipt, tools=0)
    return receipt if why is None else StrictReceipt(output.schema, (Problem("", why),))


def choose_strict(
    definitions: Iterable[AnyDefinition],
    strict: bool | None,
    provider: str,
    rules: StrictRules,
    output: OutputSchema | None = None,
) -> dict[str, StrictReceipt]:
    """The receipts of the definitions of one request for which strict mode is requested, by the names of the tools.

    Where a provider limits what all strict schemas of a request may have together, and they have more, properties with a
    default are asked for instead of optional. Then tools get strict mode in their order, as long as ``output``, the
    structured output of the same request, leaves room. The receipt of any other tool says which limit it is.
    """
    wanted = [one for one in definitions if isinstance(one, ToolDefinition) and wants_strict(one, strict)]
    if not wanted:
        return {}
    beside = None if output is None else output_receipt(output, rules)
    receipts, is_full = _fill_request(wanted, strict, provider, rules, beside)
    return _fill_request(wanted, strict, provider, rules.leaner(), beside)[0] if is_full else receipts


def _fill_request(
    wanted: Sequence[ToolDefinition],
    strict: bool | None,
    provider: str,
    rules: StrictRules,
    beside: StrictReceipt | None,
) -> tuple[dict[str, StrictReceipt], bool]:
    """The receipts by the names of the tools, and whether there was no room for some."""
    room = _Room(rules)
    if beside is not None:
        room.take(beside, tools=0)
    receipts: dict[str, StrictReceipt] = {}
    is_full = False
    for definition in wanted:
        receipt = strict_receipt(definition, strict, provider, rules)
        why = room.take(StrictReceipt(definition.parameters) if receipt is None else receipt)
        if receipt is not None:
            is_full = is_full or why is not None
            unsent = (Problem("", why),) if why is not None else ()
            receipts[definition.name] = StrictReceipt(definition.parameters, unsent) if unsent else receipt
    return receipts, is_full


@dataclass(slots=True)
class _Room:
    """What the strict schemas of a request have used so far of its limits."""

    rules: StrictRules
    tools: int = 0
    optional: int = 0
    unions: int = 0

    def take(self, receipt: StrictReceipt, tools: int = 1) -> str | None:
        """Makes room for a strict schema; why there is none, if there is none."""
        if not receipt.is_strict or not self.rules.limits_requests:
            return None
        share = request_share(receipt.schema, self.rules)
        used = (
            (self.tools + tools, self.rules.max_tools, "strict tools"),
            (self.optional + share.optional, self.rules.max_optional, "properties that are not required"),
            (self.unions + share.unions, self.rules.max_unions, "schemas with 'anyOf' or several types"),
        )
        for count, most, what in used:
            if most is not None and count > most:
                return f"with it, the strict schemas of the request have {count} {what}: at most {most} are allowed"
        self.tools, self.optional, self.unions = (count for count, _, _ in used)
        return None


def sent_parameters(
    definition: ToolDefinition, strict: bool | None, receipt: StrictReceipt | None
) -> tuple[JsonDict, bool | None]:
    """The schema to send, and the flag to send with it; None for no flag, also if strict mode cannot carry the schema."""
    if receipt is None:
        return definition.parameters, wants_strict(definition, strict)
    return (receipt.schema, True) if receipt.is_strict else (definition.parameters, None)


def mark_as_sent(definition: ToolDefinition, provider: str, rules: StrictRules) -> ToolDefinition:
    """A decoded definition, marked so that a strict schema that we would change is sent unchanged."""
    is_unchanged = not rules.limits_requests and not check_strict(definition.parameters, rules)
    if not definition.strict or is_unchanged:
        return definition
    own = definition.metadata.get(provider)
    kept = {**own, _AS_SENT: True} if isinstance(own, dict) else {_AS_SENT: True}
    return replace(definition, metadata={**definition.metadata, provider: kept})


def _is_as_sent(definition: ToolDefinition, provider: str) -> bool:
    own = definition.metadata.get(provider)
    return isinstance(own, dict) and bool(own.get(_AS_SENT))


def decode_strict_result(
    decode_strict_calls: Callable[[Sequence[ToolCall], Iterable[AnyDefinition], bool | None], list[ToolCall]],
    result: QueryResult,
    options: QueryOptions,
) -> QueryResult:
    """The result with its calls in the form of the tools' own schemas."""
    if not result.tool_calls:
        return result
    return replace(result, tool_calls=decode_strict_calls(result.tool_calls, options.tools, options.strict))


def original_calls(
    calls: Sequence[ToolCall],
    definitions: Iterable[AnyDefinition],
    strict: bool | None,
    provider: str,
    rules: StrictRules,
    sent_name: Callable[[str], str],
    encode_call: Callable[[ToolCall], JsonDict],
    output: OutputSchema | None = None,
) -> list[ToolCall]:
    """Calls with arguments as the tools' own schemas want them.

    ``encode_call`` sends again what the model wrote, as long as the arguments are not changed. A call whose text is not a
    valid JSON object stays as it is: it is refused when it is run.
    """
    called = {call.name for call in calls}
    concerned = [
        one
        for one in definitions
        if isinstance(one, ToolDefinition) and (rules.limits_requests or sent_name(one.name) in called)
    ]
    chosen = choose_strict(concerned, strict, provider, rules, output)
    receipts = {sent_name(name): receipt for name, receipt in chosen.items() if receipt.is_strict}
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


# -- OpenAI's form, which LangChain sends as well -----------------------------------------------------------------------


def original_openai_calls(
    calls: Sequence[ToolCall],
    definitions: Iterable[AnyDefinition],
    strict: bool | None,
    provider: str,
    sent_name: Callable[[str], str],
    encode_call: Callable[[ToolCall], JsonDict],
) -> list[ToolCall]:
    """``original_calls`` for OpenAI's APIs, whose custom tools take a text instead of JSON and have no strict mode."""
    listed = list(definitions)
    if texts := {sent_name(name): argument for name, argument in text_tools(listed).items()}:
        calls = [name_argument(call, texts.get(call.name), provider) for call in calls]
        listed = [one for one in listed if not isinstance(one, ToolDefinition) or one.text_argument is None]
    return original_calls(calls, listed, strict, provider, OPENAI, sent_name, encode_call)


def parameters_to_send(definition: ToolDefinition, strict: bool | None, provider: str) -> tuple[JsonDict, bool | None]:
    """The schema to send, and the value of ``strict`` to send with it; None if strict mode was not asked for."""
    receipt = strict_receipt(definition, strict, provider, OPENAI)
    if receipt is None:
        return definition.parameters, wants_strict(definition, strict)
    return receipt.schema, receipt.is_strict


def encode_output(output: OutputSchema) -> JsonDict:
    """The schema of a structured output. One that strict mode cannot carry is sent without it."""
    receipt = to_strict(output.schema, OPENAI)
    return {
        "name": provider_name(output.name, OPENAI_NAME),
        "schema": receipt.schema,
        "strict": receipt.is_strict,
    }
