"""JSON as Python sees it: the names shared by everything that touches arguments."""

from __future__ import annotations

from typing import NewType

JsonObject = NewType("JsonObject", dict[str, object])
"""A JSON object whose shape no checker knows.

A dict literal never is one, so a typo in ``invoke("read_file", {"paht": ...})`` cannot fall through to the
dynamic overload; code that really holds unknown arguments says ``JsonObject(arguments)``.

>>> JsonObject({"path": "a.py"})
{'path': 'a.py'}
"""
