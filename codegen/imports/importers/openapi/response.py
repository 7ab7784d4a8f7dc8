"""The responses of an operation -> a tool's output schema, or none if the document does not promise JSON."""

from __future__ import annotations

import re
from typing import Final

from toolkit.codegen.imports.importers.openapi.documents import DocumentNode, Documents
from toolkit.codegen.imports.importers.openapi.media import is_json, list_media, without_parameters
from toolkit.codegen.imports.openapi_schema import Schemas
from toolkit.schema.spec import Json

_SUCCESS: Final = re.compile(r"2(?:\d\d|XX)", re.IGNORECASE)


def read_output(documents: Documents, operation: DocumentNode, schemas: Schemas) -> tuple[Json, str]:
    """The output schema or None, and the value of the ``Accept`` header.

    Several successful responses become a union, and one without content adds null. If a successful response is not JSON,
    nothing can be promised, and there is no schema.
    """
    successes = list(_list_successes(documents, operation))
    if operation.path[-1] == "head":
        return None, "*/*"
    media = [each for response in successes for each in list_media(documents, response)]
    accept = ", ".join(dict.fromkeys(without_parameters(name) for name, _ in media)) or "*/*"
    if not media or not all(_has_json(documents, response) for response in successes):
        return None, accept
    asked = list(dict.fromkeys(without_parameters(name) for name, _ in media if is_json(name)))
    found: list[Json] = []
    for response in successes:
        schema = _schema(documents, response, schemas)
        if schema is None:
            return None, ", ".join(asked)
        if schema not in found:
            found.append(schema)
    root: Json = found[0] if len(found) == 1 else {"anyOf": found}
    return root, ", ".join("application/json" if "*" in name else name for name in asked)


def _list_successes(documents: Documents, operation: DocumentNode) -> list[DocumentNode]:
    """The responses with status 2xx in order; without any, the ``default`` response."""
    responses = operation.below("responses")
    if responses is None:
        return []
    if not isinstance(responses.value, dict):
        documents.add("'responses' must be an object", responses)
        return []
    children = dict(responses.children())
    statuses = sorted(status for status in children if _SUCCESS.fullmatch(status))
    chosen = [children[status] for status in statuses] or [children[word] for word in ("default",) if word in children]
    followed = [documents.follow_to_object(node) for node in chosen]
    return [node for node in followed if node is not None]


def _has_json(documents: Documents, response: DocumentNode) -> bool:
    """Whether a response is JSON or has no content."""
    media = list_media(documents, response)
    return not media or any(is_json(name) for name, _ in media)


def _schema(documents: Documents, response: DocumentNode, schemas: Schemas) -> Json:
    """The schema of a JSON response; null for a response without content; None if the document has no schema."""
    media = list_media(documents, response)
    if not media:
        return {"type": "null"}
    node = next(node for name, node in media if is_json(name))
    schema = node.below("schema")
    return None if schema is None else schemas.convert(schema)
