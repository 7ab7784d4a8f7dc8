"""Media types, and which one of a document's is used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from toolkit.codegen.imports.importers.openapi.documents import DocumentNode, Documents

FORM: Final = "application/x-www-form-urlencoded"
MULTIPART: Final = "multipart/form-data"
_TEXTS: Final = ("application/xml", "application/graphql", "application/x-ndjson", "application/yaml")


def without_parameters(media_type: str) -> str:
    """A media type without its parameters.

    >>> without_parameters("Application/JSON; charset=utf-8")
    'application/json'
    """
    return media_type.partition(";")[0].strip().lower()


def is_json(media_type: str) -> bool:
    """Whether this media type may be JSON; a document that leaves the type open means JSON.

    >>> [is_json(name) for name in ("application/hal+json", "*/*", "text/plain")]
    [True, True, False]
    """
    name = without_parameters(media_type)
    return name in ("application/json", "text/json", "*/*", "application/*") or name.endswith("+json")


def is_text(media_type: str) -> bool:
    name = without_parameters(media_type)
    return name.startswith("text/") or name in _TEXTS or name.endswith("+xml")


def list_media(documents: Documents, owner: DocumentNode) -> list[tuple[str, DocumentNode]]:
    """The media types under ``content``, each with its node."""
    content = owner.below("content")
    if content is None:
        return []
    if not isinstance(content.value, dict):
        documents.add("'content' must be an object", content)
        return []
    followed = [(name, documents.follow_to_object(node)) for name, node in content.children()]
    return [(name, node) for name, node in followed if node is not None]


def choose_media(media: Sequence[tuple[str, DocumentNode]]) -> tuple[str, DocumentNode] | None:
    """JSON before a form, a form before multipart, multipart before the first of the others."""

    def rank(entry: tuple[str, DocumentNode]) -> int:
        name = without_parameters(entry[0])
        if name == "application/json":
            return 0
        return 1 if is_json(name) else 2 if name == FORM else 3 if name == MULTIPART else 4

    return min(media, key=rank, default=None)
