"""The module that a type checker reads before a program: the tools, their types, and the inputs of the program.

Whatever is not for the program has a name with an underscore, so that a program that uses ``Any`` or ``date`` without an
import is refused. Types are written through modules: a field named ``list`` would hide ``list`` from the fields below it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final

from toolkit.runtime.signatures.input_types import describe_inputs
from toolkit.runtime.signatures.plain_types import parse_type, plain_text
from toolkit.runtime.signatures.signature import ToolSignature

_HEAD: Final = """from __future__ import annotations
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
_SPELLED: Final = {name: module for module, names in _MODULES.items() for name in names}


def checker_text(signatures: Sequence[ToolSignature], inputs: Mapping[str, object] | None = None) -> str:
    """The text before a program: ``_Tools``, ``_AsyncTools`` and ``_Inputs``, the types of its three parameters."""
    given = describe_inputs(inputs or {})
    lines = dict.fromkeys(line for tool in signatures for line in tool.classes)
    known = {_defined_name(line) for line in lines}
    lines.update(dict.fromkeys(line for line in given.classes if _defined_name(line) not in known))
    methods = [_method(tool) for tool in signatures]
    fields = [f"    {name}: {_spell(parse_type(kind))}" for name, kind in given.types.items()]
    return "".join(
        [
            _HEAD,
            *(f"{spell_definition(line)}\n" for line in lines),
            _block("class _Tools(_t.Protocol):", [f"    def {method}" for method in methods]),
            _block("class _AsyncTools(_t.Protocol):", [f"    async def {method}" for method in methods]),
            _block("class _Inputs:", fields),
        ]
    )


def _block(head: str, lines: Iterable[str]) -> str:
    return "\n".join([head, *(list(lines) or ["    pass"]), ""])


def _method(tool: ToolSignature) -> str:
    parsed = ast.parse(f"def {tool.attribute}({tool.parameters}) -> {tool.output}: ...").body[0]
    assert isinstance(parsed, ast.FunctionDef)
    arguments, defaults = parsed.args.args, len(parsed.args.defaults)
    texts = [f"{one.arg}: {_spell(one.annotation)}" for one in arguments if one.annotation is not None]
    required = len(texts) - defaults
    texts = [text if index < required else f"{text} = ..." for index, text in enumerate(texts)]
    return (
        f"{tool.attribute}({', '.join(['self', '*', *texts] if texts else ['self'])}) -> {_spell(parsed.returns)}: ..."
    )


@lru_cache(maxsize=4096)
def spell_definition(line: str) -> str:
    """A class or alias of a signature, as the checker reads it."""
    node = ast.parse(line).body[0]
    if isinstance(node, ast.ClassDef):
        base = "_t.TypedDict" if node.bases else "_Model"
        base += ", total=False" if node.keywords else ""
        fields = [
            f"    {ast.unparse(member.target)}: {_spell(member.annotation)}"
            for member in node.body
            if isinstance(member, ast.AnnAssign)
        ]
        return _block(f"class {node.name}({base}):", fields).rstrip("\n")
    # What is not an annotation is evaluated when it is read, so it is quoted: it may name what is defined below it.
    if isinstance(node, ast.AnnAssign):
        return f"{ast.unparse(node.target)}: _t.TypeAlias = {_spell(node.value)!r}"
    assert isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
    name, fields_of = node.value.args
    assert isinstance(fields_of, ast.Dict)
    rows = [
        f"{ast.unparse(key)}: {_spell(kind)!r}"
        for key, kind in zip(fields_of.keys, fields_of.values, strict=True)
        if key is not None
    ]
    return f"{ast.unparse(node.targets[0])} = _t.TypedDict({ast.unparse(name)}, {{{', '.join(rows)}}})"


def _spell(node: ast.expr | None) -> str:
    """A type with the names of built-in types and of ``typing`` written through their modules."""
    assert node is not None
    return plain_text(node, lambda name: f"{_SPELLED[name]}.{name}" if name in _SPELLED else name)


def _defined_name(line: str) -> str:
    """The name that a class or alias of a signature defines."""
    word = line.removeprefix("class ")
    return word[: next(index for index, letter in enumerate(word) if letter in "(: =")]
