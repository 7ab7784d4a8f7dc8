"""What is at a place of a program: checkers name the place, and often not the argument or the operator that is there."""

from __future__ import annotations

import ast
import re
from typing import Final, NamedTuple

from toolkit.runtime.programs.gate import bound_names, char_column

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
        """The text before ``.attribute`` in a line."""
        for node in self._attributes:
            if node.attr == attribute and node.lineno <= line <= (node.end_lineno or node.lineno):
                return ast.unparse(node.value)
        return None

    def orders_by_method(self, line: int) -> bool:
        """Whether a line has ``max(counts, key=counts.get)`` or the like, which is right, but not for checkers."""
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
    return call.func.attr if isinstance(call.func, ast.Attribute) else ast.unparse(call.func)


def _calls_tool(call: ast.Call) -> bool:
    match call.func:
        case ast.Attribute(value=ast.Name(id="tools" | "atools")):
            return True
    return False
