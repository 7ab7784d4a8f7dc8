"""The module that a checker reads for a program: the prelude, then the programs of the session in one async function.

A function, because checkers know ``await`` only there. Lines of a program are shifted by a fixed number, columns by the
indentation, and by what is inserted: dicts and lists that a program writes as records (``{"path": p, "size": n}``) are
passed through a function that makes their values ``Any``. Checkers would join the types of the values, and then refuse
``record["size"] + 1`` in programs that are right.
"""

from __future__ import annotations

import ast
import re
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from toolkit.runtime.programs.gate import ParsedProgram, char_column, parse_tree, split_lines
from toolkit.runtime.programs.result import ProgramError

PROBE: Final = "probe_of_the_checker"
"""An attribute that no text has, in the line before a program: a checker that does not report it did not get there."""
_INDENT: Final = "    "
_HEAD: Final = """\
import typing as _typing
def _record(value: dict[_typing.Any, _typing.Any], /) -> dict[_typing.Any, _typing.Any]: return value
def _row(value: list[_typing.Any], /) -> list[_typing.Any]: return value
async def _program(tools: _Tools, atools: _AsyncTools, inputs: _Inputs) -> None:
"""
_DIRECTIVE: Final = re.compile(r"#.*\b(?:type|mypy|ty|pyrefly|pyright)\s*:")


@dataclass(frozen=True, slots=True)
class CheckedText:
    """What the checker reads, and where the program is in it."""

    text: str
    first_line: int
    """The line of ``text`` with the first line of the program, counted from 1."""
    lines: tuple[str, ...]
    """The lines of the program as it was written."""
    insertions: dict[int, list[tuple[int, int]]]
    """By line of the program: the columns before which something was inserted, and how many characters."""
    unindented: frozenset[int]
    """Lines of the program that begin inside a string, and so could not be indented."""

    @property
    def probe_line(self) -> int:
        return self.first_line - 1

    def place(self, line: int, column: int) -> tuple[int, int] | None:
        """The place in the program for one in ``text``; None if it is outside. All count from 1."""
        own = line - self.first_line + 1
        if not 1 <= own <= len(self.lines):
            return None
        column -= 0 if own in self.unindented else len(_INDENT)
        for at, length in sorted(self.insertions.get(own, [])):
            if column > at + length:
                column -= length
            elif column > at + 1:
                column = at + 1
        return own, max(1, min(column, len(self.lines[own - 1]) + 1))


def build_checked_text(prelude: str, program: ParsedProgram, previous: Sequence[str] = ()) -> CheckedText:
    """Put the module together; ``previous`` are the earlier programs of the session, in their order."""
    head = f"{prelude.rstrip()}\n{_HEAD}".split("\n")[:-1]
    for earlier in previous:
        head += _place_reached(earlier)
    head.append(f'{_INDENT}"".{PROBE}')
    own = _place_lines(program.source, program.tree)
    return CheckedText(
        "\n".join([*head, *own.lines, f"{_INDENT}pass", ""]),
        len(head) + 1,
        tuple(split_lines(program.source)),
        own.insertions,
        own.unindented,
    )


def _place_reached(source: str) -> list[str]:
    """An earlier program up to where it always raised: for checkers, nothing after that would ever run."""
    tree = parse_tree(source)
    if isinstance(tree, ProgramError):
        return []
    end = next((statement.lineno for statement in tree.body if isinstance(statement, ast.Raise)), None)
    if end is not None:
        return _place_reached("\n".join(split_lines(source)[: end - 1]))
    return _place_lines(source, tree).lines


@dataclass(frozen=True, slots=True)
class _PlacedLines:
    lines: list[str]
    insertions: dict[int, list[tuple[int, int]]]
    unindented: frozenset[int]


def _place_lines(source: str, tree: ast.Module) -> _PlacedLines:
    """The lines of a program inside the function."""
    lines = split_lines(source)
    if _DIRECTIVE.search(source):
        _remove_comments(lines)
    insertions: dict[int, list[tuple[int, int]]] = {}
    inserted: list[tuple[int, int, str]] = []
    for display in _find_records(tree):
        name = "_record(" if isinstance(display, ast.Dict) else "_row("
        inserted.append((display.lineno, char_column(lines, display.lineno, display.col_offset), name))
        end = display.end_lineno or display.lineno
        inserted.append((end, char_column(lines, end, display.end_col_offset or 0), ")"))
    texts: dict[int, list[tuple[int, str]]] = {}
    for line, column, text in sorted(inserted, key=lambda one: one[:2]):
        texts.setdefault(line, []).append((column, text))
        insertions.setdefault(line, []).append((column, len(text)))
    for line, added in texts.items():
        lines[line - 1] = _insert(lines[line - 1], added)
    inside = frozenset(_lines_inside_strings(tree))
    placed = [text if number in inside else _INDENT + text for number, text in enumerate(lines, 1)]
    return _PlacedLines(placed, insertions, inside)


def _insert(line: str, added: Sequence[tuple[int, str]]) -> str:
    """A line with texts before some of its columns, which come in order."""
    pieces, last = list[str](), 0
    for column, text in added:
        pieces += line[last:column], text
        last = column
    return "".join([*pieces, line[last:]])


def _lines_inside_strings(tree: ast.Module) -> set[int]:
    found: set[tuple[int, int]] = set()  # for Python 3.11, every part of an f-string is as long as the whole
    for node in ast.walk(tree):
        match node:
            case ast.JoinedStr(end_lineno=int(end)) | ast.Constant(value=str() | bytes(), end_lineno=int(end)):
                found.add((node.lineno, end))
    return {line for first, end in found for line in range(first + 1, end + 1)}


def _remove_comments(lines: list[str]) -> None:
    """Blank out comments: some of them tell checkers to look away."""
    rest = iter([f"{line}\n" for line in lines])
    for token in tokenize.generate_tokens(lambda: next(rest, "")):
        if token.type == tokenize.COMMENT:
            line, column = token.start
            lines[line - 1] = lines[line - 1][:column]


def _find_records(tree: ast.Module) -> Iterator[ast.Dict | ast.List]:
    """Displays whose values need not have one type. Not where something else says their type: arguments of tools,
    annotated variables; not in types; not in f-strings, whose places Python 3.11 does not know."""
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        match node:
            case ast.JoinedStr() | ast.AnnAssign():
                continue
            case ast.Call(func=ast.Attribute(value=ast.Name(id="tools" | "atools"))):
                continue
            case ast.Subscript():
                pending.append(node.value)
                continue
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                pending += [*node.body, *node.decorator_list, *node.args.defaults]
                continue
            case ast.Dict() if all(key is None or isinstance(key, ast.Constant) for key in node.keys):
                yield node
            case ast.List(ctx=ast.Load()) if len({_kind(item) for item in node.elts}) > 1:
                yield node
        pending += ast.iter_child_nodes(node)


def _kind(node: ast.expr) -> object:
    """Equal for expressions that have the same type at first sight."""
    match node:
        case ast.Constant():
            return type(node.value)
        case ast.JoinedStr():
            return str
        case ast.Call():
            return ast.dump(node.func)
        case ast.Attribute():
            return node.attr
        case ast.Name():
            return node.id
        case _:
            return type(node)
