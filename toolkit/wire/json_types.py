"""The type of JSON objects, shared by all code that handles arguments."""

from __future__ import annotations

from typing import NewType

JsonObject = NewType("JsonObject", dict[str, object])
"""A JSON object of unknown shape.

For type checkers a dict literal is not one, so a typo in ``invoke("read_file", {"paht": ...})`` cannot fall through to the
dynamic overload. Code that really has unknown arguments writes ``JsonObject(arguments)``.

>>> JsonObject({"path": "a.py"})
{'path': 'a.py'}
"""
