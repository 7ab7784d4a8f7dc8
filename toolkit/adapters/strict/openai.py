"""Strict mode in the adapters that send OpenAI's form, which are OpenAI's two and LangChain's."""

from __future__ import annotations

from toolkit.adapters.plain_json import JsonDict
from toolkit.adapters.provider_names import OPENAI_NAME, provider_name
from toolkit.adapters.requests import wants_strict
from toolkit.adapters.strict.adapter import strict_receipt
from toolkit.adapters.strict.rules import OPENAI
from toolkit.adapters.strict.transform import to_strict
from toolkit.wire.definition import ToolDefinition
from toolkit.wire.output import OutputSchema


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
