"""Plain sentences for what the checkers report, with the way out, the same whichever checker found it."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, TypeAlias

from toolkit.runtime.programs.check.messages import CheckerFinding, Mistake, classify
from toolkit.runtime.programs.check.prelude_facts import PreludeFacts, read_prelude
from toolkit.runtime.programs.check.program_places import CallArgument, ProgramPlaces
from toolkit.runtime.programs.check.type_texts import base_type, choices, is_coroutine, may_be_none, plain_type
from toolkit.runtime.programs.result import ProgramError
from toolkit.runtime.programs.syntax.allowed_imports import ALLOWED_IMPORTS, ERROR_CLASSES
from toolkit.runtime.programs.syntax.near_names import find_good_guess

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
        line, column, _, _ = ordered[_MAX_FINDINGS]
        errors[0, ""] = ProgramError(line, column, "there are many more errors from here on", "type")
    return list(errors.values())


_Known: TypeAlias = tuple[CheckerFinding, Mistake]


def _leave_out_consequences(known: Sequence[_Known]) -> Iterator[_Known]:
    """ty and pyrefly also miss the argument whose name is wrong; mypy reports each missing argument by itself."""
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
        yield CheckerFinding(line, column, "", ""), mistake


class _Words:
    """Makes the sentences for one program."""

    def __init__(self, places: ProgramPlaces, facts: PreludeFacts) -> None:
        self._places: Final = places
        self._facts: Final = facts

    def word(self, finding: CheckerFinding, mistake: Mistake) -> str:
        """The sentence for a finding; empty if it is not a reason to refuse the program."""
        kind, parts = mistake
        if kind == "not_an_error" or re.search(
            r"\b_\w*@", parts.get("type", "")
        ):  # ty repeats some for the generic class
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
        names = re.findall("`([^`]+)`", parts["names"])
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
        hint = re.search(r'(Left|Right) operand is of type ["`]([^"`]+)["`]', finding.message)
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
    """The checker's own text, on one line."""
    first = message.partition("\n")[0].replace("_AsyncTools", "atools").replace("_Tools", "tools")
    return first if len(first) <= _MAX_TEXT else f"{first[:_MAX_TEXT]}..."
