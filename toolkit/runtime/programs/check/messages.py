"""What the three checkers say, as one vocabulary: a kind of mistake, and the parts of the message."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_CALLABLE: Final = r"(?:bound method |function |method |class |constructor |overloaded function )?"
_MAX_MESSAGE: Final = 4000

# In a pattern, {word} stands for a quoted part with that name, {callable} for a word before a function, {of} for its class.
_PATTERNS: Final = {
    "none_attribute": (
        'Item "None" of {type} has no attribute {name}',
        "Attribute {name} is not defined on `None` in union {type}",
        "Object of class `NoneType` has no attribute {name}",
    ),
    "union_attribute": (
        "Item {item} of {type} has no attribute {name}",
        "Attribute {name} is not defined on {item} in union {type}",
    ),
    "not_iterable": (
        '{type} has no attribute "__a?iter__".*',
        "{type} object is not iterable",
        "Object of type {type} is not (?:async-)?iterable",
        "Type {type} is not (?:an async )?iterable",
    ),
    "no_context": (
        '{type} has no attribute "__a?(?:enter|exit)__".*',
        "Object of type {type} cannot be used with `(?:async )?with` because .*",
        "Cannot use {type} as a context manager",
    ),
    "member": (
        "Module(?: {type})? has no attribute {name}",
        "Module {type} has no member {name}",
        "No attribute {name} in module {type}",
        "Could not import {name} from {type}",
    ),
    "attribute": (
        "{type} has no attribute {name}",
        "Object of (?:type|class) {type} has no attribute {name}",
    ),
    "name": ("Name {name} is not defined", "Name {name} used when not defined", "Could not find name {name}"),
    "unknown_argument": (
        "Unexpected keyword argument {name} in function {function}",
        "Unexpected keyword argument {name}(?: for {callable}{function}{of})?",
        "Argument {name} does not match any known parameter of {callable}{function}",
    ),
    "not_ordered": (
        'Missing named argument "key" for "sort" of "list"',
        'Value of type variable "SupportsRichComparisonT" of .*',
        ".* upper bound `SupportsDunder[LG]T.*",
    ),
    "missing_argument": (
        "Missing (?:named|positional) arguments? {names} (?:for|in call to) {function}{of}",
        "No arguments? provided for required parameters? {names} of {callable}{function}",
        "Missing argument {names} in function {function}",
    ),
    "positional": (
        "Too many (?:positional )?arguments for {function}{of}",
        "Too many positional arguments to {callable}{function}: expected .*",
        "Expected argument {name} to be passed by name in function {function}",
        "Expected \\d+ positional arguments?, got \\d+ in function {function}",
    ),
    "argument_item": ("(?:List|Dict|Set) (?:item|entry) (?P<index>\\d+) has incompatible type .*",),
    "argument_type": (
        "Argument (?:{name}|\\d+) to {callable}{function}{of} has incompatible type {got}; expected {expected}",
        "Argument to {callable}{function} is incorrect: Expected {expected}, found {got}",
        "Argument {got} is not assignable to parameter {name} with type {expected} in function {function}",
    ),
    "wrong_key": (
        "Invalid index type {got} for {type}; expected type .*",
        'No overload variant of "__getitem__" of {type} matches argument type {got}',
        "Method `__getitem__` of type .* cannot be called with key of type {got} on object of type {type}",
        "Invalid key for (?P<type>dict), got {got}",
        "Cannot index into {type}\\n\\s+No matching overload found .* called with arguments: \\((?P<got>.*)\\)",
    ),
    "not_indexable": (
        "Value of type {type} is not indexable",
        "Cannot subscript object of type {type} with no .*",
        "Cannot index into {type}\\n.* has no attribute `__getitem__`",
    ),
    "operator": (
        "Unsupported operand types for (?P<op>\\S+|not in) \\({left} and {right}\\)",
        'No overload variant of "(?P<op>__\\w+__)" of {left} matches argument type {right}',
        "Operator {op} is not supported between objects of type {left} and {right}",
        "Operator {op} is not supported between two objects of type {left}",
        "{op} is not supported between {left} and {right}",
    ),
    "one_operand": (
        "Unsupported (?:left |right )?operand type for (?:unary )?(?P<op>\\S+|not in) \\({type}\\)",
        "Unary operator {op} is not supported for object of type {type}",
        "Unary {op} is not supported on {type}",
    ),
    "item_assignment": (
        "Invalid subscript assignment with key of type .* and value of type {got} on object of type .*",
        "Incompatible types in assignment \\(expression has type {got}, target has type {expected}\\)",
        "{got} is not assignable to dict (?:key|value) .*",
        "Cannot set item in .*",
    ),
    "return_type": (
        "Incompatible return value type \\(got {got}, expected {expected}\\)",
        "Return type does not match returned value: expected {expected}, found {got}",
        "Returned type {got} is not assignable to declared return type {expected}",
    ),
    "no_return": (
        "Missing return statement",
        "Function (?:always|can) implicitly returns? `None`, which is not assignable to return type .*",
        "Function declared to return .* but is missing an explicit `return`",
    ),
    "assignment": (
        "Incompatible types in assignment \\(expression has type {got}, .*variable has type {expected}\\)",
        "Object of type {got} is not assignable to {expected}",
        "{got} is not assignable to {expected}",
    ),
    "not_callable": (
        "{type} not callable",
        "Object of type {type} is not callable",
        "Expected a callable, got {type}",
    ),
    "not_awaitable": (
        'Incompatible types in "await" \\(actual type {type}, .*',
        "{type} is not awaitable",
        "Type {type} is not awaitable",
    ),
    "not_awaited": (
        "Value of type .* must be used",
        "Object of type .* is not awaited",
        "Result of async function call is unused.*",
    ),
    "unpack": (
        "Too many values to unpack.*",
        "Need more than .* to unpack.*",
        "Not enough values to unpack.*",
        "Cannot unpack .* into \\d+ values?",
    ),
    "raise": (
        "Exception must be derived from BaseException",
        "Cannot raise object of type .*",
        "Expression .* expected `BaseException`",
    ),
    "overload": (
        "No overload variant of {function}{of} matches argument types? .*",
        "No overload of {callable}{function} matches arguments",
        "No matching overload found for function {function} called with arguments: .*",
        "Argument {name} to {callable}{function}{of} has incompatible type overloaded function; .*",
    ),
    "not_an_error": (
        "Recursive types are not allowed at function scope.*",
        "Cannot resolve imported module .*",
        "Cannot find module .*",
    ),
}


class CheckerFinding(NamedTuple):
    """One error as a checker reported it."""

    line: int
    column: int
    code: str
    message: str


class Mistake(NamedTuple):
    """A finding in the common vocabulary. ``kind`` is empty for a message that is not known."""

    kind: str
    parts: dict[str, str]


def classify(message: str) -> Mistake:
    """The kind of a message, and its quoted parts.

    >>> classify('"ReadFileOutput" has no attribute "contnt"; maybe "content"?')
    Mistake(kind='attribute', parts={'type': 'ReadFileOutput', 'name': 'contnt'})
    """
    text = message[:_MAX_MESSAGE]
    if "`" not in text:  # mypy's quotes
        text = re.sub(r'"([^"\n]*)"', r"`\1`", text)
    for kind, pattern in _COMPILED:
        found = pattern.match(text)
        if found:
            return Mistake(kind, {name: text for name, text in found.groupdict().items() if text is not None})
    return Mistake("", {})


def _compile(pattern: str) -> re.Pattern[str]:
    text = pattern.replace("{callable}", _CALLABLE).replace("{of}", "(?: of `(?P<owner>[^`]*)`)?").replace('"', "`")
    text = text.replace("{names}", "(?P<names>`[^`]+`(?:(?:, | and )`[^`]+`)*)")
    text = re.sub(r"\{(\w+)\}", r"`(?P<\1>[^`\n]*)`", text)
    return re.compile(rf"{text}(?:[;.\n ]|$)")


_COMPILED: Final = [(kind, _compile(pattern)) for kind, patterns in _PATTERNS.items() for pattern in patterns]
