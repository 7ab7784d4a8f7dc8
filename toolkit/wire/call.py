"""A model's request to run a tool, and its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NewType, TypeAlias

JsonObject = NewType("JsonObject", dict[str, object])
"""A JSON object of unknown shape.

For type checkers a dict literal is not one, so a typo in ``invoke("read_file", {"paht": ...})`` cannot fall through to the
dynamic overload. Code that really has unknown arguments writes ``JsonObject(arguments)``.

>>> JsonObject({"path": "a.py"})
{'path': 'a.py'}
"""
ResultKind: TypeAlias = Literal["text", "data", "error", "multimodal"]
_FIND: Final = "_find_ref"


@dataclass(frozen=True, init=False)
class ToolCall:
    """One tool call, from any provider.

    ``raw_arguments`` is the argument text as the provider sent it. Unless it is blank, the call path reads *it*, so that
    text which is not JSON is refused instead of passing for an empty object.

    >>> call = ToolCall("call_1", "read_file", {"path": "a.py"})
    >>> call.arguments["path"]
    'a.py'
    """

    id: str
    name: str
    arguments: JsonObject
    metadata: Mapping[str, object]
    raw_arguments: str | None

    def __init__(
        self,
        id: str,
        name: str,
        arguments: Mapping[str, object],
        metadata: Mapping[str, object] | None = None,
        raw_arguments: str | None = None,
    ) -> None:
        # Every call makes one. The constructor of a frozen dataclass would take more than twice as long.
        fields = self.__dict__
        fields["id"] = id
        fields["name"] = name
        # A dict is not copied: values are kept as they are.
        fields["arguments"] = arguments if isinstance(arguments, dict) else dict(arguments)
        fields["metadata"] = {} if metadata is None else metadata
        fields["raw_arguments"] = raw_arguments

    @property
    def unread_text(self) -> str | None:
        """The argument text, or None if it is blank: providers send an empty text for a tool without parameters."""
        text = self.raw_arguments
        return text if text and not text.isspace() else None


@dataclass(frozen=True, init=False)
class ToolResult:
    """The result of the call with this id; ``value`` is kept as it is, and adapters serialise it.

    ``text`` holds a str, ``data`` a JSON value, ``error`` the text ``CODE: message``, ``multimodal`` a tuple of
    content blocks. ``output_ref`` refers to the whole output in the output cache, if it is kept there; an output that
    ``value`` holds whole is kept when its ref is first read. ``output`` is the tool's typed output if a toolkit ran the
    call: it is for the program, is not sent and not stored as JSON.
    """

    tool_call_id: str
    name: str
    kind: ResultKind
    value: object
    output_ref: str | None = None
    output: object = field(default=None, repr=False, compare=False, metadata={"is_stored": False})

    def __init__(
        self,
        tool_call_id: str,
        name: str,
        kind: ResultKind,
        value: object,
        output_ref: str | None = None,
        output: object = None,
    ) -> None:
        # Every call makes one. The constructor of a frozen dataclass would take more than twice as long.
        fields = self.__dict__
        fields["tool_call_id"] = tool_call_id
        fields["name"] = name
        fields["kind"] = kind
        fields["value"] = value
        fields["output_ref"] = output_ref
        fields["output"] = output

    def __repr__(self) -> str:
        # A ref that nobody has read yet is not shown: finding it would store the output.
        shown = ("tool_call_id", "name", "kind", "value", "output_ref")
        fields = ", ".join(f"{name}={self.__dict__[name]!r}" for name in shown if name in self.__dict__)
        return f"{type(self).__name__}({fields})"

    @property
    def ref_if_kept(self) -> str | None:
        """``output_ref`` if the output is kept already, as it is if ``value`` holds only a part of it. Keeps nothing."""
        ref: str | None = self.__dict__.get("output_ref")
        return ref

    def _find_ref_with(self, find: Callable[[], str | None]) -> None:
        """Lets ``output_ref`` be found at its first use; for the toolkit that makes the result."""
        fields = self.__dict__
        del fields["output_ref"]
        fields[_FIND] = find

    def __getstate__(self) -> dict[str, object]:
        self.output_ref  # noqa: B018  # what finds it stays here
        return {name: value for name, value in self.__dict__.items() if name != _FIND}


class _OutputRef:
    """Finds the ref of a result that has none yet. Instances that have one are read without this."""

    def __get__(self, result: ToolResult | None, owner: type[ToolResult]) -> str | None:
        if result is None:
            return None  # the default of the field
        fields = result.__dict__
        find: Callable[[], str | None] | None = fields.get(_FIND)
        found = fields["output_ref"] = None if find is None else find()
        return found


# Type checkers see a plain field.
setattr(ToolResult, "output_ref", _OutputRef())  # noqa: B010
