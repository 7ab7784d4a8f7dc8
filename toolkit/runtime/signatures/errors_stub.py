"""The errors that a program may catch, as a stub of the module ``toolkit`` inside."""

from __future__ import annotations

from toolkit import errors

_HEAD = """from typing import Any
class ToolkitError(Exception):
    code: str
    message: str
    tool_name: str | None
    details: dict[str, Any]
    retriable: bool
"""


def errors_stub() -> str:
    """The text of ``toolkit.pyi`` for the checker: every class that ``from toolkit import ...`` may name in a program."""
    return _HEAD + "".join(
        f"class {name}(ToolkitError):{' reason: str' if name == 'ToolFailed' else ' ...'}\n"
        for name in error_names()[1:]
    )


def error_names() -> list[str]:
    """The names of these classes, ``ToolkitError`` first."""
    return [
        "ToolkitError",
        *(kind.__name__ for kind in errors.ToolkitError.__subclasses__() if kind.__module__ == errors.__name__),
    ]
