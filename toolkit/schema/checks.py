"""A value read from a spec file -> ToolSpecs, and advice on specs without mistakes.

Every mistake goes to ``problems``. A spec with mistakes is still built from what could be read, and the loader discards it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile
from pathlib import Path, PurePosixPath
from typing import Any, Final

from toolkit.errors import nearest
from toolkit.guard.permission import PERMISSIONS, Permission
from toolkit.schema.keywords import (
    ANNOTATIONS,
    ASSERTIONS,
    DEFINITIONS,
    IDENTIFIERS,
    SUBSCHEMA_MAPS,
    SUBSCHEMAS,
    Schema,
    children,
    subschemas,
)
from toolkit.schema.problems import (
    Finding,
    Problems,
    Unreadable,
    below,
    clip,
    extend_pointer,
    is_misspelt,
    kind,
    quote,
    unknown_key,
)
from toolkit.schema.spec import (
    NAME_RULE,
    Json,
    Origin,
    SpecExample,
    ToolSpec,
    is_wire_name,
    placeholder_problems,
    read_description,
)

# ----------------------------------------------------------------------------------------------------------------------
# Mistakes that JSON Schema permits: keywords that are most likely misspelt, nulls, required names that no object may have.
#
# JSON Schema ignores a keyword that it does not know, so a typo such as ``requird`` would silently change what a tool
# accepts. Only near misses are reported: other unknown keywords may be annotations that somebody reads. A required name
# that is not declared may be meant so, unless ``additionalProperties: false`` forbids it: then no call could ever pass.

HINTS: Final = ("title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
"""The annotations of a tool that MCP defines."""
_MARKS: Final = ("x-resource", "x-secret")
_OF_OPENAPI: Final = frozenset({"discriminator", "externalDocs", "nullable", "xml"})
# Draft-04 wrote `id`; the other two are common annotations. None of them is a misspelt `$id`, `$comment` or `$schema`.
_NOT_MISSPELT: Final = frozenset({"id", "comment", "schema"})
_KNOWN: Final = frozenset({*ASSERTIONS, *ANNOTATIONS, *DEFINITIONS, *IDENTIFIERS, *_OF_OPENAPI, *_MARKS, "contains"})
_MAY_BE_NULL: Final = frozenset({"const", "default", "example"})
_SHORT_FORMS: Final = {
    "additionalProperty": "additionalProperties", "desc": "description", "max": "maximum", "min": "minimum",
    "property": "properties", "props": "properties", "regex": "pattern",
}  # fmt: skip
_LISTS: Final = frozenset({"allOf", "anyOf", "enum", "examples", "oneOf", "prefixItems", "required"})
_FLAGS: Final = frozenset({"deprecated", "nullable", "readOnly", "uniqueItems", "writeOnly", "x-secret"})
_NUMBERS: Final = re.compile(r"(exclusive)?(min|max)|multipleOf")
_SEPARATORS: Final = re.compile(r"[\s_$-]")
_LONG: Final = 6


def find_misspelt_keywords(schema: object, *, in_yaml: bool) -> Iterator[tuple[str, str]]:
    """What is most likely a mistake, as a message and a pointer into the schema.

    >>> list(find_misspelt_keywords({"type": "object", "requird": ["a"]}, in_yaml=True))
    [("unknown keyword 'requird'. Did you mean 'required'?", '/requird')]
    """
    if not isinstance(schema, dict) or not _is_suspicious(schema):
        return
    for pointer, node in subschemas(schema):
        for word in node:
            message = _judge(word, node, in_yaml)
            if message is not None:
                yield message, below(pointer, word)
        for name in _find_forbidden_names(node):
            yield _explain_forbidden(name, node), below(pointer, "required")


def find_misspelt_hints(annotations: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Near misses of the annotations that MCP defines: a policy may rely on them."""
    for word in annotations:
        near = _nearest(word, HINTS) if word not in HINTS else None
        if near is not None:
            yield f"unknown annotation {quote(word)}. Did you mean {near!r}?", below("", word)


def explain_split_text(key: str, above: Mapping[str, Any]) -> str | None:
    """What happened if a key is the rest of a text: inside ``{...}``, YAML ends an unquoted text at a comma.

    >>> explain_split_text("in it.", {"description": "The file", "in it.": None})
    'an unquoted comma ends a text inside {...}; quote the text: description: "The file, in it."'
    >>> explain_split_text("in the form", {"description": "The file", "in the form": "folder/name"})
    'an unquoted comma ends a text inside {...}; quote the text: description: "The file, in the form: folder/name"'
    """
    words = list(above)
    earlier = list(takewhile(lambda word: word != key, words))
    owner = next((word for word in reversed(earlier) if above[word] is not None), None)
    if owner is None or not isinstance(above[owner], str):
        return None
    after = words[words.index(owner) + 1 :]
    rest = list(takewhile(lambda word: above[word] is None, after))
    if key not in rest:  # a colon in the rest of the text gave its last part a value
        rest.append(f"{key}: {above[key]}")
    text = clip(", ".join([above[owner], *rest])).replace('"', "'")
    return f'an unquoted comma ends a text inside {{...}}; quote the text: {owner}: "{text}"'


def _is_suspicious(schema: Schema) -> bool:
    """A fast answer for the schemas that have nothing to report: all but very few."""
    pending: list[object] = [schema]
    while pending:
        node = pending.pop()
        if not isinstance(node, dict):
            continue
        if not node.keys() <= _KNOWN or None in node.values() or _find_forbidden_names(node):
            return True
        pending += [child for _, child in children(node)]
    return False


def _judge(word: str, node: Schema, in_yaml: bool) -> str | None:
    value = node[word]
    if word in _KNOWN:
        return _explain_null(word, in_yaml) if value is None and word not in _MAY_BE_NULL else None
    near = _nearest_keyword(word)
    if near is not None and (value is None or _is_certain(word, near) or _fits(near, value)):
        return f"unknown keyword {quote(word)}. Did you mean {near!r}?"
    # Nobody names an annotation with a space; but a text may have both a comma and a colon.
    is_cut = value is None or (" " in word and isinstance(value, str))
    split = explain_split_text(word, node) if in_yaml and is_cut and not word.startswith("x-") else None
    if split is not None:
        return f"{quote(word)} is not a keyword: {split}"
    is_null = value is None and not word.startswith("x-")
    return f"{quote(word)} is not a keyword and is null; remove it" if is_null else None


def _find_forbidden_names(node: Schema) -> list[str]:
    """The required names that no object may have."""
    if "required" not in node or node.get("additionalProperties") is not False or node.get("patternProperties"):
        return []
    names, properties = node["required"], node.get("properties", {})
    if not isinstance(names, list) or not isinstance(properties, dict):
        return []
    return [name for name in names if isinstance(name, str) and name not in properties]


def _explain_forbidden(name: str, node: Schema) -> str:
    near = nearest(name, node.get("properties", {}))
    way_out = f".{near}" if near else "; declare it, or remove it here"
    return (
        f"{quote(name)} is required but not declared in 'properties', and 'additionalProperties: false' forbids other"
        f" names{way_out}"
    )


def _explain_null(word: str, in_yaml: bool) -> str:
    if word == "type":
        return "'type' is null; write \"null\" in quotes if no other value is allowed"
    empty = "has no value" if in_yaml else "is null"
    return f"{word!r} {empty}; give it a value, or remove it"


@lru_cache(1024)
def _nearest_keyword(word: str) -> str | None:
    if word.startswith("x-"):
        return _nearest(word, _MARKS)
    if word in _NOT_MISSPELT:
        return None
    return _SHORT_FORMS.get(word) or _nearest(word, tuple(sorted(_KNOWN)))


def _nearest(word: str, known: tuple[str, ...]) -> str | None:
    """The known word that this one most likely stands for: the same but for case and separators, or few typos away."""
    plain = _plain(word)
    same = next((other for other in known if _plain(other) == plain), None)
    if same is not None or not 3 <= len(word) <= 40:
        return same
    distances = {other: _distance(word, other) for other in known if abs(len(other) - len(word)) <= 2}
    best = min(distances, key=lambda other: distances[other], default=None)
    return best if best is not None and distances[best] <= (2 if len(word) > _LONG else 1) else None


def _plain(word: str) -> str:
    return _SEPARATORS.sub("", word).casefold()


def _is_certain(word: str, near: str) -> bool:
    """Whether the value need not be looked at: an annotation of that name is hard to imagine."""
    is_plural = word == f"{near}s"
    return _plain(word) == _plain(near) or (len(word) >= _LONG and _distance(word, near) == 1 and not is_plural)


def _distance(one: str, other: str) -> int:
    """How many letters must be added, removed, replaced or swapped with the next one."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        earlier, before, row = before, row, [i]
        for j, wanted in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == wanted:
                cost = min(cost, earlier[j - 2] + 1)
            row.append(cost)
    return row[-1]


def _fits(word: str, value: object) -> bool:
    """Whether a value has the kind that this keyword takes."""
    if word in _LISTS:
        return isinstance(value, list)
    if word in _FLAGS:
        return isinstance(value, bool)
    if word in SUBSCHEMA_MAPS or word == "dependentRequired":
        return isinstance(value, dict)
    if word in SUBSCHEMAS or word == "contentSchema":
        return isinstance(value, dict | bool)
    if _NUMBERS.match(word):
        return isinstance(value, int | float) and not isinstance(value, bool)
    if word == "type":
        return isinstance(value, str | list)
    return word in _MAY_BE_NULL or isinstance(value, str)


# ----------------------------------------------------------------------------------------------------------------------
# Typed access to the keys of one object. A wrong value is reported and replaced, so that reading continues.

_IN_OTHER_FORMATS: Final = {"parameters": "inputSchema"}
"""What tools of OpenAI and Gemini call a key of a spec."""


@dataclass(frozen=True, slots=True)
class Fields:
    """The keys of the object at ``pointer``; an absent key reads as None, or as an empty list."""

    value: dict[str, Json]
    pointer: str
    problems: Problems

    def at(self, key: str) -> str:
        return below(self.pointer, key)

    def add(self, message: str, key: str) -> None:
        self.problems.add(message, self.at(key))

    def refuse_unknown(self, known: Collection[str]) -> None:
        for key in self.value:
            if key not in known and not key.startswith("x-"):
                split = explain_split_text(key, self.value) if self.value[key] is None else None
                meant = _IN_OTHER_FORMATS.get(key)
                own = f"here it is {meant!r}" if meant in known else "keys of your own start with 'x-'"
                self.add(f"unknown key {quote(key)}: {split}" if split else unknown_key(key, known, own), key)

    def require(self, key: str, why: str, known: Collection[str] = ()) -> None:
        """Reports a missing key, unless one that is not ``known`` looks as if it were meant to be it."""
        if key in self.value or any(_IN_OTHER_FORMATS.get(other) == key for other in self.value):
            return
        if not (known and is_misspelt(key, self.value, known)):
            self.problems.add(f"{key!r} is missing: {why}", self.pointer)

    def string(self, key: str) -> str | None:
        value = self.value.get(key)
        if isinstance(value, str):
            return value
        self._refuse(key, "a string")
        return None

    def boolean(self, key: str) -> bool | None:
        value = self.value.get(key)
        if isinstance(value, bool):
            return value
        self._refuse(key, "true or false")
        return None

    def items(self, key: str) -> list[Json]:
        value = self.value.get(key)
        if isinstance(value, list):
            return value
        self._refuse(key, "a list")
        return []

    def mapping(self, key: str) -> dict[str, Json] | None:
        value = self.value.get(key)
        if isinstance(value, dict):
            return value
        self._refuse(key, "an object")
        return None

    def _refuse(self, key: str, wanted: str) -> None:
        if key in self.value:
            self.add(f"{key!r} must be {wanted}, not {kind(self.value[key])}", key)


# ----------------------------------------------------------------------------------------------------------------------
# Keys of imported files: ``origin`` and ``prefix``, the keys of a tool that belong to its origin, and its names.

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
    for key, kinds in _KEY_KINDS.items():
        if key in fields.value and (origin is None or origin.kind != kinds):
            fields.add(f"{key!r} is only allowed in a file whose 'origin' has the kind {kinds!r}", key)


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


# ----------------------------------------------------------------------------------------------------------------------
# The two structured keys that we add to MCP's: ``permissions`` and ``examples``.

_EXAMPLE_KEYS = ("title", "arguments", "files", "output", "error")
_ERROR_NAME = re.compile(r"[A-Z][A-Z0-9_]*")


def check_permissions(fields: Fields) -> tuple[tuple[Permission, ...], tuple[Permission, ...]]:
    """Required and optional permissions; a plain list holds the required ones."""
    value = fields.value.get("permissions")
    if not isinstance(value, dict):
        return _check_permission_list(fields, "permissions", others=()), ()
    parts = Fields(value, fields.at("permissions"), fields.problems)
    parts.refuse_unknown(("required", "optional"))
    required = _check_permission_list(parts, "required", others=())
    return required, _check_permission_list(parts, "optional", others=required)


def _check_permission_list(fields: Fields, key: str, *, others: Collection[Permission]) -> tuple[Permission, ...]:
    """The permissions listed under ``key``, in the order of ``PERMISSIONS``."""
    found: set[Permission] = set()
    for index, word in enumerate(fields.items(key)):
        permission = next((known for known in PERMISSIONS if known == word), None)
        pointer = below(fields.at(key), index)
        if permission is None:
            text = word if isinstance(word, str) else ""
            given = quote(text) if text else kind(word)
            message = f"unknown permission {given}: the four are {', '.join(PERMISSIONS)}.{nearest(text, PERMISSIONS)}"
            fields.problems.add(message, pointer)
        elif permission in found:
            fields.problems.add(f"the permission {permission!r} is duplicated", pointer)
        elif permission in others:
            fields.problems.add(f"the permission {permission!r} is both required and optional", pointer)
        else:
            found.add(permission)
    return tuple(permission for permission in PERMISSIONS if permission in found)


def check_examples(fields: Fields) -> tuple[SpecExample, ...]:
    examples: list[SpecExample] = []
    for index, value in enumerate(fields.items("examples")):
        pointer = below(fields.at("examples"), index)
        if isinstance(value, dict):
            examples.append(_check_example(Fields(value, pointer, fields.problems)))
        else:
            fields.problems.add(f"an example must be an object, not {kind(value)}", pointer)
    return tuple(examples)


def _check_example(fields: Fields) -> SpecExample:
    fields.refuse_unknown(_EXAMPLE_KEYS)
    fields.require("title", "it identifies the example when it fails")
    if ("output" in fields.value) == ("error" in fields.value):
        fields.problems.add("an example needs either 'output' or 'error'", fields.pointer)
    error = fields.string("error")
    if error is not None and not _ERROR_NAME.fullmatch(error):
        fields.add(f"{quote(error)} is not an error code or reason: write it like 'NOT_FOUND'", "error")
    return SpecExample(
        title=fields.string("title") or "",
        arguments=fields.mapping("arguments") or {},
        files=_check_files(fields),
        output=fields.mapping("output"),
        error=error,
    )


def _check_files(fields: Fields) -> dict[str, str]:
    texts: dict[str, str] = {}
    for path, text in (fields.mapping("files") or {}).items():
        pointer = below(fields.at("files"), path)
        parts = PurePosixPath(path).parts
        # Whoever runs the example writes these into a fresh workspace: none may be outside it.
        if not parts or path.startswith("/") or ".." in parts or "\0" in path:
            fields.problems.add(f"{quote(path)} is not a relative file name without '..'", pointer)
        elif isinstance(text, str):
            texts[path] = text
        else:
            fields.problems.add(f"the text of a file must be a string, not {kind(text)}", pointer)
    return texts


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


# ----------------------------------------------------------------------------------------------------------------------
# Advice on specs that load without mistakes but are hard for a model to use.

MAX_DESCRIPTION_TOKENS: Final = 40


def estimate_tokens(text: str) -> int:
    """A quarter of the UTF-8 bytes, rounded up."""
    return -(-len(text.encode()) // 4)


def lint_spec(spec: ToolSpec, count_tokens: Callable[[str], int] = estimate_tokens) -> list[Finding]:
    """What to improve in ``spec``, in the order of the file."""
    places = [
        *_lint_description(spec, count_tokens),
        *_find_undescribed(spec.input_schema, below(spec.pointer, "inputSchema")),
        *_lint_annotations(spec),
    ]
    return [Finding(message, spec.source, pointer) for message, pointer in places]


def _lint_description(spec: ToolSpec, count_tokens: Callable[[str], int]) -> Iterator[tuple[str, str]]:
    pointer = below(spec.pointer, "description")
    if not spec.description.strip():
        yield "the tool has no description", spec.pointer
        return
    tokens = count_tokens(spec.description)
    if tokens > MAX_DESCRIPTION_TOKENS:
        limit = f"keep it to {MAX_DESCRIPTION_TOKENS} and move the rest to a 'descriptionFile'"
        yield f"the description has {tokens} tokens: {limit}", pointer
    if "```" in spec.description or any(line.lstrip().startswith(">>>") for line in spec.description.splitlines()):
        yield "the description contains code: describe what the tool does in plain language", pointer


def _find_undescribed(schema: Json, pointer: str) -> Iterator[tuple[str, str]]:
    """Every property without a description, nested ones too."""
    for place, node in subschemas(schema):
        properties = node.get("properties")
        for name, inner in properties.items() if isinstance(properties, dict) else ():
            if not _is_described(inner):
                yield (
                    f"the property {quote(name)} has no description",
                    below(extend_pointer(pointer, f"{place}/properties"), name),
                )


def _is_described(schema: Json) -> bool:
    description = schema.get("description") if isinstance(schema, dict) else None
    return isinstance(description, str) and bool(description.strip())


def _lint_annotations(spec: ToolSpec) -> Iterator[tuple[str, str]]:
    changes = [word for word in (*spec.required, *spec.optional) if word in ("write", "execute")]
    if changes and spec.annotations.get("readOnlyHint") is True:
        yield (
            f"'readOnlyHint' is true for a tool that may {' and '.join(changes)}",
            below(below(spec.pointer, "annotations"), "readOnlyHint"),
        )
