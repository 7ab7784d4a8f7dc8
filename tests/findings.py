"""Findings in the short form that tables of expectations use: ``message @ source:pointer``, or ``message @ source:line:column``
for a finding about a place that no pointer leads to."""

from __future__ import annotations

from toolkit.errors import SetupError
from toolkit.schema.problems import Finding


def short_forms(error: SetupError) -> tuple[str, ...]:
    """The findings of an error, each in its short form."""
    assert error.findings and str(error) == "\n".join(map(str, error.findings))
    return tuple(map(short_form, error.findings))


def short_form(found: Finding | str) -> str:
    if isinstance(found, str):
        return found
    place = f"{found.line}:{found.column}" if found.line + found.column > 2 else ""
    return f"{found.message} @ {found.source}:{found.pointer or place}"
