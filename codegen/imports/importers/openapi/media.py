"""Media types: which of those a document offers is taken."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from toolkit.codegen.imports.importers.openapi.documents import Documents, Node

FORM: Final = "application/x-www-form-urlencoded"
MULTIPART: Final = "multipart/form-data"
_TEXTS: Final = ("application/xml", "application/graphql", "application/x-ndjson", "application/yaml")


def plain(media_type: str) -> str:
    """A media type without its parameters.

    >>> plain("Application/JSON; charset=utf-8")
    'application/json'
    """
    return media_type.partition(";")[0].strip().lower()


def is_json(media_type: str) -> bool:
    """Whether JSON may be sent or answered under this name; a document that leaves the type open means JSON.

    >>> [is_json(name) for name in ("application/hal+json", "*/*", "text/plain")]
    [True, True, False]
    """
    name = plain(media_type)
    return name in ("application/json", "text/json", "*/*", "application/*") or name.endswith("+json")


def is_text(media_type: str) -> bool:
    name = plain(media_type)
    return name.startswith("text/") or name in _TEXTS or name.endswith("+xml")


def offered(documents: Documents, owner: Node) -> list[tuple[str, Node]]:
    """The media types under ``content``, each with what is said of it."""
    content = owner.below("content")
    if content is None:
        return []
    if not isinstance(content.value, dict):
        documents.add("'content' must be an object", content)
        return []
    followed = [(name, documents.followed(node)) for name, node in content.children()]
    return [(name, node) for name, node in followed if node is not None]


def best(media: Sequence[tuple[str, Node]]) -> tuple[str, Node] | None:
    """JSON before a form, a form before parts, and before whatever else stands first."""

    def rank(entry: tuple[str, Node]) -> int:
        name = plain(entry[0])
        if name == "application/json":
            return 0
        return 1 if is_json(name) else 2 if name == FORM else 3 if name == MULTIPART else 4

    return min(media, key=rank, default=None)
