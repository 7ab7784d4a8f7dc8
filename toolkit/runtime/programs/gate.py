"""The gate: judges the syntax tree of a program, and finds the tools that it can call.

Promise: whatever the text is, the answer is a ``ParsedProgram``, with at least one error if the program must not run. A
program without errors mentions ``tools`` and ``atools`` only as ``tools.<name>`` with a known name, so ``uses`` is the
complete list of what it can call. Limit: the other rules explain what a program cannot do before it tries; what holds a
program that finds a way around them is the sandbox, and the toolkit, which accepts only calls of tools in ``uses``.
"""

from __future__ import annotations

import ast
import bisect
import functools
import itertools
import re
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

from toolkit import errors
from toolkit.errors import find_near_miss
from toolkit.runtime.programs.result import MAX_ERRORS, ProgramError, ProgramErrorKind, shorten_errors

# ----------------------------------------------------------------------------------------------------------------------
# What a program may import, and what to use instead of what it may not.
#
# The list is for the reader of an error, not a boundary: a program that gets past it is still in the sandbox.

ALLOWED_IMPORTS: Final = frozenset([
    "abc", "array", "ast", "asyncio", "base64", "binascii", "bisect", "calendar", "cmath", "collections", "colorsys",
    "contextlib", "contextvars", "copy", "csv", "dataclasses", "datetime", "decimal", "difflib", "enum", "fnmatch",
    "fractions", "functools", "graphlib", "hashlib", "heapq", "hmac", "html", "io", "ipaddress", "itertools", "json",
    "keyword", "math", "mimetypes", "numbers", "operator", "posixpath", "pprint", "queue", "random", "re", "secrets",
    "shlex", "statistics", "string", "struct", "textwrap", "time", "tomllib", "traceback", "types", "typing",
    "typing_extensions", "unicodedata", "urllib.parse", "uuid", "warnings", "weakref", "xml.etree.ElementTree",
    "zlib", "zoneinfo",
])  # fmt: skip
"""The parts of the standard library that compute; what is below one of these modules may be imported as well."""

ERROR_CLASSES: Final = (
    "ToolkitError",
    *(kind.__name__ for kind in errors.ToolkitError.__subclasses__() if kind.__module__ == errors.__name__),
)
"""What ``from toolkit import ...`` may name."""

ONLY_COMPUTES: Final = (
    "a program may import the modules of the standard library that only compute, such as json, re and datetime"
)
_MAX_TOOLS: Final = 3
_MAX_PARTS: Final = 50
_FILES: Final = ("read_file", "list", "grep", "glob", "write_file", "edit")
_COMMANDS: Final = ("exec_command", "bash")
_WEB: Final = ("webfetch",)
_TOOLS_INSTEAD: Final = {
    "codecs": _FILES, "fileinput": _FILES, "glob": _FILES, "linecache": _FILES, "os": _FILES, "pathlib": _FILES,
    "shutil": _FILES, "tempfile": _FILES, "zipfile": _FILES, "tarfile": _FILES, "mmap": _FILES,
    "subprocess": _COMMANDS, "pty": _COMMANDS, "sh": _COMMANDS,
    "aiohttp": _WEB, "ftplib": _WEB, "http": _WEB, "httpx": _WEB, "requests": _WEB, "socket": _WEB, "ssl": _WEB,
    "urllib": _WEB, "urllib3": _WEB,
}  # fmt: skip
_INSTEAD: Final = {
    "argparse": "values come in `inputs`",
    "concurrent": "run calls in parallel with asyncio.gather and `atools`",
    "importlib": "import what you need by name",
    "logging": "print what you want to see",
    "multiprocessing": "run calls in parallel with asyncio.gather and `atools`",
    "pickle": "use json",
    "sys": "values come in `inputs`; raise an exception to stop early",
    "threading": "run calls in parallel with asyncio.gather and `atools`",
}


def is_allowed_import(module: str, imports: Collection[str]) -> bool:
    """Whether a program may import ``module``: it is in ``imports``, or below one that is.

    >>> is_allowed_import("collections.abc", {"collections"}), is_allowed_import("urllib", {"urllib.parse"})
    (True, False)
    """
    place = -1
    for _ in range(_MAX_PARTS):  # of a name with thousands of parts, each beginning would be as long as a program
        place = module.find(".", place + 1)
        if place < 0:
            return module in imports
        if module[:place] in imports:
            return True
    return False


def suggest_instead(module: str, tools: Collection[str]) -> str | None:
    """What to do instead of importing ``module``, as the end of a sentence; None if it is not a well-known one."""
    top = module.partition(".")[0]
    here = [f"tools.{name}" for name in _TOOLS_INSTEAD.get(top, ()) if name in tools]
    if here:
        return f"use {' or '.join(here[:_MAX_TOOLS])}"
    return ONLY_COMPUTES if top in _TOOLS_INSTEAD else _INSTEAD.get(top)


# ----------------------------------------------------------------------------------------------------------------------
# The gate. It suggests a name for a misspelt one only if they are nearly the same: a wrong guess would mislead.

_GOOD_GUESS: Final = 0.7


def find_good_guess(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate that is nearly the same.

    >>> find_good_guess("jsn", ["json", "re"]), find_good_guess("numpy", ["enum"])
    ('json', None)
    """
    near = find_near_miss(name, candidates)
    return near if near is not None and SequenceMatcher(None, name, near).ratio() >= _GOOD_GUESS else None


FILE: Final = "<program>"
"""The name of a program in compile errors and tracebacks."""

MAX_SOURCE: Final = 1 << 20
"""The most characters that are parsed at all: it takes seconds, and happens in the process of the toolkit."""
_GIVEN: Final = frozenset(["tools", "atools", "inputs"])
_OWN_CODE: Final = "write the code in the program itself"
_REFUSED_NAMES: Final = {
    "__import__": "write an import statement",
    "breakpoint": "print what you want to see",
    "compile": _OWN_CODE,
    "eval": _OWN_CODE,
    "exec": _OWN_CODE,
    "exit": "the program ends after its last line; raise an exception to stop early",
    "globals": "keep values in a dict of your own",
    "help": "print what you want to see",
    "input": "nobody is there to answer; values come in `inputs`",
    "locals": "keep values in a dict of your own",
    "quit": "the program ends after its last line; raise an exception to stop early",
    "vars": "keep values in a dict of your own",
}
_HARMLESS_DUNDERS: Final = frozenset(["__name__", "__doc__"])
_DUNDER: Final = re.compile(r"__\w+__")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
# The parser of CPython joins the parts of an imported name one by one, so that a long one takes minutes.
_LONG_DOTTED: Final = re.compile(r"\b(?:\w++[\s\\]*+\.[\s\\]*+){1000}")
_OF_PROGRAMS: Final = re.escape(FILE)
_MAX_NAMED: Final = 12


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A place where a program names a tool. ``awaited`` is whether it does through ``atools``."""

    tool: str
    line: int
    column: int
    awaited: bool


@dataclass(frozen=True, slots=True)
class ParsedProgram:
    """A program after the gate. ``tree`` is empty if the text is not Python."""

    source: str
    tree: ast.Module
    uses: tuple[ToolUse, ...] = ()
    errors: tuple[ProgramError, ...] = ()


def parse_program(source: str, tool_names: Mapping[str, str], imports: frozenset[str]) -> ParsedProgram:
    """Parse and judge a program. ``tool_names`` are the attributes of ``tools`` with the names on the wire, ``imports``
    the modules that it may import. Never raises for what the text is."""
    tree = parse_tree(source)
    if isinstance(tree, ProgramError):
        return ParsedProgram(source, ast.Module([], []), errors=(tree,))
    gate = _Gate(source, tree, tool_names, imports)
    errors = shorten_errors(gate.find_errors())
    uses = sorted(gate.uses, key=lambda use: (use.line, use.column))
    return ParsedProgram(source, tree, tuple(uses), errors)


# -- parsing -----------------------------------------------------------------------------------------------------------


def parse_tree(source: str) -> ast.Module | ProgramError:
    """The syntax tree of a program that CPython can compile, or what is wrong with it."""
    if len(source) > MAX_SOURCE:
        return _syntax_error(0, 0, f"the program has {len(source)} characters; at most {MAX_SOURCE} are allowed")
    for pattern, what in ((_SURROGATE, "a lone surrogate"), (re.compile("\0"), "a NUL character")):
        found = pattern.search(source)
        if found:
            line = source.count("\n", 0, found.start()) + 1
            return _syntax_error(line, 0, f"the program contains {what}; write it as an escape in a string")
    if _LONG_DOTTED.search(source):
        return _syntax_error(0, 0, "the program is nested too deeply: it has a name with a thousand dots")
    _ignore_warnings()
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    try:
        tree = compile(source, FILE, "exec", flags | ast.PyCF_ONLY_AST, dont_inherit=True)
        # The tree alone does not show everything, such as `return` outside a function.
        compile(tree, FILE, "exec", flags, dont_inherit=True)
    except SyntaxError as error:
        return _syntax_error(error.lineno or 0, max(error.offset or 0, 0), error.msg)
    except (RecursionError, MemoryError):
        return _syntax_error(0, 0, "the program is nested too deeply; split it into several statements")
    except (ValueError, OverflowError) as error:
        return _syntax_error(0, 0, f"the program cannot be read: {error}")
    assert isinstance(tree, ast.Module)
    return tree


def _syntax_error(line: int, column: int, message: str) -> ProgramError:
    return ProgramError(line, column, message, "syntax")


def _ignore_warnings() -> None:
    """What CPython warns about in a program must not appear in the toolkit's own output, or raise there."""
    first = warnings.filters[0][3] if warnings.filters else None
    if getattr(first, "pattern", None) != _OF_PROGRAMS:  # each change makes Python repeat warnings that were shown once
        warnings.filterwarnings("ignore", module=_OF_PROGRAMS)


# -- the rules ---------------------------------------------------------------------------------------------------------


class _Gate:
    """Judges one tree."""

    def __init__(self, source: str, tree: ast.Module, tool_names: Mapping[str, str], imports: frozenset[str]) -> None:
        self._lines = split_lines(source)
        self._nodes = list(ast.walk(tree))
        self._tools = tool_names
        self._imports = imports
        self._bound = {name for node in self._nodes for name in bound_names(node)}
        self._known_uses: set[ast.expr] = set()
        self._suggestions_left = MAX_ERRORS
        self.uses: list[ToolUse] = []

    def find_errors(self) -> Iterator[ProgramError]:
        for node in self._nodes:
            yield from self._judge_bindings(node)
            match node:
                case ast.Attribute():
                    yield from self._judge_attribute(node)
                case ast.Import():
                    for alias in node.names:
                        yield from self._judge_import(node, alias.name)
                case ast.ImportFrom():
                    yield from self._judge_import_from(node)
                case ast.Global():
                    yield self._error(node, "`global` is not available; return the value from the function instead")
                case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id="atools"), attr=name))):
                    yield self._error(
                        node, f"atools.{name}(...) does nothing by itself; write `await atools.{name}(...)`"
                    )
                case ast.Await(value=ast.Call(func=ast.Attribute(value=ast.Name(id="tools"), attr=name))):
                    message = (
                        f"tools.{name}(...) cannot be awaited; leave out `await`, or write `await atools.{name}(...)`"
                    )
                    yield self._error(node, message)
                case ast.Call(func=ast.Attribute(value=ast.Name(id="asyncio"), attr="run")):
                    yield self._error(node, "asyncio.run is not available; write `await main()` at the top level")
        for node in self._nodes:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                yield from self._judge_name(node)

    def _judge_bindings(self, node: ast.AST) -> Iterator[ProgramError]:
        for name in bound_names(node):
            if name in _GIVEN:
                yield self._error(node, f"`{name}` cannot be given another meaning; choose another name")

    def _judge_name(self, node: ast.Name) -> Iterator[ProgramError]:
        name = node.id
        if name in ("tools", "atools"):
            if node not in self._known_uses:
                yield self._error(node, f"`{name}` can only be used as {name}.<tool>, such as {self._example(name)}")
        elif name in self._bound:
            return
        elif name == "open":
            yield self._error(node, f"`open` is not available; {self._instead_of('os')}")
        elif name in _REFUSED_NAMES:
            yield self._error(node, f"`{name}` is not available; {_REFUSED_NAMES[name]}")
        elif _DUNDER.fullmatch(name) and name != "__name__":
            yield self._error(node, f"`{name}` is not available")

    def _judge_attribute(self, node: ast.Attribute) -> Iterator[ProgramError]:
        if isinstance(node.value, ast.Name) and node.value.id in ("tools", "atools"):
            yield from self._judge_use(node, node.value)
        elif _DUNDER.fullmatch(node.attr) and node.attr not in _HARMLESS_DUNDERS and not _is_super(node.value):
            instead = "; use type(...)" if node.attr == "__class__" else ""
            yield self._error(node, f"the attribute `{node.attr}` is not available{instead}")

    def _judge_use(self, node: ast.Attribute, owner: ast.Name) -> Iterator[ProgramError]:
        self._known_uses.add(owner)
        tool = self._tools.get(node.attr)
        if not isinstance(node.ctx, ast.Load):
            yield self._error(node, f"{owner.id}.{node.attr} cannot be assigned or deleted")
        elif tool is None:
            yield self._error(node, f'no tool is called "{node.attr}"{self._nearest_tool(node.attr)}')
        else:
            line, column = self._place(node)
            self.uses.append(ToolUse(tool, line, column, owner.id == "atools"))

    def _judge_import(self, node: ast.stmt, module: str) -> Iterator[ProgramError]:
        if module.partition(".")[0] == "toolkit":
            yield self._error(node, "of toolkit, only errors can be imported: `from toolkit import ToolkitError`")
        elif not is_allowed_import(module, self._imports):
            instead = self._instead_of(module)
            yield self._error(node, f'the module "{module}" cannot be imported; {instead}')

    def _judge_import_from(self, node: ast.ImportFrom) -> Iterator[ProgramError]:
        names = [alias.name for alias in node.names]
        module = node.module or ""
        if node.level:
            yield self._error(node, "a program has no package, so it cannot import with a leading dot")
        elif module == "__future__":
            yield self._error(node, "leave out imports from __future__")
        elif names == ["*"]:
            yield self._error(node, "import the names that you need instead of *")
        elif module == "toolkit":
            yield from self._judge_error_classes(node, names)
        elif not is_allowed_import(module, self._imports):
            # `from urllib import parse` is the module urllib.parse.
            for name in names:
                if not is_allowed_import(f"{module}.{name}", self._imports):
                    yield from self._judge_import(node, module)
                    return

    def _judge_error_classes(self, node: ast.ImportFrom, names: list[str]) -> Iterator[ProgramError]:
        for name in names:
            if name not in ERROR_CLASSES:
                near = self._near_miss(name, ERROR_CLASSES)
                hint = f'did you mean "{near}"?' if near else f"there are {', '.join(sorted(ERROR_CLASSES))}"
                yield self._error(node, f'"{name}" is not an error class of toolkit; {hint}')

    # -- texts ---------------------------------------------------------------------------------------------------------

    def _near_miss(self, name: str, candidates: Collection[str]) -> str | None:
        """Only for as many errors as are shown: with many tools, each search takes milliseconds."""
        self._suggestions_left -= 1
        return find_good_guess(name, candidates) if self._suggestions_left >= 0 else None

    def _instead_of(self, module: str) -> str:
        instead = suggest_instead(module, self._tools)
        near = self._near_miss(module, self._imports) if instead is None else None
        return f'did you mean "{near}"?' if near else instead or ONLY_COMPUTES

    def _nearest_tool(self, name: str) -> str:
        near = self._near_miss(name, self._tools)
        if near is not None:
            return f'; did you mean "{near}"?'
        if not self._tools:
            return "; there are no tools"
        some = sorted(self._tools)[:_MAX_NAMED]
        more = ", ..." if len(self._tools) > _MAX_NAMED else ""
        return f"; there are {', '.join(some)}{more}"

    def _example(self, owner: str) -> str:
        return f"{owner}.{min(self._tools, default='name')}(...)"

    def _error(self, node: ast.AST, message: str, kind: ProgramErrorKind = "gate") -> ProgramError:
        return ProgramError(*self._place(node), message, kind)

    def _place(self, node: ast.AST) -> tuple[int, int]:
        """Line and column, counted from 1 and in characters."""
        line: int = getattr(node, "lineno", 0)
        column: int = getattr(node, "col_offset", -1)
        return line, char_column(self._lines, line, column) + 1


def split_lines(source: str) -> list[str]:
    """The lines as CPython counts them; ``str.splitlines`` also splits at form feeds and other characters."""
    return source.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def char_column(lines: list[str], line: int, column: int) -> int:
    """A column that CPython counted in bytes, as a number of characters."""
    if not 1 <= line <= len(lines) or lines[line - 1].isascii():
        return column
    return bisect.bisect_right(_ends_in_bytes(lines[line - 1]), column)


@functools.lru_cache(maxsize=4)
def _ends_in_bytes(line: str) -> list[int]:
    """Where each character ends; kept, because a line may be as long as a program, and have thousands of places."""
    return list(itertools.accumulate(len(character.encode()) for character in line))


def bound_names(node: ast.AST) -> Iterator[str]:
    """The names that this node itself binds or deletes, not those of the nodes inside it."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in names)
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name
        case ast.MatchMapping(rest=str(name)):
            yield name
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            yield from names
        case _ if type(node).__name__ in ("TypeVar", "ParamSpec", "TypeVarTuple"):  # from Python 3.12 on
            yield getattr(node, "name")  # noqa: B009


def _is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"
