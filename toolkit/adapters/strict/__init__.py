"""Strict mode, there and back: a schema a provider can enforce, and the receipt that turns its answers back.

>>> tags = {"type": "object", "additionalProperties": {"type": "string"}}
>>> receipt = to_strict({"type": "object", "properties": {"tags": tags}})
>>> receipt.is_strict, receipt.decode({"tags": [{"key": "a", "value": "b"}]})
(True, {'tags': {'a': 'b'}})
"""

from toolkit.adapters.strict.check import check_strict
from toolkit.adapters.strict.receipt import Note, Problem, StrictReceipt
from toolkit.adapters.strict.transform import to_strict

__all__ = ["Note", "Problem", "StrictReceipt", "check_strict", "to_strict"]
