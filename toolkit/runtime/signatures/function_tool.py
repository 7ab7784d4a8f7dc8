"""The signature of a code-first tool, from its function."""

from __future__ import annotations

import keyword
from typing import TYPE_CHECKING, Any

from toolkit.runtime.signatures.python_types import TypeTexts, wire_name
from toolkit.runtime.signatures.signature import ToolSignature, first_sentence
from toolkit.spec.tool_names import attribute_name

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from toolkit.runtime.functions.define import FunctionTool


def function_signature(tool: FunctionTool[..., Any]) -> ToolSignature:
    """The signature of a tool made from a function."""
    prefix = class_prefix(tool.name)
    arguments = TypeTexts(f"{prefix}Args", as_arguments=True)
    outputs = TypeTexts(prefix)
    required: list[str] = []
    optional: list[str] = []
    renamed: list[tuple[str, str]] = []
    for field, info in tool.arguments.reader.model.model_fields.items():
        wire = wire_name(field, info)
        name = wire if wire.isidentifier() and not keyword.iskeyword(wire) else field
        text = f"{name}: {arguments.write(info.annotation)}"
        (required if info.is_required() else optional).append(text + _default(info))
        if name != wire:
            renamed.append((name, wire))
    return ToolSignature(
        name=tool.name,
        attribute=attribute_name(tool.name),
        parameters=", ".join([*required, *optional]),
        output=outputs.write(tool.signature.returns),
        argument_classes=arguments.lines,
        output_classes=outputs.lines,
        doc=first_sentence(tool.description),
        renamed=tuple(renamed),
    )


def class_prefix(name: str) -> str:
    """What the names of a tool's classes begin with.

    >>> class_prefix("math.find_primes")
    'MathFindPrimes'
    """
    return "".join(part[:1].upper() + part[1:] for part in attribute_name(name).split("_"))


def _default(info: FieldInfo) -> str:
    if info.is_required():
        return ""
    value = info.default
    return f" = {value!r}" if type(value) in (str, int, float, bool, type(None)) else " = ..."
