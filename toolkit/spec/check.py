"""A value read from a spec file -> ToolSpecs. Every mistake goes to ``problems``; a spec with mistakes is still
built, from what could be read, and thrown away with the others by the loader."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from toolkit.spec.check_origin import (
    ORIGIN_KEYS,
    Imported,
    check_function,
    check_imported,
    check_names,
    check_origin_keys,
    check_request,
)
from toolkit.spec.check_own_keys import check_examples, check_permissions
from toolkit.spec.description import MAX_DESCRIPTION_FILE, unknown_placeholders
from toolkit.spec.fields import Fields
from toolkit.spec.files import read_below
from toolkit.spec.model import Json, ToolSpec
from toolkit.spec.names import NAME_RULE
from toolkit.spec.problems import Problems, Unreadable, below, kind, shown

MAX_SCHEMA_DEPTH: Final = 64
MAX_SCHEMA_NODES: Final = 20_000

_MCP_KEYS = (
    "name",
    "title",
    "description",
    "inputSchema",
    "outputSchema",
    "annotations",
    "_meta",
    "icons",
    "execution",
)
_OUR_KEYS = ("permissions", "parallel", "blocking", "examples", "descriptionFile", "rename")
_KEYS = _MCP_KEYS + _OUR_KEYS + ORIGIN_KEYS
_LIST_KEYS = ("tools", "nextCursor", "_meta", "origin", "prefix")


def check_document(value: Json, problems: Problems, directory: Path | None) -> list[ToolSpec]:
    """The tools of one file: one definition, or the list a server answers with."""
    if not isinstance(value, dict):
        problems.add(f'a spec file holds one tool as an object, or {{"tools": [...]}}, not {kind(value)}', "")
        return []
    if "tools" not in value:
        return [_check_tool(Fields(value, "", problems), directory, Imported())]
    fields = Fields(value, "", problems)
    fields.refuse_unknown(_LIST_KEYS)
    imported = check_imported(fields)
    specs: list[ToolSpec] = []
    for index, tool in enumerate(fields.items("tools")):
        pointer = below("/tools", index)
        if isinstance(tool, dict):
            specs.append(_check_tool(Fields(tool, pointer, problems), directory, imported))
        else:
            problems.add(f"a tool must be an object, not {kind(tool)}", pointer)
    return specs


def _check_tool(fields: Fields, directory: Path | None, imported: Imported) -> ToolSpec:
    fields.refuse_unknown(_KEYS)
    fields.require("name", NAME_RULE)
    check_origin_keys(fields, imported.origin)
    name, rename = check_names(fields, imported)
    title = fields.string("title")
    description = fields.string("description")
    input_schema = _check_input_schema(fields)
    output_schema = _check_schema(fields, "outputSchema")
    annotations = fields.mapping("annotations")
    required, optional = check_permissions(fields)
    parallel = fields.boolean("parallel")
    blocking = fields.boolean("blocking")
    return ToolSpec(
        name=name,
        title=title,
        description=description or "",
        input_schema=input_schema,
        output_schema=output_schema,
        annotations=annotations or {},
        required=required,
        optional=optional,
        parallel=all(word == "read" for word in required) if parallel is None else parallel,
        blocking=blocking is not False,
        examples=check_examples(fields),
        source=fields.problems.source,
        pointer=fields.pointer,
        description_file=fields.string("descriptionFile"),
        long_description=_read_description_file(fields, directory),
        rename=rename,
        function=check_function(fields),
        prefix=imported.prefix if name else "",
        origin=imported.origin,
        request=check_request(fields),
        wraps_result=fields.boolean("wrapsResult") is True,
    )


def _check_input_schema(fields: Fields) -> dict[str, Json]:
    wanted = 'write {"type": "object"} for a tool without parameters'
    fields.require("inputSchema", wanted)
    schema = _check_schema(fields, "inputSchema")
    if schema is None:
        return {}
    # Servers do leave it out, for a tool without parameters above all; arguments are an object anyway.
    if "type" not in schema:
        return {"type": "object", **schema}
    if schema["type"] != "object":
        fields.add('\'inputSchema\' must describe an object: its "type" must be "object"', "inputSchema")
    return schema


def _check_schema(fields: Fields, key: str) -> dict[str, Json] | None:
    """Only the bounds: what the keywords mean, and which are served, is the generator's business."""
    schema = fields.mapping(key)
    if schema is None:
        return None
    nodes = 0
    open_values: list[tuple[Json, int]] = [(schema, 1)]
    while open_values:
        value, depth = open_values.pop()
        nodes += 1
        if not isinstance(value, dict | list):
            continue
        if depth > MAX_SCHEMA_DEPTH:
            fields.add(f"{key!r} is nested deeper than {MAX_SCHEMA_DEPTH} levels", key)
            return None
        items = value.values() if isinstance(value, dict) else value
        open_values.extend((item, depth + 1) for item in items)
    if nodes > MAX_SCHEMA_NODES:
        fields.add(f"{key!r} has {nodes} values: at most {MAX_SCHEMA_NODES} are read", key)
        return None
    return schema


def _read_description_file(fields: Fields, directory: Path | None) -> str | None:
    key = "descriptionFile"
    name = fields.string(key)
    if name is None:
        return None
    if directory is None:
        fields.add(f"{key!r} needs a spec that was read from a file", key)
        return None
    try:
        text = read_below(directory, name, MAX_DESCRIPTION_FILE)
    except Unreadable as error:
        fields.add(f"{key!r}: {error}", key)
        return None
    for placeholder in unknown_placeholders(text):
        fields.add(
            f"{key!r}: {shown('${' + placeholder + '}')} is not filled in; ${{workspace}}, ${{directory}} and ${{cwd}} are",
            key,
        )
    return text
