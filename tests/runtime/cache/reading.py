"""What every test asks of a cache: all of an output, and how it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from toolkit import OutputCache
from toolkit.errors import ToolFailed

UNKNOWN = (
    "TOOL_FAILED: NOT_FOUND: no output is stored under this ref_id: it is mistyped, or the output is too old or was removed "
    "to make room for newer ones; run the tool again to get its output"
)


def kept(ref: str | None) -> str:
    """The ref of what must have been kept."""
    assert ref is not None
    return ref


def whole(cache: OutputCache, session: str, ref: str) -> bytes:
    with cache.open(session, ref) as output:
        data = b"".join(output.chunks())
        assert len(data) == output.size
        return data


def is_unknown(cache: OutputCache, session: str, ref: str) -> bool:
    """Whether the ref is refused; if so, in the one way."""
    try:
        cache.open(session, ref)
    except ToolFailed as error:
        assert (str(error), error.details) == (UNKNOWN, {"reason": "NOT_FOUND"})
        return True
    return False


def files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.iterdir() if file.name != "key")


def used(folder: Path) -> int:
    return sum(file.stat().st_size for file in files(folder))


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    assert {record.name for record in caplog.records} <= {"toolkit.cache"}
    return [record.getMessage() for record in caplog.records]
