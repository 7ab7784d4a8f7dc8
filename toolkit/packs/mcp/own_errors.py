"""Errors of ours in the place of a server's answer.

The official client expects an answer to every request. Where we refuse one, the request gets a JSON-RPC error that carries
our error, and ``session.py`` turns it back. A server may use the same code, and must not be believed: its errors lack the
mark, which never leaves this process.
"""

from __future__ import annotations

import secrets
from typing import Final

from mcp_types import ErrorData

from toolkit.errors import SandboxViolation, ToolFailed, ToolkitError

OWN_ERROR: Final = -32099
"""The JSON-RPC code of our own errors; their data say which error it is."""

_MARK: Final = secrets.token_hex(16)


def write_own_error(error: ToolkitError) -> ErrorData:
    """An error of ours as that of an answer; ``read_own_error`` is the way back."""
    reason = error.reason if isinstance(error, ToolFailed) else None
    return ErrorData(code=OWN_ERROR, message=error.message, data={"mark": _MARK, "code": error.code, "reason": reason})


def read_own_error(data: object, message: str) -> ToolkitError | None:
    """The error that ``write_own_error`` wrote into an answer with the code ``OWN_ERROR``; None if it is not ours."""
    match data:
        case {"mark": mark} if mark != _MARK:
            return None
        case {"mark": _, "code": "SANDBOX_VIOLATION"}:
            return SandboxViolation(message)
        case {"mark": _, "reason": str() as reason}:
            return ToolFailed(reason, message)
    return None
