# Only the part of PyYAML that this project uses.
from collections.abc import Iterator

class Mark:
    line: int
    column: int

class YAMLError(Exception): ...

class MarkedYAMLError(YAMLError):
    problem: str | None
    problem_mark: Mark | None
    context_mark: Mark | None

class Event:
    start_mark: Mark

class StreamEndEvent(Event): ...

class NodeEvent(Event):
    anchor: str | None

class AliasEvent(NodeEvent): ...

class ScalarEvent(NodeEvent):
    tag: str | None
    implicit: tuple[bool, bool]
    value: str

class CollectionStartEvent(NodeEvent):
    tag: str | None

class SequenceStartEvent(CollectionStartEvent): ...
class SequenceEndEvent(Event): ...
class MappingStartEvent(CollectionStartEvent): ...
class MappingEndEvent(Event): ...
class SafeLoader: ...
class CSafeLoader: ...

def parse(stream: str, Loader: type[SafeLoader] | type[CSafeLoader] = ...) -> Iterator[Event]: ...
def safe_dump(data: object, *, allow_unicode: bool | None = ..., sort_keys: bool = ...) -> str: ...
