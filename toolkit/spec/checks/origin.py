"""Keys of imported files: ``origin`` and ``prefix``, the keys of a tool that belong to its origin, and its names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from toolkit.schema.problems import quote
from toolkit.schema.spec import Json, Origin
from toolkit.spec.checks.fields import Fields
from toolkit.spec.tool_names import NAME_RULE, is_wire_name

ORIGIN_KINDS: Final = ("mcp", "openapi", "tools", "functions", "models")
MAX_ORIGINAL_NAME: Final = 1024
# Keys of a tool that are allowed for one kind of origin only.
_KEY_KINDS: Final = {"request": "openapi", "wrapsResult": "mcp", "function": "functions"}
_REQUEST_KEYS: Final = ("method", "path", "parameters", "body", "accept")
ORIGIN_KEYS: Final = tuple(_KEY_KINDS)


@dataclass(frozen=True, slots=True)
class FileOrigin:
    """What a file declares for all its tools."""

    origin: Origin | None = None
    prefix: str = ""


def check_file_origin(fields: Fields) -> FileOrigin:
    """``origin`` and ``prefix`` of a file."""
    prefix = fields.string("prefix") or ""
    if prefix and not is_wire_name(f"{prefix}x"):
        fields.add(f"{quote(prefix)} cannot start a tool name: {NAME_RULE}", "prefix")
        prefix = ""
    value = fields.mapping("origin")
    if value is None:
        return FileOrigin(None, prefix)
    parts = Fields(value, fields.at("origin"), fields.problems)
    for key in ("kind", "name"):
        parts.require(key, "it names the import that wrote the file")
    kind = parts.string("kind")
    if kind is not None and kind not in ORIGIN_KINDS:
        parts.add(f"{quote(kind)} is not a kind of import; the kinds are {', '.join(ORIGIN_KINDS)}", "kind")
    details = {key: item for key, item in value.items() if key not in ("kind", "name")}
    return FileOrigin(Origin(kind or "", parts.string("name") or "", details), prefix)


def check_origin_keys(fields: Fields, origin: Origin | None) -> None:
    """Refuses keys of a tool that belong to another kind of origin."""
    for key, kind in _KEY_KINDS.items():
        if key in fields.value and (origin is None or origin.kind != kind):
            fields.add(f"{key!r} is only allowed in a file whose 'origin' has the kind {kind!r}", key)


def check_request(fields: Fields) -> dict[str, Json] | None:
    """``request``: how an operation is called. Its keys become keyword arguments."""
    request = fields.mapping("request")
    if fields.value.get("request") is None or request is None:
        return None
    for key in request:
        if key not in _REQUEST_KEYS:
            fields.add(f"{quote(key)} is not a key of 'request'; the keys are {', '.join(_REQUEST_KEYS)}", "request")
    return request


def check_function(fields: Fields) -> str | None:
    """``module:function`` of a tool that was read from a function."""
    function = fields.string("function")
    if function is None:
        return None
    module, _, name = function.partition(":")
    # Python's names for functions that are defined inside another.
    parts = [*module.split("."), *(part for part in name.split(".") if part not in ("<locals>", "<lambda>"))]
    if not all(part.isidentifier() for part in parts):
        fields.add(f"'function' must have the form 'module:function', not {quote(function)}", "function")
    return function


def check_names(fields: Fields, file_origin: FileOrigin) -> tuple[str, str | None]:
    """``name`` and ``rename``. An imported tool may have any name at its origin, if the resulting name is valid."""
    name, rename = fields.string("name"), fields.string("rename")
    if rename is not None and not is_wire_name(rename):
        fields.add(f"{quote(rename)} is not a tool name: {NAME_RULE}", "rename")
        rename = None
    if name is None:
        return "", rename
    if file_origin.origin is not None and rename is not None:
        usable = 0 < len(name) <= MAX_ORIGINAL_NAME
    else:
        usable = is_wire_name(f"{file_origin.prefix}{name}")
    if not usable:
        way_out = "; give it a 'rename'" if file_origin.origin is not None and rename is None else ""
        fields.add(f"{quote(file_origin.prefix + name)} is not a tool name: {NAME_RULE}{way_out}", "name")
        return "", rename
    return name, rename
