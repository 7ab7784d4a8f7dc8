"""The signature of a tool of a generated package, from its row in the manifest and the text of its models."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from toolkit.runtime.signatures.model_source import CONTENT_OUTPUT, ModelSource
from toolkit.runtime.signatures.plain_types import names_in, parse_type, plain_text
from toolkit.runtime.signatures.signature import ToolSignature, first_sentence

CONTENT_CLASSES: Final = (
    "class ContentOutput: text: str; blocks: list[ContentBlock]; structured: Any",
    "class ContentBlock: type: Literal['text', 'image', 'audio', 'document']; media_type: str | None; data: str | None; "
    "url: str | None; file_id: str | None; text: str | None; filename: str | None",
)
"""What tools without an output schema return; one for all of them."""


def read_signature(row: Mapping[str, Any], source: str) -> ToolSignature:
    """The signature of the tool with this row; ``source`` is the text of its model module."""
    models = ModelSource(source)
    types = [plain_text(parse_type(one["type"])) for one in row["parameters"]]
    mentioned = [name for text in types for name in names_in(parse_type(text))]
    output = f"{row['prefix']}Output"
    returned: Iterable[str] = models.reachable([output])
    if models.has_content_output(output):
        output, returned = CONTENT_OUTPUT, CONTENT_CLASSES
    return ToolSignature(
        name=row["name"],
        attribute=row["attribute"],
        parameters=", ".join(_parameter(one, text) for one, text in zip(row["parameters"], types, strict=True)),
        output=output,
        argument_classes=tuple(models.reachable(mentioned)),
        output_classes=tuple(returned),
        doc=first_sentence(row["description"]),
        renamed=tuple((one["name"], one["wire"]) for one in row["parameters"] if one["name"] != one["wire"]),
    )


def _parameter(one: Mapping[str, Any], kind: str) -> str:
    text = f"{one['name']}: {kind}"
    if one["required"]:
        return text
    return f"{text} = {'...' if one['default'] is None else one['default']}"
