"""What mypy says about a program, as plain sentences with the way out, at the program's own lines."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from toolkit.runtime.programs.gate import ALLOWED_IMPORTS, ERROR_CLASSES, bound_names, char_column, find_good_guess
from toolkit.runtime.programs.result import ProgramError

_CALLABLE: Final = r"(?:bound method |function |method |class |constructor |overloaded function )?"
_MAX_MESSAGE: Final = 4000

# In a pattern, {word} stands for a quoted part with that name, {callable} for a word before a function, {of} for its class.
_PATTERNS: Final = {
    "none_attribute": ('Item "None" of {type} has no attribute {name}',),
    "union_attribute": ("Item {item} of {type} has no attribute {name}",),
    "not_iterable": ('{type} has no attribute "__a?iter__".*', "{type} object is not iterable"),
    "no_context": ('{type} has no attribute "__a?(?:enter|exit)__".*',),
    "member": ("Module(?: {type})? has no attribute {name}",),
    "attribute": ("{type} has no attribute {name}",),
    "name": ("Name {name} is not defined",),
    "unknown_argument": ("Unexpected keyword argument {name}(?: for {callable}{function}{of})?",),
    "not_ordered": (
        'Missing named argument "key" for "sort" of "list"',
        'Value of type variable "SupportsRichComparisonT" of .*',
    ),
    "missing_argument": ("Missing (?:named|positional) arguments? {names} (?:for|in call to) {function}{of}",),
    "positional": ("Too many (?:positional )?arguments for {function}{of}",),
    "argument_item": ("(?:List|Dict|Set) (?:item|entry) (?P<index>\\d+) has incompatible type .*",),
    "argument_type": (
        "Argument (?:{name}|\\d+) to {callable}{function}{of} has incompatible type {got}; expected {expected}",
    ),
    "wrong_key": (
        "Invalid index type {got} for {type}; expected type .*",
        'No overload variant of "__getitem__" of {type} matches argument type {got}',
    ),
    "not_indexable": ("Value of type {type} is not indexable",),
    "operator": (
        "Unsupported operand types for (?P<op>\\S+|not in) \\({left} and {right}\\)",
        'No overload variant of "(?P<op>__\\w+__)" of {left} matches argument type {right}',
    ),
    "one_operand": ("Unsupported (?:left |right )?operand type for (?:unary )?(?P<op>\\S+|not in) \\({type}\\)",),
    "item_assignment": (
        "Incompatible types in assignment \\(expression has type {got}, target has type {expected}\\)",
    ),
    "return_type": ("Incompatible return value type \\(got {got}, expected {expected}\\)",),
    "no_return": ("Missing return statement",),
    "assignment": ("Incompatible types in assignment \\(expression has type {got}, .*variable has type {expected}\\)",),
    "not_callable": ("{type} not callable",),
    "not_awaitable": ('Incompatible types in "await" \\(actual type {type}, .*',),
    "not_awaited": ("Value of type .* must be used",),
    "unpack": ("Too many values to unpack.*", "Need more than .* to unpack.*"),
    "raise": ("Exception must be derived from BaseException",),
    "overload": (
        "No overload variant of {function}{of} matches argument types? .*",
        "Argument {name} to {callable}{function}{of} has incompatible type overloaded function; .*",
    ),
    "not_an_error": ("Recursive types are not allowed at function scope.*",),
}


class CheckerFinding(NamedTuple):
    """One error as mypy reported it."""

    line: int
    column: int
    message: str


class Mistake(NamedTuple):
    """A finding in our vocabulary. ``kind`` is empty for a message that is not known."""

    kind: str
    parts: dict[str, str]


def classify(message: str) -> Mistake:
    """The kind of a message, and its quoted parts.

    >>> classify('"ReadFileOutput" has no attribute "contnt"; maybe "content"?')
    Mistake(kind='attribute', parts={'type': 'ReadFileOutput', 'name': 'contnt'})
    """
    text = message[:_MAX_MESSAGE]
    for kind, pattern in _COMPILED:
        found = pattern.match(text)
        if found:
            return Mistake(kind, {name: text for name, text in found.groupdict().items() if text is not None})
    return Mistake("", {})


def _compile(pattern: str) -> re.Pattern[str]:
    text = pattern.replace("{callable}", _CALLABLE).replace("{of}", '(?: of "(?P<owner>[^"]*)")?')
    text = text.replace("{names}", '(?P<names>"[^"]+"(?:(?:, | and )"[^"]+")*)')
    text = re.sub(r"\{(\w+)\}", r'"(?P<\1>[^"\n]*)"', text)
    return re.compile(rf"{text}(?:[;.\n ]|$)")


_COMPILED: Final = [(kind, _compile(pattern)) for kind, patterns in _PATTERNS.items() for pattern in patterns]


# ----------------------------------------------------------------------------------------------------------------------
# Types as mypy prints them, made plain.

_LITERAL: Final = re.compile(r"Literal\[((?:[^\[\]]|\[\])*)\]")
_COROUTINE: Final = re.compile(r"Coroutine(?:Type)?\b")
_MAX_TYPE: Final = 120


def plain_type(text: str) -> str:
    """A type without literal values: ``Literal[1]`` is an ``int``.

    >>> plain_type('Literal["a"] | None'), plain_type("CoroutineType[Any, Any, ReadFileOutput]")
    ('str | None', 'coroutine')
    """
    if _COROUTINE.match(text):
        return "coroutine"
    text = _LITERAL.sub(lambda found: " | ".join(dict.fromkeys(_kinds(found[1]))), text)
    text = {"_Inputs": "inputs", "_Tools": "tools", "_AsyncTools": "atools"}.get(text, text)
    return text if len(text) <= _MAX_TYPE else f"{text[:_MAX_TYPE]}..."


def base_type(text: str) -> str:
    """``list[str]`` is a ``list``."""
    return plain_type(text).partition("[")[0]


def choices(text: str) -> list[str]:
    """The values of a type that is only literals, and perhaps None, as Python writes them; empty for other types.

    >>> choices("Literal['auto', 'exact'] | None"), choices("str")
    (["'auto'", "'exact'", 'None'], [])
    """
    found = re.fullmatch(r"Literal\[(.*)\]( \| None)?", text)
    if not found:
        return []
    return [*(repr(value) for value in _values(found[1])), *(["None"] if found[2] else [])]


def may_be_none(text: str) -> bool:
    return bool(re.search(r"\bNone\b", re.sub(r"\[.*\]", "", text)))


def is_coroutine(text: str) -> bool:
    return bool(_COROUTINE.match(text)) or text == "coroutine"


def _values(text: str) -> list[object]:
    try:
        values = ast.literal_eval(f"[{text}]")
    except (ValueError, SyntaxError):  # a member of an enum
        return []
    return list(values)


def _kinds(text: str) -> list[str]:
    return [type(value).__name__ for value in _values(text)] or [text]


# ----------------------------------------------------------------------------------------------------------------------
# What the prelude of a program declares: the attributes of its classes, and the parameters of its tools.

_TOOLS = "_Tools"
_INPUTS = "_Inputs"


@dataclass(frozen=True, slots=True)
class PreludeFacts:
    """Names for the way out of a mistake."""

    classes: dict[str, list[str]] = field(default_factory=dict)
    """The attributes of each class, in their order."""
    tools: dict[str, dict[str, str]] = field(default_factory=dict)
    """For each tool, by its Python name: the parameters with their types."""
    inputs: list[str] = field(default_factory=list)


@lru_cache(maxsize=64)
def read_prelude(prelude: str) -> PreludeFacts:
    """Reads what ``write_prelude`` wrote."""
    facts = PreludeFacts()
    for node in ast.parse(prelude).body:
        if not isinstance(node, ast.ClassDef):
            continue
        if node.name == _TOOLS:
            facts.tools.update(
                {tool.name: _parameters(tool) for tool in node.body if isinstance(tool, ast.FunctionDef)}
            )
        fields = [
            member.target.id
            for member in node.body
            if isinstance(member, ast.AnnAssign) and isinstance(member.target, ast.Name)
        ]
        if node.name == _INPUTS:
            facts.inputs.extend(fields)
        facts.classes[node.name] = fields
    return facts


def _parameters(tool: ast.FunctionDef) -> dict[str, str]:
    """Types as a program would write them: without the modules that the prelude writes before them."""
    return {
        one.arg: ast.unparse(_WithoutModules().visit(one.annotation)) if one.annotation else "Any"
        for one in tool.args.kwonlyargs
    }


class _WithoutModules(ast.NodeTransformer):
    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        return ast.Name(node.attr)


# ----------------------------------------------------------------------------------------------------------------------
# What is at a place of a program: mypy often names only the place, not the argument or the operator there.

_SIGNS: Final[dict[type[ast.AST], str]] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.BitOr: "|", ast.BitAnd: "&", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>", ast.MatMult: "@",
    ast.Lt: "<", ast.Gt: ">", ast.LtE: "<=", ast.GtE: ">=", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip


class CallArgument(NamedTuple):
    """One argument of a call: the text of what is called, and the argument's name, or its number from 1."""

    function: str
    name: str | int
    is_of_tool: bool


class ProgramPlaces:
    """Finds nodes of one program by line and column, both counted from 1."""

    def __init__(self, tree: ast.Module, lines: list[str]) -> None:
        self._lines: Final = lines
        nodes = list(ast.walk(tree))
        self._calls: Final = [node for node in nodes if isinstance(node, ast.Call)]
        self._operations: Final = [node for node in nodes if isinstance(node, ast.BinOp | ast.Compare | ast.AugAssign)]
        self._attributes: Final = [node for node in nodes if isinstance(node, ast.Attribute)]
        self._assignments: Final = [node for node in nodes if isinstance(node, ast.Assign)]
        self.bound: Final = {name for node in nodes for name in bound_names(node)}

    def argument_at(self, line: int, column: int) -> CallArgument | None:
        """The innermost argument that covers a place."""
        found: tuple[tuple[int, int], CallArgument] | None = None
        for call in self._calls:
            arguments: list[tuple[ast.expr | ast.keyword, str | int]] = [
                *((node, number) for number, node in enumerate(call.args, 1)),
                *((keyword, keyword.arg) for keyword in call.keywords if keyword.arg),
            ]
            for node, name in arguments:
                start = self._start(node)
                if self._covers(node, line, column) and (found is None or start >= found[0]):
                    found = start, CallArgument(_function_name(call), name, _calls_tool(call))
        return None if found is None else found[1]

    def values_at(self, line: int, column: int) -> list[object]:
        """The values that the variable at a place may have, if it is assigned nothing but constants."""
        text = self._lines[line - 1][column - 1 :]
        found = re.match(r"(?:\w+\s*=\s*)?(\w+)", text)
        values: list[object] = []
        for node in self._assignments:
            if found and any(isinstance(target, ast.Name) and target.id == found[1] for target in node.targets):
                options = [node.value.body, node.value.orelse] if isinstance(node.value, ast.IfExp) else [node.value]
                if not all(isinstance(option, ast.Constant) for option in options):
                    return []
                values += [option.value for option in options if isinstance(option, ast.Constant)]
        return values

    def function_at(self, line: int, column: int) -> str | None:
        """What the innermost call at a place calls."""
        found = [call for call in self._calls if self._covers(call, line, column)]
        return _function_name(max(found, key=self._start)) if found else None

    def operator_in(self, line: int) -> str | None:
        """The operator of a line that has only one."""
        found = {
            _SIGNS.get(type(sign))
            for node in self._operations
            if node.lineno <= line <= (node.end_lineno or node.lineno)
            for sign in (node.ops if isinstance(node, ast.Compare) else [node.op])
        } - {None}
        return found.pop() if len(found) == 1 else None

    def owner_of(self, attribute: str, line: int) -> str | None:
        """The text before the first ``.attribute`` in a line: what comes after it has no type."""
        found = [
            node
            for node in self._attributes
            if node.attr == attribute and node.lineno <= line <= (node.end_lineno or node.lineno)
        ]
        first = min(found, key=lambda node: (node.end_lineno or 0, node.end_col_offset or 0), default=None)
        return None if first is None else _written(first.value)

    def orders_by_method(self, line: int) -> bool:
        """Whether a line has ``max(counts, key=counts.get)`` or the like, which is right, but not for mypy."""
        return any(
            call.lineno <= line <= (call.end_lineno or call.lineno)
            and any(key.arg == "key" and isinstance(key.value, ast.Attribute) for key in call.keywords)
            for call in self._calls
        )

    def _covers(self, node: ast.expr | ast.keyword, line: int, column: int) -> bool:
        end_line = node.end_lineno or node.lineno
        end = end_line, char_column(self._lines, end_line, node.end_col_offset or 0) + 1
        return self._start(node) <= (line, column) < end

    def _start(self, node: ast.expr | ast.keyword) -> tuple[int, int]:
        return node.lineno, char_column(self._lines, node.lineno, node.col_offset) + 1


def _function_name(call: ast.Call) -> str:
    """The last name of what is called."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else _written(call.func)


def _written(node: ast.expr) -> str:
    """The text of an expression. What CPython can compile may still be nested too deeply to be written."""
    try:
        return ast.unparse(node)
    except RecursionError:
        return "the expression"


def _calls_tool(call: ast.Call) -> bool:
    match call.func:
        case ast.Attribute(value=ast.Name(id="tools" | "atools")):
            return True
    return False


# ----------------------------------------------------------------------------------------------------------------------
# The sentences.

_MAX_NAMED: Final = 15
_MAX_TEXT: Final = 300
_MAX_FINDINGS: Final = 200
_CHANGES_CONTAINER: Final = frozenset(["add", "append", "appendleft", "extend", "insert", "setdefault", "update"])
_ORDERING: Final = frozenset(["max", "min", "nlargest", "nsmallest", "sort", "sorted"])
_COMES_FROM: Final = {
    **dict.fromkeys(
        ("Any", "Callable", "Iterable", "Literal", "NamedTuple", "Optional", "TypedDict", "Union"), "typing"
    ),
    **dict.fromkeys(("Counter", "OrderedDict", "defaultdict", "deque", "namedtuple"), "collections"),
    **dict.fromkeys(("date", "timedelta", "timezone"), "datetime"),
    **dict.fromkeys(("chain", "groupby", "islice"), "itertools"),
    **dict.fromkeys(("partial", "reduce"), "functools"),
    **dict.fromkeys(("gather", "sleep"), "asyncio"),
    **dict.fromkeys(("dataclass", "field"), "dataclasses"),
    **dict.fromkeys(("Decimal",), "decimal"),
    **dict.fromkeys(("Enum",), "enum"),
}
_OPERATORS: Final = {
    "__add__": "+", "__sub__": "-", "__mul__": "*", "__truediv__": "/", "__floordiv__": "//", "__mod__": "%",
    "__or__": "|", "__and__": "&", "__lt__": "<", "__gt__": ">", "__le__": "<=", "__ge__": ">=", "__pow__": "**",
}  # fmt: skip


def word_findings(
    findings: Iterable[CheckerFinding], tree: ast.Module, lines: Sequence[str], prelude: str
) -> list[ProgramError]:
    """The errors of a program; the places of ``findings`` are those in the program."""
    ordered = sorted(findings, key=lambda finding: (finding.line, finding.column))
    words = _Words(ProgramPlaces(tree, list(lines)), read_prelude(prelude))
    known = [(finding, classify(finding.message)) for finding in ordered[:_MAX_FINDINGS]]
    errors: dict[tuple[int, str], ProgramError] = {}
    for finding, mistake in _leave_out_consequences(known):
        sentence = words.word(finding, mistake)
        if sentence:
            errors.setdefault((finding.line, sentence), ProgramError(finding.line, finding.column, sentence, "type"))
    if len(ordered) > _MAX_FINDINGS:
        line, column, _ = ordered[_MAX_FINDINGS]
        errors[0, ""] = ProgramError(line, column, "there are many more errors from here on", "type")
    return list(errors.values())


_Known: TypeAlias = tuple[CheckerFinding, Mistake]


def _leave_out_consequences(known: Sequence[_Known]) -> Iterator[_Known]:
    """An argument that is missing because another one is wrong; missing arguments of one call are one mistake."""
    named_wrong = {finding.line for finding, mistake in known if mistake.kind in ("unknown_argument", "positional")}
    missing: dict[tuple[int, int, str], Mistake] = {}
    for finding, mistake in known:
        if mistake.kind != "missing_argument":
            yield finding, mistake
        elif finding.line not in named_wrong:
            call = finding.line, finding.column, mistake.parts["function"]
            if call in missing:
                missing[call].parts["names"] += f", {mistake.parts['names']}"
            else:
                missing[call] = mistake
    for (line, column, _), mistake in missing.items():
        yield CheckerFinding(line, column, ""), mistake


class _Words:
    """Makes the sentences for one program."""

    def __init__(self, places: ProgramPlaces, facts: PreludeFacts) -> None:
        self._places: Final = places
        self._facts: Final = facts

    def word(self, finding: CheckerFinding, mistake: Mistake) -> str:
        """The sentence for a finding; empty if it is not a reason to refuse the program."""
        kind, parts = mistake
        if kind == "not_an_error":
            return ""
        if kind in ("argument_type", "overload") and self._is_right_order(finding, parts):
            return ""
        if not kind:
            return _own_text(finding.message)
        sentence: str = getattr(self, f"_{kind}")(finding, parts)
        got = parts.get("got") or parts.get("type", "")
        if sentence and is_coroutine(got):
            return f"{sentence}; write `await` before the call"
        return sentence

    # -- names and attributes ------------------------------------------------------------------------------------------

    def _attribute(self, finding: CheckerFinding, parts: dict[str, str]) -> str:
        owner, name = plain_type(parts["type"]), parts["name"]
        if owner == "inputs":
            return f'inputs has no "{name}"{_hint(name, self._facts.inputs, "no inputs were given")}'
        item = re.fullmatch(r"list\[(\w+)\]", owner)
        if item and name in self._facts.classes.get(item[1], ()):
            return f'{owner} has no attribute "{name}"; its items have it: take one, or use a loop'
        if base_type(owner) == "dict":
            return f'{owner} has no attribute "{name}"; write ["{name}"] for a key'
        return f'{owner} has no attribute "{name}"{_hint(name, self._attributes_of(owner))}'

    def _none_attribute(self, finding: CheckerFinding, parts: dict[str, str]) -> str:
        owner = self._places.owner_of(parts["name"], finding.line)
        what = f"`{owner}`" if owner and len(owner) <= 60 else "the value"
        return f'{what} may be None, which has no attribute "{parts["name"]}"; check that it is not None first'

    def _union_attribute(self, finding: CheckerFinding, parts: dict[str, str]) -> str:
        item, name = plain_type(parts["item"]), parts["name"]
        return f'{item} has no attribute "{name}", and the value may be one; check with isinstance first'

    def _member(self, finding: CheckerFinding, parts: dict[str, str]) -> str:
        module = parts.get("type") or self._places.owner_of(parts["name"], finding.line) or "the module"
        return f'the module {module} has no "{parts["name"]}"'

    def _name(self, finding: CheckerFinding, parts: dict[str, str]) -> str:
        name = parts["name"]
        if name in ERROR_CLASSES:
            hint = f"; add: from toolkit import {name}"
        elif _COMES_FROM.get(name):
            hint = f"; add: from {_COMES_FROM[name]} import {name}"
        elif name in ALLOWED_IMPORTS:
            hint = f"; add: import {name}"
        else:
            hint = _hint(name, {*self._places.bound, *dir(builtins)}, lists=False)
        return f'the name "{name}" is not defined{hint}'

    def _attributes_of(self, owner: str) -> Collection[str]:
        if owner in self._facts.classes:
            return self._facts.classes[owner]
        kind = getattr(builtins, base_type(owner), None)
        return _Unlisted(name for name in dir(kind) if name[0] != "_") if isinstance(kind, type) else ()

    # -- calls ---------------------------------------------------------------------------------------------------------

    def _unknown_argument(self, finding: CheckerFinding, parts: dict[str, str]) -> str:
        name, function = parts["name"], self._function(finding, parts)
        return f'{function} has no argument "{name}"{_hint(name, self._parameters(finding, parts))}'

    def _missing_argument(self, finding: CheckerFinding, parts: dict[str, str]) -> str:
        names = re.findall('"([^"]+)"', parts["names"])
        what = f'the argument "{names[0]}"' if len(names) == 1 else f"the arguments {_listed(names)}"
        return f"{self._function(finding, parts)} needs {what}"

    def _positional(self, finding: CheckerFinding, parts: dict[str, str]) -> str:
        function, parameters = self._function(finding, parts), self._parameters(finding, parts)
        if parameters:
            return f"{function} takes its arguments by name: {function}({next(iter(parameters))}=...)"
        return f"too many positional arguments for {function}"

    def _argument_type(self, finding: CheckerFinding, parts: dict[str, str]) -> str:
        function, parameters = self._function(finding, parts), self._parameters(finding, parts)
        if function in _CHANGES_CONTAINER and not parameters:
            return ""  # a list or dict of the program itself may hold what it likes
        found = self._places.argument_at(finding.line, finding.column)
        name = found.name if found else parts.get("name", "")
        expected = parameters.get(str(name)) or parts["expected"]
        values = [repr(value) for value in self._places.values_at(finding.line, finding.column)]
        if values and set(values) <= set(choices(expected)):
            return ""  # mypy takes a variable with a text for any text
        which = f'the argument "{name}"' if isinstance(name, str) and name else f"argument {name or 1}"
        return f"{which} of {function} {_must_be(expected, parts['got'])}"

    def _argument_item(self, finding: CheckerFinding, parts: dict[str, str]) -> str:
        """mypy looks into lists and dicts that are written as arguments."""
        found = self._places.argument_at(finding.line, finding.column)
        number = int(parts["index"]) + 1
        if found is None:
            return f"this value has an item of the wrong type: number {number}"
        if found.is_of_tool:
            return f"{self._tool_argument(found)}; look at item {number}"
        if found.function in _CHANGES_CONTAINER:
            return ""
        which = f'the argument "{found.name}"' if isinstance(found.name, str) else f"argument {found.name}"
        return f"{which} of {found.function} has an item of the wrong type: number {number}"

    def _tool_argument(self, found: CallArgument) -> str:
        expected = self._facts.tools.get(found.function, {}).get(str(found.name), "of another type")
        return f'the argument "{found.name}" of {found.function} must be {expected}'

    def _overload(self, finding: CheckerFinding, parts: dict[str, str]) -> str:
        return f"{self._function(finding, parts)} does not take arguments of these types"

    def _not_callable(self, finding: CheckerFinding, parts: dict[str, str]) -> str:
        return f"{plain_type(parts['type'])} cannot be called"

    def _not_awaitable(self, finding: CheckerFinding, parts: dict[str, str]) -> str:
        return f"{plain_type(parts['type'])} cannot be awaited; leave out `await`"

    def _not_awaited(self, finding: CheckerFinding, parts: dict[str, str]) -> str:
        return "this call does nothing until it is awaited; write `await` before it"

    def _function(self, finding: CheckerFinding, parts: dict[str, str]) -> str:
        """The name of a function without its module or class; a class, for its constructor."""
        names = parts.get("function", "").split(".")
        if names[-1] in ("__init__", "__new__"):
            names.pop()
        if names[-1:] in ([""], [], ["object"]):
            return self._places.function_at(finding.line, finding.column) or "the function"
        return names[-1]

    def _parameters(self, finding: CheckerFinding, parts: dict[str, str]) -> dict[str, str]:
        """The parameters of a tool with their types; empty for other functions, also if they have the name of a tool."""
        owner = parts.get("owner") or parts.get("function", "").rpartition(".")[0]
        is_tool = owner in ("_Tools", "_AsyncTools")
        return self._facts.tools.get(self._function(finding, parts), {}) if is_tool else {}

    def _is_right_order(self, finding: CheckerFinding, parts: dict[str, str]) -> bool:
        ordering = self._function(finding, parts) in _ORDERING and not self._parameters(finding, parts)
        return ordering and self._places.orders_by_method(finding.line)

    # -- values --------------------------------------------------------------------------------------------------------

    def _operator(self, finding: CheckerFinding, parts: dict[str, str]) -> str:
        left = plain_type(parts["left"])
        right = plain_type(parts["right"]) if "right" in parts else left
        # mypy names the part of a union that does not fit, and the whole type in its hint.
        hint = re.search(r'(Left|Right) operand is of type "([^"]+)"', finding.message)
        if hint and hint[1] == "Left":
            left, right = plain_type(hint[2]), left if right == "None" else right
        elif hint:
            right = plain_type(hint[2])
        sign = self._places.operator_in(finding.line) or _OPERATORS.get(parts["op"], parts["op"].rstrip("="))
        check = "; check for None first" if may_be_none(left) or may_be_none(right) else ""
        return f"`{sign}` does not work between {left} and {right}{check}"

    def _one_operand(self, finding: CheckerFinding, parts: dict[str, str]) -> str:
        return f"`{parts['op']}` does not work with {plain_type(parts['type'])}"

    def _assignment(self, finding: CheckerFinding, parts: dict[str, str]) -> str:
        return f"this value {_must_be(parts['expected'], parts['got'])}"

    def _item_assignment(self, finding: CheckerFinding, parts: dict[str, str]) -> str:
        found = self._places.argument_at(finding.line, finding.column)
        if found is not None and found.is_of_tool:
            return self._tool_argument(found)
        return ""  # a dict of the program itself may hold what it likes

    def _return_type(self, finding: CheckerFinding, parts: dict[str, str]) -> str:
        return f"what the function returns {_must_be(parts['expected'], parts['got'])}"

    def _no_return(self, finding: CheckerFinding, parts: dict[str, str]) -> str:
        return "the function must return a value on every path, because it declares one"

    def _not_indexable(self, finding: CheckerFinding, parts: dict[str, str]) -> str:
        return f"{plain_type(parts['type'])} cannot be indexed{self._has(parts['type'])}"

    def _wrong_key(self, finding: CheckerFinding, parts: dict[str, str]) -> str:
        return f"{base_type(parts['type'])} cannot be indexed with {plain_type(parts['got'])}"

    def _not_iterable(self, finding: CheckerFinding, parts: dict[str, str]) -> str:
        return f"{plain_type(parts['type'])} cannot be iterated over{self._has(parts['type'])}"

    def _no_context(self, finding: CheckerFinding, parts: dict[str, str]) -> str:
        return f"{plain_type(parts['type'])} cannot be used with `with`"

    def _not_ordered(self, finding: CheckerFinding, parts: dict[str, str]) -> str:
        return "these values cannot be ordered; give a key, such as key=lambda item: item.name"

    def _unpack(self, finding: CheckerFinding, parts: dict[str, str]) -> str:
        return "the number of values is not the number of names"

    def _raise(self, finding: CheckerFinding, parts: dict[str, str]) -> str:
        return "only exceptions can be raised, such as ValueError(...)"

    def _has(self, owner: str) -> str:
        fields = self._facts.inputs if owner == "_Inputs" else self._facts.classes.get(owner)
        return f"; it has {_enumerated(fields)}" if fields else ""


class _Unlisted(list[str]):
    """Names that are suggested for a near miss, but too many to list."""


def _must_be(expected: str, got: str) -> str:
    """``must be str, not int``, with the values of an enumeration."""
    values = choices(expected)
    if values:
        given = choices(got)
        return f"must be {_either(values)}, not {given[0] if len(given) == 1 else plain_type(got)}"
    plain, wrong = plain_type(expected), plain_type(got)
    check = (
        "; check that it is not None first" if may_be_none(wrong) and wrong != "None" and not may_be_none(plain) else ""
    )
    return f"must be {plain}, not {wrong}{check}"


def _hint(name: str, candidates: Collection[str], nothing: str = "", *, lists: bool = True) -> str:
    if not candidates:
        return f"; {nothing}" if nothing else ""
    near = find_good_guess(name, candidates)
    if near is not None:
        return f'; did you mean "{near}"?'
    return f"; it has {_enumerated(candidates)}" if lists and not isinstance(candidates, _Unlisted) else ""


def _enumerated(names: Collection[str]) -> str:
    shown = list(names)[:_MAX_NAMED]
    return ", ".join(shown) + (", ..." if len(names) > _MAX_NAMED else "")


def _listed(names: Sequence[str]) -> str:
    quoted = [f'"{name}"' for name in names]
    return f"{', '.join(quoted[:-1])} and {quoted[-1]}"


def _either(values: Sequence[str]) -> str:
    return values[0] if len(values) == 1 else f"{', '.join(values[:-1])} or {values[-1]}"


def _own_text(message: str) -> str:
    """mypy's own text, on one line."""
    first = message.partition("\n")[0].replace("_AsyncTools", "atools").replace("_Tools", "tools")
    return first if len(first) <= _MAX_TEXT else f"{first[:_MAX_TEXT]}..."
