"""What an adapter has stored in the metadata of a value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class WithMetadata(Protocol):
    @property
    def metadata(self) -> Mapping[str, object]: ...


def metadata_of(value: WithMetadata, provider: str) -> dict[str, Any]:
    found = value.metadata[provider]
    assert isinstance(found, dict)
    return found
