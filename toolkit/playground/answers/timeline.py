"""The audit log as a timeline: the latest calls with their durations, and the state of the chain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from toolkit.runtime.audit.joined import join_records
from toolkit.runtime.audit.verification import read_records, verify

MAX_CALLS_SHOWN: Final = 200
_SHOWN: Final = (
    "event", "call", "call_id", "program", "line", "tool", "time", "decision", "rule", "answer", "sandbox", "outcome",
    "reason", "arguments_bytes", "output_bytes", "duration_ms",
)  # fmt: skip


def describe_audit(path: str, session_id: str) -> dict[str, Any]:
    """The latest calls, and what is wrong with the chain. A log may hold earlier sessions and those of other programs."""
    report = verify(path)
    calls = join_records(read_records(path))
    return {
        "records": report.head.lines,
        "head": str(report.head),
        "openCalls": report.open_calls,
        "problems": report.problems[:20],
        "total": len(calls),
        "calls": [_describe_call(call, session_id) for call in calls[-MAX_CALLS_SHOWN:]],
    }


def _describe_call(call: Mapping[str, Any], session_id: str) -> dict[str, Any]:
    return {**{key: call.get(key) for key in _SHOWN}, "isOwn": call.get("session") == session_id}
