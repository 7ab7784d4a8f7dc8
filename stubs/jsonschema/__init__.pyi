"""The part of jsonschema that the tests use."""

from collections import deque
from collections.abc import Iterator, Sequence

class ValidationError(Exception):
    message: str
    validator: str
    context: Sequence[ValidationError]
    relative_schema_path: deque[str | int]
    @property
    def absolute_schema_path(self) -> deque[str | int]: ...

class Draft202012Validator:
    def __init__(self, schema: object) -> None: ...
    def is_valid(self, instance: object) -> bool: ...
    def validate(self, instance: object) -> None: ...
    def iter_errors(self, instance: object) -> Iterator[ValidationError]: ...

class Draft7Validator(Draft202012Validator): ...
