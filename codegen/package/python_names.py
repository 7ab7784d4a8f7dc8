"""From names on the wire to names in Python. Every identifier in generated code comes from here.

A name depends only on its own wire name. If two names clash, one of them gets a digest of its wire name, never a number that
would change when another spec is added.
"""

from __future__ import annotations

import builtins
import hashlib
import keyword
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from toolkit.errors import SpecError
from toolkit.schema.problems import Finding, SpecPlace
from toolkit.schema.spec import attribute_name

Keep: TypeAlias = Callable[[str, str], bool]

# What generated model modules import or use in annotations: a field of that name would hide it.
_USED_IN_MODULES: Final = frozenset(
    {
        "Annotated", "Any", "ClassVar", "ConfigDict", "ContentOutput", "DeclaredBySome", "Exact", "Field", "Literal",
        "None", "NotRequired", "Omissible", "Optional", "TYPE_CHECKING", "ToolModel", "ToolRootModel", "TypeAlias",
        "TypeAliasType", "TypedDict", "Union", "bool", "dict", "float", "int", "list", "str", "WireDate", "WireDateTime",
        "WireTime", "WireUUID", "WireUrl",
    }
)  # fmt: skip
# Attributes of pydantic.BaseModel (2.14), and names with a special meaning in methods.
_TAKEN_ON_MODELS: Final = frozenset(
    {
        "cls", "construct", "copy", "from_orm", "json", "parse_file", "parse_obj", "parse_raw", "schema", "schema_json",
        "self", "update_forward_refs", "validate",
    }
)  # fmt: skip
_WINDOWS_DEVICES: Final = frozenset(
    ["con", "prn", "aux", "nul", *(f"com{n}" for n in range(10)), *(f"lpt{n}" for n in range(10))]
)


# How plurals end, and the singular; the first that fits decides. What has no singular stays as it is.
_PLURALS: Final = tuple(
    (re.compile(rf"{ending}\Z"), one)
    for ending, one in (
        (r"([Ss]eries|[Ss]pecies|[Nn]ews|ss|us|is)", None),
        (r"([Cc]hild)ren", r"\1"),
        (r"([Pp])eople", r"\1erson"),
        (r"([Ii]nd|[Vv]ert)ices", r"\1ex"),
        (r"([Mm]atr)ices", r"\1ix"),
        (r"([Cc]riteri)a", r"\1on"),
        (r"([Aa]naly)ses", r"\1sis"),
        (r"((?:^|_)a|A)xes", r"\1xis"),
        (r"([Mm]ov|[Cc]ook)ies", r"\1ie"),
        (r"([Ss]tatus|[Bb]onus|[Vv]irus|[Aa]lias|[Bb]ias|[Cc]anvas)es", r"\1"),
        (r"([Cc]ache)s", r"\1"),
        (r"(..)ies", r"\1y"),
        (r"(..(?:ch|sh|ss|zz|x))es", r"\1"),
        (r"(..)s", r"\1"),
    )
)


def digest(text: str, length: int = 6) -> str:
    """A short, stable suffix that keeps two equal names apart."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:length]


@dataclass(frozen=True, slots=True)
class ToolNames:
    """The Python side of one tool's name."""

    wire: str
    attribute: str
    """``tk.tools.<attribute>``"""
    module: str
    """``<package>.models.<module>``"""
    prefix: str
    """``<prefix>Input``, ``<prefix>Output``, ``<prefix>Args``"""


def name_tools(wire_names: Sequence[str], owners: Sequence[SpecPlace]) -> list[ToolNames]:
    """Names for all tools of one package. Two wire names with one Python form are refused, and both owners named.

    An owner is the file or module of a tool, and after a colon the tool's place in it.
    """
    attributes = [attribute_name(wire) for wire in wire_names]
    _refuse_clashes(wire_names, attributes, owners)
    prefixes = _make_distinct(wire_names, [camel(wire) for wire in wire_names], keep=_is_snake_of, joint="X")
    modules = _make_distinct(
        wire_names, [_module_name(a) for a in attributes], keep=lambda wire, _: wire == wire.lower(), fold=True
    )
    return [
        ToolNames(wire, attribute, module.replace("-", "_"), prefix)
        for wire, attribute, module, prefix in zip(wire_names, attributes, modules, prefixes, strict=True)
    ]


def camel(text: str) -> str:
    """A part of a class name for any text; inner capitals stay.

    >>> [camel(name) for name in ("read_file", "getHTTP-page", "3d", "größe")]
    ['ReadFile', 'GetHTTPPage', 'Tool3d', 'Größe']
    """
    words = [word for word in re.split(r"[\W_]+", text) if word]
    name = "".join(word[:1].upper() + word[1:] for word in words)
    if not name.isidentifier() or unicodedata.normalize("NFKC", name) != name:
        name = "Tool" + re.sub(r"\W", "", name, flags=re.ASCII) if name.isascii() else f"X{digest(text)}"
    return name


def field_names(wire_names: Iterable[str]) -> dict[str, str]:
    """The attribute name of each property of one object. Names that would clash get a digest, except the unchanged one.

    >>> field_names(["path", "class", "_id", "$meta", "schema", "list"])
    {'path': 'path', 'class': 'class_', '_id': 'id_', '$meta': 'meta', 'schema': 'schema_', 'list': 'list_'}
    >>> field_names(["a-b", "a_b"])
    {'a-b': 'a_b_d44362', 'a_b': 'a_b'}
    """
    wires = list(wire_names)
    names = _make_distinct(wires, [_field_name(wire) for wire in wires], keep=lambda wire, name: wire == name)
    return dict(zip(wires, names, strict=True))


def _field_name(wire: str) -> str:
    name = re.sub(r"\W", "_", wire)
    if wire.startswith("_"):
        name = name.strip("_") + "_"
    elif not wire[:1].isalnum():
        name = name.strip("_")
    if not name or name == "_":
        return f"field_{digest(wire)}"
    if name[0].isdigit():
        name = f"field_{name}"
    if not name.isidentifier() or unicodedata.normalize("NFKC", name) != name:
        return f"field_{digest(wire)}"
    taken = keyword.iskeyword(name) or name in _USED_IN_MODULES or name in _TAKEN_ON_MODELS or name.startswith("model_")
    return f"{name}_" if taken else name


def singular(text: str) -> str | None:
    """The name for one of what has this name; None if it is not a usual English plural.

    >>> [singular(word) for word in ("matches", "entries", "searchPaths", "statuses", "children", "status", "data")]
    ['match', 'entry', 'searchPath', 'status', 'child', None, None]
    """
    for ending, one in _PLURALS:
        if ending.search(text):
            return None if one is None else ending.sub(one, text)
    return None


def is_plain_key(wire: str) -> bool:
    """Whether a property can be a key in a TypedDict's class body without hiding a name its annotations use."""
    return (
        wire.isidentifier()
        and not keyword.iskeyword(wire)
        and unicodedata.normalize("NFKC", wire) == wire
        and wire not in _USED_IN_MODULES
        and not wire.startswith("__")
    )


def _module_name(attribute: str) -> str:
    return f"{attribute}_tool" if attribute.lower() in _WINDOWS_DEVICES else attribute


def _is_snake_of(wire: str, prefix: str) -> bool:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", prefix).lower() == wire


def _make_distinct(
    wires: Sequence[str], names: Sequence[str], *, keep: Keep, joint: str = "_", fold: bool = False
) -> list[str]:
    """The names, with a digest where some of them clash; ``keep`` chooses the one that stays unchanged."""

    def key(name: str) -> str:
        return name.casefold() if fold else name

    groups: dict[str, list[int]] = {}
    for index, name in enumerate(names):
        groups.setdefault(key(name), []).append(index)
    result, taken = list(names), set(groups)
    for indexes in groups.values():
        keeper = next((i for i in indexes if keep(wires[i], names[i])), min(indexes, key=lambda i: wires[i]))
        for index in (index for index in indexes if index != keeper):
            lengths = range(6, 65)  # a wire name may look as if it had a digest already
            marked = (f"{names[index]}{joint}{digest(wires[index], length)}" for length in lengths)
            result[index] = next(name for name in marked if key(name) not in taken)
            taken.add(key(result[index]))
    return result


def _refuse_clashes(wires: Sequence[str], attributes: Sequence[str], owners: Sequence[SpecPlace]) -> None:
    first: dict[str, int] = {}
    problems = []
    for index, attribute in enumerate(attributes):
        other = first.setdefault(attribute, index)
        if other != index:
            # An included tool has only a module: the place is where the reader can change something.
            is_included = owners[other].pointer and not owners[index].pointer
            there, here = (index, other) if is_included else (other, index)
            message = (
                f"tools {wires[there]!r} ({owners[there]}) and {wires[here]!r} both become 'tools.{attribute}' in Python;"
                " rename one of them with 'rename'"
            )
            place = owners[here]
            problems.append(Finding(message, place.source, place.pointer, other=owners[there]))
    if problems:
        raise SpecError(problems)


# ----------------------------------------------------------------------------------------------------------------------
# Names that generated modules define or import whatever their tools are. No toolkit class may have one of them.

EXPORTS: Final[dict[str, tuple[str, ...]]] = {
    "async_facade": ("AsyncTools", "create_async_agent_toolkit"),
    "bind": ("bind",),
    "catalog": ("CATALOG", "parse_call"),
    "context": ("Rule", "SecurityPolicy", "ToolkitContext"),
    "facade": ("Tools", "create_agent_toolkit"),
    "names": ("TOOL_NAMES", "ToolName", "is_tool_name"),
    "unions": ("AnyToolCall", "AnyToolMessage"),
}
"""What a generated package exports, by module."""

_IN_FACADES: Final = frozenset(
    {
        "Any", "AnyToolMessage", "ArgsOfNoTool", "AsyncRunner", "AsyncTools", "CATALOG", "CallTool", "CallToolAsync",
        "DynamicContext", "Iterable", "JsonObjectForUnknownName", "Literal", "NameOfNoTool", "OMIT", "Omit", "PACKS",
        "PackSource", "Runner", "TYPE_CHECKING", "ToolMessage", "ToolkitContext", "Tools", "TypeAlias", "annotations",
        "builtins", "create_agent_toolkit", "create_async_agent_toolkit", "overload", "send_only_given", "WireDate",
        "WireDateTime", "WireTime", "WireUUID", "WireUrl",
    }
)  # fmt: skip

TAKEN_CLASSES: Final = frozenset(
    {"AsyncToolkit", *_IN_FACADES, *dir(builtins), *(name for names in EXPORTS.values() for name in names)}
)
