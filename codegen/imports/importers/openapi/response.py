"""What an operation answers -> a tool's output schema: one where the document promises JSON, else none."""

from __future__ import annotations

import re
from typing import Final

from toolkit.codegen.imports.importers.openapi.documents import Documents, Node
from toolkit.codegen.imports.importers.openapi.media import is_json, offered, plain
from toolkit.codegen.imports.importers.openapi.schema import Schemas
from toolkit.spec.model import Json

_SUCCESS: Final = re.compile(r"2(?:\d\d|XX)", re.IGNORECASE)


def read_output(documents: Documents, operation: Node, schemas: Schemas) -> tuple[Json, str]:
    """The output schema or None, and the media types to ask for.

    Successes that answer different things make a union of them, one that answers nothing adds null: what is typed is what
    may come. Where some success answers something else than JSON, nothing can be promised, and there is no schema.
    """
    answers = list(_successes(documents, operation))
    if operation.path[-1] == "head":
        return None, "*/*"
    media = [each for answer in answers for each in offered(documents, answer)]
    accept = ", ".join(dict.fromkeys(plain(name) for name, _ in media)) or "*/*"
    if not media or not all(_has_json(documents, answer) for answer in answers):
        return None, accept
    asked = list(dict.fromkeys(plain(name) for name, _ in media if is_json(name)))
    found: list[Json] = []
    for answer in answers:
        schema = _schema(documents, answer, schemas)
        if schema is None:
            return None, ", ".join(asked)
        if schema not in found:
            found.append(schema)
    root: Json = found[0] if len(found) == 1 else {"anyOf": found}
    return root, ", ".join("application/json" if "*" in name else name for name in asked)


def _successes(documents: Documents, operation: Node) -> list[Node]:
    """The answers of statuses 2xx in their order; those of ``default`` where there are none of them."""
    responses = operation.below("responses")
    if responses is None:
        return []
    if not isinstance(responses.value, dict):
        documents.add("'responses' must be an object", responses)
        return []
    children = dict(responses.children())
    statuses = sorted(status for status in children if _SUCCESS.fullmatch(status))
    chosen = [children[status] for status in statuses] or [children[word] for word in ("default",) if word in children]
    followed = [documents.followed(node) for node in chosen]
    return [node for node in followed if node is not None]


def _has_json(documents: Documents, answer: Node) -> bool:
    """Whether an answer is JSON, or nothing at all."""
    media = offered(documents, answer)
    return not media or any(is_json(name) for name, _ in media)


def _schema(documents: Documents, answer: Node, schemas: Schemas) -> Json:
    """The schema of an answer's JSON; null's for an answer of nothing; None where the document says nothing of it."""
    media = offered(documents, answer)
    if not media:
        return {"type": "null"}
    node = next(node for name, node in media if is_json(name))
    schema = node.below("schema")
    return None if schema is None else schemas.convert(schema)
