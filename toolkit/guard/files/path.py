"""Paths as text: which ones are accepted, and how a name is shown.

Nothing here touches the disk. A ``SandboxPath`` is well formed, not proven safe: whether it stays inside its root is
decided while it is opened (``resolve.py``), never from its text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from toolkit.errors import InvalidArguments, SandboxViolation
from toolkit.visible import is_hidden_character

# The kernel's limit of 4096 includes the closing NUL.
MAX_PATH_BYTES: Final = 4095
MAX_NAME_BYTES: Final = 255


@dataclass(frozen=True, slots=True)
class SandboxPath:
    """A path relative to the workspace, or to the extra root named by ``root``, as the caller wrote it.

    Promise (of ``parse``): no NUL, no lone surrogates, no name or path longer than the kernel accepts, not absolute.
    ``~``, ``$HOME``, ``%2e`` and backslashes have no special meaning.
    Limit: ``..`` parts are kept, because only the kernel knows where ``link/..`` leads.
    """

    parts: tuple[str, ...]
    wants_directory: bool = False
    root: str = ""

    @property
    def text(self) -> str:
        """The parts joined by ``/``; ``.`` for the root itself."""
        return "/".join(self.parts) or "."

    @property
    def shown(self) -> str:
        """How results and messages name it: relative to the workspace, else absolute. It can be used as a path again."""
        return display(self.text if not self.root else "/".join((self.root.rstrip("/"), *self.parts)) or "/")

    @classmethod
    def parse(cls, text: object, root: str, extra: Sequence[str] = ()) -> SandboxPath:
        """Check ``text``. An absolute path below ``root``, compared name by name, is made relative to it.

        Otherwise it is made relative to the first of ``extra`` that it is below.

        >>> SandboxPath.parse("/ws/src//./a.py", root="/ws").text
        'src/a.py'
        """
        if not isinstance(text, str):
            raise InvalidArguments(f"a path must be a string, not {type(text).__name__}")
        _refuse_malformed(text)
        names = split_names(text)
        wants_directory = text.endswith(("/", "/."))
        if not text.startswith("/"):
            return cls(tuple(names), wants_directory)
        for home in (root, *extra):
            top = split_names(home)
            if names[: len(top)] == top:
                return cls(tuple(names[len(top) :]), wants_directory, "" if home == root else home)
        raise outside_error(text)


def outside_error(text: str) -> SandboxViolation:
    """The only error for an escape. It does not repeat an absolute path, which could reveal something about the host."""
    subject = "the absolute path" if text.startswith("/") else f"'{display(text)}'"
    return SandboxViolation(
        f"{subject} is outside the workspace (absolute links count as outside); give a path below it"
    )


def display(text: str) -> str:
    """``text`` on one line, with everything invisible or undecodable escaped as ``\\xNN``, ``\\uNNNN`` or ``\\UNNNNNNNN``.

    Limit: not reversible, because a backslash is not escaped; open such a file by its raw name.

    >>> display("two\\nlines"), display("not utf-8: \\udcff")
    ('two\\\\x0alines', 'not utf-8: \\\\xff')
    """
    return text if text.isprintable() else "".join(map(_escape_if_hidden, text))


def _escape_if_hidden(character: str) -> str:
    if not is_hidden_character(character):
        return character
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # how Python represents a byte that is not UTF-8
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _refuse_malformed(text: str) -> None:
    if not text:
        raise InvalidArguments("a path must not be empty; '.' is the workspace itself")
    if "\0" in text:
        raise InvalidArguments("a path must not contain a NUL character")
    try:
        data = text[: MAX_PATH_BYTES + 1].encode()  # the copy is bounded even if the text is huge
    except UnicodeEncodeError:
        raise InvalidArguments("a path must not contain lone surrogates") from None
    if len(data) > MAX_PATH_BYTES:
        raise InvalidArguments(f"a path must not be longer than {MAX_PATH_BYTES} bytes")
    if max(map(len, data.split(b"/"))) > MAX_NAME_BYTES:
        raise InvalidArguments(f"a name in a path must not be longer than {MAX_NAME_BYTES} bytes")


def split_names(text: str) -> list[str]:
    """The names of a path, without empty ones and ``.``."""
    return [name for name in text.split("/") if name not in ("", ".")]
