"""The type check of programs: mypy in a process in the sandbox, which stays alive for the next program.

Promise: a program passes only if mypy answered, and found the mistake that every text contains as a probe. If mypy takes
too long or too much memory, ends, or answers nonsense, it is killed, the program is refused, and the next program gets a
new process.
"""

from __future__ import annotations

import ast
import hashlib
import json
import keyword
import math
import os
import re
import sys
import threading
import time
import tokenize
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING, Final

from pydantic import BaseModel

from toolkit.errors import SetupError, ToolCancelled, ToolFailed
from toolkit.forks import count_restart, start_again_in_child
from toolkit.guard.process.program import SYSTEM, helper_interpreter, is_below
from toolkit.runtime.programs.check_messages import CheckerFinding, word_findings
from toolkit.runtime.programs.frames import BrokenFrame, Frame
from toolkit.runtime.programs.gate import ERROR_CLASSES, ParsedProgram, char_column, parse_tree, split_lines
from toolkit.runtime.programs.process import FramedProcess, ProcessEnded
from toolkit.runtime.programs.result import ProgramError, shorten_errors
from toolkit.runtime.signals import CancelSignal
from toolkit.runtime.signatures import TypeTexts

if TYPE_CHECKING:
    from toolkit.guard.process.guard import ProcessGuard
    from toolkit.runtime.signatures import ShownType, ToolSignature


# ----------------------------------------------------------------------------------------------------------------------
# The prelude, which mypy reads before a program: the tools that it names, their types, and its inputs.
#
# Whatever is not for the program has a name with an underscore, so that a program that uses ``Any`` or ``date`` without an
# import is refused. Types are written through modules: a field named ``list`` would hide ``list`` from the fields below it.
#
# The generated package is not read: it declares every tool and imports pydantic, which makes a check ten times as slow, and
# the sandbox would have to show it.

_PRELUDE: Final = """from __future__ import annotations
import builtins as _b, datetime as _d, typing as _t, uuid as _u
class _Model:
    def model_dump(self) -> _b.dict[_b.str, _t.Any]: raise NotImplementedError
    def model_dump_json(self) -> _b.str: raise NotImplementedError
"""
_MODULES: Final = {
    "_b": ("bool", "bytes", "dict", "float", "int", "list", "str", "tuple"),
    "_d": ("date", "datetime", "time"),
    "_t": ("Any", "Literal", "NotRequired", "TypeAlias", "TypedDict"),
    "_u": ("UUID",),
}
_SPELLED: Final = {name: f"{module}.{name}" for module, names in _MODULES.items() for name in names}
_WORDS: Final = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\w+""")
_SCALARS: Final = {str: "str", bool: "bool", int: "int", float: "float", type(None): "None"}
_MAX_DEPTH: Final = 8
"""Below this many lists and maps, an input is ``Any``."""
ERRORS_STUB: Final = """from typing import Any
class ToolkitError(Exception):
    code: str
    message: str
    tool_name: str | None
    details: dict[str, Any]
    retriable: bool
""" + "".join(
    f"class {name}(ToolkitError):{' reason: str' if name == 'ToolFailed' else ' ...'}\n" for name in ERROR_CLASSES[1:]
)
"""``toolkit.pyi`` for mypy: every class that ``from toolkit import ...`` may name in a program."""


def write_prelude(signatures: Sequence[ToolSignature], inputs: Mapping[str, object] | None = None) -> str:
    """``_Tools``, ``_AsyncTools`` and ``_Inputs``, the types of a program's ``tools``, ``atools`` and ``inputs``."""
    given, models = _describe_inputs(inputs or {})
    types = dict.fromkeys(one for tool in signatures for one in tool.types)
    known = {one.name for one in types}
    types.update(dict.fromkeys(one for one in models if one.name not in known))
    methods = [_method(tool) for tool in signatures]
    return "".join(
        [
            _PRELUDE,
            *(f"{_definition(one)}\n" for one in types),
            _block("class _Tools(_t.Protocol):", [f"    def {method}" for method in methods]),
            _block("class _AsyncTools(_t.Protocol):", [f"    async def {method}" for method in methods]),
            _block("class _Inputs:", [f"    {name}: {_spell(kind)}" for name, kind in given.items()]),
        ]
    )


def _block(head: str, lines: Sequence[str]) -> str:
    return "\n".join([head, *(lines or ["    pass"]), ""])


def _method(tool: ToolSignature) -> str:
    parameters = [f"{one.name}: {_spell(one.type)}{'' if one.default is None else ' = ...'}" for one in tool.parameters]
    given = ["self", "*", *parameters] if parameters else ["self"]
    return f"{tool.attribute}({', '.join(given)}) -> {_spell(tool.output)}: ..."


def _definition(one: ShownType) -> str:
    """A class or alias as mypy reads it. Outside of annotations types are quoted: they may name what is defined below."""
    if one.alias is not None:
        return f"{one.name}: _t.TypeAlias = {_spell(one.alias)!r}"
    if not one.has_plain_keys:
        rows = ", ".join(f"{key!r}: {_spell(kind)!r}" for key, kind in one.fields)
        return f"{one.name} = _t.TypedDict({one.name!r}, {{{rows}}})"
    base = "_Model" if not one.is_dict else "_t.TypedDict, total=False" if one.is_all_optional else "_t.TypedDict"
    return _block(f"class {one.name}({base}):", [f"    {key}: {_spell(kind)}" for key, kind in one.body]).rstrip("\n")


def _spell(text: str) -> str:
    """A type with the names of built-in types and of ``typing`` written through their modules; not inside of texts.

    >>> _spell("dict[str, Literal['int']] | None")
    "_b.dict[_b.str, _t.Literal['int']] | None"
    """
    return _WORDS.sub(lambda found: _SPELLED.get(found[0], found[0]), text)


def _describe_inputs(inputs: Mapping[str, object]) -> tuple[dict[str, str], tuple[ShownType, ...]]:
    """The type of each input, from its value, and the classes that these types name.

    >>> _describe_inputs({"paths": ["a.py"], "limits": {"lines": 3, "size": 1.5}})[0]
    {'paths': 'list[str]', 'limits': 'dict[str, float]'}
    """
    for name in inputs:
        if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
            raise SetupError(f"the input {name!r} needs another name: a program reads it as `inputs.<name>`")
    models = TypeTexts("")
    return {name: _type_of(value, models, 0) for name, value in inputs.items()}, models.types


def _type_of(value: object, models: TypeTexts, depth: int) -> str:
    if type(value) in _SCALARS:
        return _SCALARS[type(value)]
    if isinstance(value, BaseModel):
        return models.write(type(value))
    if depth < _MAX_DEPTH and isinstance(value, list | tuple):
        return f"list[{_common([_type_of(item, models, depth + 1) for item in value])}]"
    if depth < _MAX_DEPTH and isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return f"dict[str, {_common([_type_of(item, models, depth + 1) for item in value.values()])}]"
    return "Any"


def _common(types: list[str]) -> str:
    """One type for values of all these types; ``Any`` if they have little in common."""
    found = set(types) - {"None"}
    if found == {"int", "float"}:
        found = {"float"}
    if len(found) != 1:
        return "Any"
    optional = " | None" if "None" in types and found != {"Any"} else ""
    return f"{found.pop()}{optional}"


# ----------------------------------------------------------------------------------------------------------------------
# The module that mypy reads: the prelude, then the programs of the session in one async function.
#
# A function, because mypy knows ``await`` only there. Lines of a program are shifted by a fixed number, columns by the
# indentation, and by what is inserted: dicts and lists that a program writes as records (``{"path": p, "size": n}``) are
# passed through a function that makes their values ``Any``. mypy would join the types of the values, and then refuse
# ``record["size"] + 1`` in programs that are right.

PROBE: Final = "probe_of_the_checker"
"""An attribute that no text has, in the line before a program: if mypy does not report it, it did not get there."""
_INDENT: Final = "    "
_HEAD: Final = """\
import typing as _typing
def _record(value: dict[_typing.Any, _typing.Any], /) -> dict[_typing.Any, _typing.Any]: return value
def _row(value: list[_typing.Any], /) -> list[_typing.Any]: return value
async def _program(tools: _Tools, atools: _AsyncTools, inputs: _Inputs) -> None:
"""
_DIRECTIVE: Final = re.compile(r"#.*\b(?:type|mypy)\s*:")


@dataclass(frozen=True, slots=True)
class CheckedText:
    """What mypy reads, and where the program is in it."""

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
    """An earlier program up to where it always raised: for mypy, nothing after that would ever run."""
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
    """Blank out comments: some of them tell mypy to look away."""
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


# ----------------------------------------------------------------------------------------------------------------------
# mypy as it is installed next to the toolkit.


@dataclass(frozen=True, slots=True)
class InstalledMypy:
    """The mypy of the environment that the toolkit runs in."""

    version: str
    packages: str
    """The directory where it is installed."""


@cache
def find_mypy() -> InstalledMypy:
    """Raises ``SetupError`` if mypy is not installed."""
    try:
        found = metadata.distribution("mypy")
    except metadata.PackageNotFoundError:
        raise SetupError(
            "checking programs needs mypy: pip install 'typed-toolkit[programs]'; checker='off' runs programs unchecked"
        ) from None
    return InstalledMypy(found.version, os.path.realpath(str(found.locate_file(""))))


SECONDS: Final = 20.0
"""How long one check may take. The first one of a process takes mypy about a second."""
_MAX_ANSWER: Final = 16 << 20
_MAX_KEPT: Final = 256
_SCRIPT: Final = os.path.join(os.path.dirname(os.path.realpath(__file__)), "inside_checker.py")


class ProgramChecker:
    """Checks programs with one process of mypy. May be used by several threads.

    The process runs in the sandbox of ``guard``, which should show it no workspace.
    """

    def __init__(self, guard: ProcessGuard, seconds: float = SECONDS) -> None:
        self._guard: Final = guard
        self._seconds: Final = seconds
        self._lock = threading.Lock()
        self._process: FramedProcess | None = None
        self._kept: Final[OrderedDict[bytes, tuple[ProgramError, ...]]] = OrderedDict()
        self._closed = False
        start_again_in_child(self)

    def start_again_in_child(self) -> None:
        """The process belongs to the parent."""
        self._lock = threading.Lock()
        self._process = None

    def check(
        self,
        program: ParsedProgram,
        prelude: str,
        previous: Sequence[str] = (),
        until: float = math.inf,
        signal: CancelSignal | None = None,
    ) -> tuple[ProgramError, ...]:
        """What is wrong with the types of a program that passed the gate.

        ``prelude`` declares its tools and inputs, ``previous`` are the earlier programs of its session. ``until`` (of the
        monotonic clock) and ``signal`` end the check early; then the program is refused.
        """
        mypy = find_mypy()
        key = _digest(mypy.version, program.source, prelude, *previous)
        if not self._lock.acquire(timeout=min(max(0.0, until - time.monotonic()), threading.TIMEOUT_MAX)):
            return (_not_checked("there was no time left"),)
        try:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
            text = build_checked_text(prelude, program, previous)
            findings = self._ask(mypy, {"text": text.text, "stub": ERRORS_STUB}, until, signal or CancelSignal())
            if isinstance(findings, ProgramError):
                return (findings,)
            errors = _read_findings(findings, text, program.tree, prelude)
            self._kept[key] = errors
            if len(self._kept) > _MAX_KEPT:
                self._kept.popitem(last=False)
            return errors
        finally:
            self._lock.release()

    def close(self) -> None:
        """End the process; a check that is running is refused, and so are later ones."""
        self._closed = True
        if (process := self._process) is not None:
            process.wake()
        with self._lock:
            self._end()

    def _ask(
        self, mypy: InstalledMypy, request: dict[str, str], until: float, signal: CancelSignal
    ) -> list[CheckerFinding] | ProgramError:
        """mypy's findings, or an error if there is no verdict; then its process is gone."""
        latest = time.monotonic() + self._seconds
        process = self._process
        if process is None or not process.is_alive:
            if process is not None:
                count_restart("program_checker")
            self._end()
            process = self._process = self._start(mypy)
        forget = signal.listen(process.wake)
        try:
            process.send({}, json.dumps(request).encode())
            frames: list[Frame] = []
            while not frames:
                self._check_open()
                frames = process.receive(min(until, latest), signal.check)
            [frame] = frames
            return [CheckerFinding(*row) for row in _read_rows(frame.body)]
        except TimeoutError:
            limit = f"mypy took longer than {self._seconds:g} s; make the program simpler"
            why = limit if latest < until else "there was no time left"
        except ToolCancelled as error:
            why = error.message
        except ProcessEnded as error:
            why = f"mypy gave no answer ({error}); make the program simpler"
        except (BrokenFrame, ValueError):
            why = "mypy gave no answer that can be used; make the program simpler"
        finally:
            forget()
        self._end()
        return _not_checked(why)

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.close()

    def _start(self, mypy: InstalledMypy) -> FramedProcess:
        self._check_open()
        settings = {"packages": mypy.packages, "version": f"{sys.version_info.major}.{sys.version_info.minor}"}
        roots = [os.path.dirname(_SCRIPT), mypy.packages]
        command = [helper_interpreter(), "-I", "-S", _SCRIPT, json.dumps(settings)]
        needed = [root for root in roots if not any(is_below(root, place) for place in SYSTEM)]
        return FramedProcess(self._guard.start(command, read_roots=needed), _MAX_ANSWER)

    def _check_open(self) -> None:
        if self._closed:
            raise ToolFailed("IO", "the toolkit has been closed")


def _not_checked(why: str) -> ProgramError:
    return ProgramError(0, 0, f"the program was not checked: {why}", "type")


def _read_rows(body: bytes) -> list[tuple[int, int, str]]:
    """The findings of an answer; ``ValueError`` if it has none, or is not what the script inside writes."""
    try:
        rows = json.loads(body)["findings"]
        found = [(line, column, message) for line, column, message in rows]
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError(str(error)) from None
    if not all(list(map(type, row)) == [int, int, str] for row in found):
        raise ValueError("a finding has other types")
    return found


def _read_findings(
    findings: Sequence[CheckerFinding], text: CheckedText, tree: ast.Module, prelude: str
) -> tuple[ProgramError, ...]:
    """The errors in lines of the program itself."""
    if not any(finding.line == text.probe_line for finding in findings):
        return (_not_checked("the earlier programs never end; reset the session"),)
    placed = []
    for finding in findings:
        place = text.place(finding.line, finding.column)
        if place is not None:
            placed.append(finding._replace(line=place[0], column=place[1]))
    return shorten_errors(word_findings(placed, tree, text.lines, prelude))


def _digest(*parts: str) -> bytes:
    made = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        made.update(len(data).to_bytes(8) + data)
    return made.digest()
