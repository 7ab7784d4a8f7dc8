"""A value read from a spec file -> ToolSpecs. Every mistake goes to ``problems``. A spec with mistakes is still built from
what could be read; the loader then discards it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from toolkit.schema.checks import find_misspelt_hints, find_misspelt_keywords
from toolkit.schema.problems import Problems, Unreadable, below, extend_pointer, kind
from toolkit.schema.spec import Json, ToolSpec
from toolkit.spec.checks.fields import Fields
from toolkit.spec.checks.origin import (
    ORIGIN_KEYS,
    FileOrigin,
    check_file_origin,
    check_function,
    check_names,
    check_origin_keys,
    check_request,
)
from toolkit.spec.checks.own_keys import check_examples, check_permissions
from toolkit.spec.description import placeholder_problems, read_description

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
_OUR_KEYS = ("permissions", "parallel", "blocking", "mustBeNamed", "examples", "descriptionFile", "rename")
_KEYS = _MCP_KEYS + _OUR_KEYS + ORIGIN_KEYS
_LIST_KEYS = ("tools", "nextCursor", "_meta", "origin", "prefix")


def check_document(value: Json, problems: Problems, directory: Path | None) -> list[ToolSpec]:
    """The tools of one file: one definition, or the list that a server returns for ``tools/list``."""
    if value is None:
        problems.add("the file is empty; it must be one tool, with 'name' and 'inputSchema'", "")
        return []
    if not isinstance(value, dict):
        problems.add(f'a spec file must be one tool (an object) or {{"tools": [...]}}, not {kind(value)}', "")
        return []
    if "tools" not in value:
        return [_check_tool(Fields(value, "", problems), directory, FileOrigin())]
    fields = Fields(value, "", problems)
    fields.refuse_unknown(_LIST_KEYS)
    file_origin = check_file_origin(fields)
    specs: list[ToolSpec] = []
    for index, tool in enumerate(fields.items("tools")):
        pointer = below("/tools", index)
        if isinstance(tool, dict):
            specs.append(_check_tool(Fields(tool, pointer, problems), directory, file_origin))
        else:
            problems.add(f"a tool must be an object, not {kind(tool)}", pointer)
    return specs


def _check_tool(fields: Fields, directory: Path | None, file_origin: FileOrigin) -> ToolSpec:
    fields.refuse_unknown(_KEYS)
    fields.require("name", "add the name by which models call the tool", _KEYS)
    check_origin_keys(fields, file_origin.origin)
    name, rename = check_names(fields, file_origin)
    title = fields.string("title")
    description = fields.string("description")
    input_schema = _check_input_schema(fields)
    output_schema = _check_schema(fields, "outputSchema")
    annotations = fields.mapping("annotations")
    if file_origin.origin is None:  # the reader cannot change an imported tool
        _refuse_misspelt(fields, input_schema, output_schema, annotations)
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
        must_be_named=fields.boolean("mustBeNamed") is True,
        examples=check_examples(fields),
        source=fields.problems.source,
        pointer=fields.pointer,
        description_file=fields.string("descriptionFile"),
        long_description=_read_description_file(fields, directory),
        rename=rename,
        function=check_function(fields),
        prefix=file_origin.prefix if name else "",
        origin=file_origin.origin,
        request=check_request(fields),
        wraps_result=fields.boolean("wrapsResult") is True,
    )


def _check_input_schema(fields: Fields) -> dict[str, Json]:
    advice = 'write {"type": "object"} for a tool without parameters'
    fields.require("inputSchema", advice, _KEYS)
    schema = _check_schema(fields, "inputSchema")
    if schema is None:
        return {}
    # Some servers leave it out, mostly for tools without parameters. Arguments are always an object.
    if "type" not in schema:
        return {"type": "object", **schema}
    if schema["type"] != "object":
        fields.add('\'inputSchema\' must describe an object: its "type" must be "object"', "inputSchema")
    return schema


def _refuse_misspelt(
    fields: Fields,
    input_schema: dict[str, Json],
    output_schema: dict[str, Json] | None,
    annotations: dict[str, Json] | None,
) -> None:
    in_yaml = not fields.problems.source.endswith(".json")
    for key, schema in (("inputSchema", input_schema), ("outputSchema", output_schema)):
        for message, pointer in find_misspelt_keywords(schema, in_yaml=in_yaml):
            fields.problems.add(message, extend_pointer(fields.at(key), pointer))
    for message, pointer in find_misspelt_hints(annotations or {}):
        fields.problems.add(message, extend_pointer(fields.at("annotations"), pointer))


def _check_schema(fields: Fields, key: str) -> dict[str, Json] | None:
    """Checks only the size and depth; the generator checks what keywords say."""
    schema = fields.mapping(key)
    if schema is None:
        return None
    nodes = 0
    pending: list[tuple[Json, int]] = [(schema, 1)]
    while pending:
        value, depth = pending.pop()
        nodes += 1
        if not isinstance(value, dict | list):
            continue
        if depth > MAX_SCHEMA_DEPTH:
            fields.add(f"{key!r} is nested deeper than {MAX_SCHEMA_DEPTH} levels", key)
            return None
        items = value.values() if isinstance(value, dict) else value
        pending.extend((item, depth + 1) for item in items)
    if nodes > MAX_SCHEMA_NODES:
        fields.add(f"{key!r} has {nodes} values, more than the {MAX_SCHEMA_NODES} allowed", key)
        return None
    return schema


def _read_description_file(fields: Fields, directory: Path | None) -> str | None:
    key = "descriptionFile"
    name = fields.string(key)
    if name is None:
        return None
    if directory is None:
        fields.add(f"{key!r} needs a spec that is read from a file", key)
        return None
    try:
        text = read_description(directory, name)
    except Unreadable as error:
        fields.add(f"{key!r}: {error}", key)
        return None
    for problem in placeholder_problems(text):
        fields.add(f"{key!r}: {problem}", key)
    return text
