"""``XArgs`` and its nested types: the arguments of a tool as TypedDicts, so that checkers can check dict literals."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from toolkit.codegen.package import python_names
from toolkit.codegen.package.formats import RICH
from toolkit.codegen.package.literals import TypeText
from toolkit.codegen.package.render.literal import docstring, text_literal
from toolkit.codegen.schema.document import Document

SHARED_NAMES: Final = frozenset({"Any", "Literal", *RICH.values()})
"""Names in types that do not belong to one tool."""


def args_name(class_name: str, prefix: str) -> str:
    """``ReadFileInputFilter`` -> ``ReadFileArgsFilter``."""
    return f"{prefix}Args{class_name.removeprefix(f'{prefix}Input')}"


def render_args(document: Document, prefix: str) -> str:
    """The TypedDicts of one input document, the root last, then the types that lead back to themselves."""
    text = TypeText(document, name=lambda n: n if n in SHARED_NAMES else args_name(n, prefix))
    objects = {**document.objects, document.name: document.root}
    classes = [_typed_dict(args_name(name, prefix), node, text) for name, node in objects.items()]
    return "\n\n\n".join([*classes, *_recursive_aliases(document, prefix, text)])


def _recursive_aliases(document: Document, prefix: str, text: TypeText) -> Iterator[str]:
    """A type that leads back to itself has a name; quoted, because its parts may be defined below it."""
    for name, node in document.aliases.items():
        if name in document.recursive:
            yield f"{args_name(name, prefix)}: TypeAlias = {text_literal(text.render(node))}"


def _typed_dict(name: str, node: dict[str, Any], text: TypeText) -> str:
    required = set(node.get("required", ()))
    fields = {
        key: kind if key in required else f"NotRequired[{kind}]"
        for key, kind in (
            (key, _quote_class(text.render(value), value)) for key, value in node.get("properties", {}).items()
        )
    }
    closed = ", closed=True" if node.get("additionalProperties") is False else ""
    if all(map(python_names.is_plain_key, fields)):
        lines = [f"class {name}(TypedDict{closed}):"]
        for key, kind in fields.items():
            description = node["properties"][key].get("description")
            lines += [f"    {key}: {kind}", *([docstring(description, "    ")] if description else ())]
        return "\n".join(lines if fields else [*lines, "    pass"])
    rows = [f"        {text_literal(key)}: {kind}," for key, kind in fields.items()]
    last = [f"    {closed[2:]},"] if closed else []
    return "\n".join([f"{name} = TypedDict(", f'    "{name}",', "    {", *rows, "    },", *last, ")"])


def _quote_class(kind: str, node: dict[str, Any]) -> str:
    """A type that names another class is quoted: the class may be defined below, or be this one."""
    return text_literal(kind) if _refers_to_class(node) else kind


def _refers_to_class(node: dict[str, Any]) -> bool:
    inner = [node.get("items"), node.get("additionalProperties"), *node.get("anyOf", ())]
    return "$ref" in node or any(isinstance(part, dict) and _refers_to_class(part) for part in inner)
