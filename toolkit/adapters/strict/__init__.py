"""Strict mode, there and back: a schema a provider can enforce, and the receipt that turns its answers back.

>>> tags = {"type": "object", "additionalProperties": {"type": "string"}}
>>> receipt = to_strict({"type": "object", "properties": {"tags": tags}})
>>> receipt.is_strict, receipt.decode({"tags": [{"key": "a", "value": "b"}]})
(True, {'tags': {'a': 'b'}})

Providers differ in what they enforce, so each has its rules: ``OPENAI`` unless said otherwise.

>>> limited = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}}
>>> to_strict(limited, ANTHROPIC).schema["properties"]
{'n': {'type': 'integer', 'description': '(minimum: 1)'}}
"""

from toolkit.adapters.strict.adapter import choose_strict
from toolkit.adapters.strict.check import check_strict
from toolkit.adapters.strict.receipt import Note, Problem, StrictReceipt
from toolkit.adapters.strict.rules import ANTHROPIC, BEDROCK, OPENAI, StrictRules
from toolkit.adapters.strict.transform import to_strict

__all__ = [
    "ANTHROPIC",
    "BEDROCK",
    "OPENAI",
    "Note",
    "Problem",
    "StrictReceipt",
    "StrictRules",
    "check_strict",
    "choose_strict",
    "to_strict",
]
