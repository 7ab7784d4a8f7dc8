"""The records of an audit log as calls: each has a start and an end, which are one thing for readers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def join_records(records: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """One record for each call: its end, or its start while there is no end; and one for each program.

    ``time`` is that of the first record.

    >>> start = {"event": "start", "call": "c1", "time": "10:00"}
    >>> join_records([start, {"event": "end", "call": "c1", "time": "10:01", "outcome": "ok"}])
    [{'event': 'end', 'call': 'c1', 'time': '10:00', 'outcome': 'ok'}]
    """
    calls: dict[Any, Mapping[str, Any]] = {}
    for record in records:
        key = ("program", record.get("program")) if record.get("event") == "program" else record.get("call")
        began = calls.get(key, record).get("time")
        calls[key] = {**record, "time": began}
    return list(calls.values())
