"""Only the part of jsonschema-specifications that the tests use."""

from typing import Any

from referencing import Registry

REGISTRY: Registry[dict[str, Any]]
