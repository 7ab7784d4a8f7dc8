"""What imported files say besides their tools: ``origin`` and ``prefix``, and in a tool what belongs to its origin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from toolkit.spec.fields import Fields
from toolkit.spec.model import Json, Origin
from toolkit.spec.names import NAME_RULE, is_wire_name
from toolkit.spec.problems import shown

ORIGIN_KINDS: Final = ("mcp", "openapi", "tools", "functions", "models")
MAX_ORIGINAL_NAME: Final = 1024
# Keys of a tool that mean something only where it comes from there.
_OF_A_KIND: Final = {"request": "openapi", "wrapsResult": "mcp", "function": "functions"}
_REQUEST_KEYS: Final = ("method", "path", "parameters", "body", "accept")
ORIGIN_KEYS: Final = tuple(_OF_A_KIND)


@dataclass(frozen=True, slots=True)
class Imported:
    """What the file of a tool says of all its tools."""

    origin: Origin | None = None
    prefix: str = ""


def check_imported(fields: Fields) -> Imported:
    """``origin`` and ``prefix`` of a file."""
    prefix = fields.string("prefix") or ""
    if prefix and not is_wire_name(f"{prefix}x"):
        fields.add(f"{shown(prefix)} is no beginning of a tool's name: {NAME_RULE}", "prefix")
        prefix = ""
    value = fields.mapping("origin")
    if value is None:
        return Imported(None, prefix)
    parts = Fields(value, fields.at("origin"), fields.problems)
    for key in ("kind", "name"):
        parts.require(key, "it says which import the file came from")
    kind = parts.string("kind")
    if kind is not None and kind not in ORIGIN_KINDS:
        parts.add(f"{shown(kind)} is no kind of import: those are {', '.join(ORIGIN_KINDS)}", "kind")
    details = {key: item for key, item in value.items() if key not in ("kind", "name")}
    return Imported(Origin(kind or "", parts.string("name") or "", details), prefix)


def check_origin_keys(fields: Fields, origin: Origin | None) -> None:
    """Refuses in a tool what only another kind of origin knows."""
    for key, kind in _OF_A_KIND.items():
        if key in fields.value and (origin is None or origin.kind != kind):
            fields.add(f"{key!r} stands only in a file whose 'origin' is of the kind {kind!r}", key)


def check_request(fields: Fields) -> dict[str, Json] | None:
    """How an operation is called: its keys become keyword arguments."""
    request = fields.mapping("request")
    if fields.value.get("request") is None or request is None:
        return None
    for key in request:
        if key not in _REQUEST_KEYS:
            fields.add(f"{shown(key)} is no key that says how an operation is called", "request")
    return request


def check_function(fields: Fields) -> str | None:
    """``module:function`` of a tool that was read from one."""
    function = fields.string("function")
    if function is None:
        return None
    module, _, name = function.partition(":")
    # A function made inside another is named so by Python.
    parts = [*module.split("."), *(part for part in name.split(".") if part not in ("<locals>", "<lambda>"))]
    if not all(part.isidentifier() for part in parts):
        fields.add(f"a function is written 'module:function', not {shown(function)}", "function")
    return function


def check_names(fields: Fields, imported: Imported) -> tuple[str, str | None]:
    """``name`` and ``rename``. A name at an origin may be anything, so long as the name made of it can be used."""
    name, rename = fields.string("name"), fields.string("rename")
    if rename is not None and not is_wire_name(rename):
        fields.add(f"{shown(rename)} is no tool name: {NAME_RULE}", "rename")
        rename = None
    if name is None:
        return "", rename
    if imported.origin is not None and rename is not None:
        usable = 0 < len(name) <= MAX_ORIGINAL_NAME
    else:
        usable = is_wire_name(f"{imported.prefix}{name}")
    if not usable:
        way_out = "; give it a 'rename'" if imported.origin is not None and rename is None else ""
        fields.add(f"{shown(imported.prefix + name)} is no tool name: {NAME_RULE}{way_out}", "name")
        return "", rename
    return name, rename
