"""Tools in a provider's JSON format -> specs: OpenAI (chat, Responses, legacy functions), Anthropic, Gemini and Bedrock.

A file holds one tool, a list of tools, or a request with tools. Each entry is recognised on its own and read by its adapter's
decoder. Tools that the provider runs itself are left out, with a note.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from toolkit.adapters.anthropic.codec import decode_tools as decode_anthropic
from toolkit.adapters.bedrock.codec import decode_tools as decode_bedrock
from toolkit.adapters.gemini.codec import decode_tools as decode_gemini
from toolkit.adapters.gemini.codec import to_camel_case
from toolkit.adapters.gemini.schema import from_openapi
from toolkit.adapters.openai_chat.codec import decode_tools as decode_chat
from toolkit.adapters.openai_responses.codec import decode_tools as decode_responses
from toolkit.codegen.imports.python_modules import find_source_file
from toolkit.codegen.imports.run import ImportResult
from toolkit.codegen.imports.settings import ImportSettings
from toolkit.errors import SpecError
from toolkit.schema.problems import Finding, Problems, Unreadable, below, kind, quote
from toolkit.schema.spec import Json
from toolkit.schema.spec_files import MAX_FILE_BYTES, read_plain_file
from toolkit.schema.spec_text import read_json
from toolkit.wire.definition import AnyDefinition, ToolDefinition

# Keys of requests that hold tools.
_HOLDERS: Final = ("tools", "functions", "functionDeclarations", "function_declarations", "config", "toolConfig")
_DECLARATIONS: Final = ("functionDeclarations", "function_declarations")
_GEMINI_NATIVE: Final = frozenset(
    {
        "codeExecution", "computerUse", "enterpriseWebSearch", "fileSearch", "googleMaps", "googleSearch",
        "googleSearchRetrieval", "mcpServers", "retrieval", "urlContext",
    }
)  # fmt: skip
# Google's JSON writes integers as strings.
_COUNTS: Final = ("minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties")
_FORMS: Final = "supported are tools of OpenAI (chat, Responses, functions), Anthropic, Gemini and Bedrock"


def import_provider_json(settings: ImportSettings, root: Path) -> ImportResult:
    """The tools of the import's file; all mistakes are raised at once."""
    file = find_source_file(settings, root)
    collector = _ToolCollector(Problems(settings.tools))
    try:
        collector.read(read_json(read_plain_file(file, MAX_FILE_BYTES), collector.problems), "")
        if not collector.tools and not collector.problems.found:
            collector.problems.add(f"the file has no tools: {_FORMS}", "")
    except Unreadable as reason:
        collector.problems.add_unreadable(reason)
    if collector.problems.found:
        raise SpecError(collector.problems.found)
    return ImportResult({"forms": sorted(collector.forms)}, collector.tools, tuple(collector.notes))


class _ToolCollector:
    """Collects the tools of a file; mistakes go to ``problems``."""

    def __init__(self, problems: Problems) -> None:
        self.problems = problems
        self.tools: list[dict[str, Any]] = []
        self.forms: set[str] = set()
        self.notes: list[Finding] = []
        self._places: dict[str, str] = {}

    def read(self, value: Json, pointer: str) -> None:
        """Reads a list, one entry, or an object that holds entries."""
        if isinstance(value, list):
            for index, entry in enumerate(value):
                self.read(entry, below(pointer, index))
            return
        if not isinstance(value, dict):
            self.problems.add(f"a tool must be an object, not {kind(value)}", pointer)
            return
        if "name" not in value and "type" not in value:
            for key in (key for key in _HOLDERS if isinstance(value.get(key), list | dict)):
                if key in _DECLARATIONS:
                    self._declarations(value[key], below(pointer, key))
                else:
                    self.read(value[key], below(pointer, key))
            rest = [key for key in value if to_camel_case({key: 0}).keys() & _GEMINI_NATIVE]
            for key in rest:
                self._leave_out(key, below(pointer, key))
            if rest or any(key in value for key in _HOLDERS):
                return
        self._entry(value, pointer)

    def _declarations(self, value: Json, pointer: str) -> None:
        for index, entry in enumerate(value if isinstance(value, list) else []):
            place = below(pointer, index)
            if isinstance(entry, dict):
                self._take("gemini", decode_gemini([{_DECLARATIONS[0]: [entry]}]), place, _output_schema(entry))
            else:
                self.problems.add(f"a tool must be an object, not {kind(entry)}", place)

    def _entry(self, entry: dict[str, Json], pointer: str) -> None:
        if isinstance(entry.get("function"), dict):
            self._take("openai-chat", decode_chat([entry]), pointer)
        elif "toolSpec" in entry:
            self._take("bedrock", decode_bedrock([entry]), pointer)
        elif "input_schema" in entry:
            self._take("anthropic", decode_anthropic([entry]), pointer)
        elif entry.get("type") == "function":
            self._take("openai-responses", decode_responses([entry]), pointer)
        elif isinstance(entry.get("type"), str):
            self._leave_out(str(entry.get("name") or entry["type"]), pointer)
        elif "inputSchema" in entry:
            self.problems.add("this is already a spec: move the file into a folder of 'specs'", pointer)
        elif _is_declaration(entry):
            self._declarations([entry], pointer)
        elif "name" in entry:
            self._take("openai-functions", decode_chat([{"type": "function", "function": entry}]), pointer)
        else:
            self.problems.add(f"this is not the format of a known provider: {_FORMS}", pointer)

    def _take(self, form: str, found: list[AnyDefinition], pointer: str, output: Json = None) -> None:
        for definition in found:
            if not isinstance(definition, ToolDefinition) or not isinstance(definition.name, str):
                self.problems.add(f"a tool needs a name and a schema: {_FORMS}", pointer)
                continue
            self.forms.add(form)
            first = self._places.setdefault(definition.name, pointer)
            if first != pointer:
                duplicates = f"the file has two tools named {quote(definition.name)}"
                self.problems.add(f"{duplicates}, the first at {first or 'its top'}: keep one", pointer)
            tool = _make_spec(definition)
            if form == "gemini":
                tool["inputSchema"] = _convert_counts(tool["inputSchema"])
            if isinstance(output, dict):
                tool["outputSchema"] = _convert_counts(output)
            self.tools.append(tool)

    def _leave_out(self, name: str, pointer: str) -> None:
        message = f"{quote(name)} is run by the provider and has no schema, so it is ignored"
        self.notes.append(Finding(message, self.problems.source, pointer))


def _make_spec(definition: ToolDefinition) -> dict[str, Any]:
    schema = dict(definition.parameters)
    if "type" not in schema:
        schema = {"type": "object", **schema}
    return {"name": definition.name, "description": definition.description, "inputSchema": schema}


def _is_declaration(entry: dict[str, Json]) -> bool:
    """Whether a bare entry is Gemini's and not one of OpenAI's legacy functions: by its keys, or by types in capitals."""
    spelled = to_camel_case(dict(entry))
    if {"parametersJsonSchema", "response", "responseJsonSchema", "behavior"} & spelled.keys():
        return True
    return any(word.isupper() for word in _types(entry.get("parameters")))


def _types(schema: Json) -> Iterator[str]:
    if isinstance(schema, dict):
        if isinstance(schema.get("type"), str):
            yield str(schema["type"])
        properties = schema.get("properties")
        for inner in properties.values() if isinstance(properties, dict) else ():
            yield from _types(inner)


def _output_schema(entry: dict[str, Json]) -> Json:
    """The output schema of a Gemini function."""
    spelled = to_camel_case(dict(entry))
    found: Json = spelled.get("responseJsonSchema") or from_openapi(spelled.get("response"))
    return found


def _convert_counts(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_convert_counts(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: int(value) if key in _COUNTS and isinstance(value, str) and value.isdecimal() else _convert_counts(value)
        for key, value in schema.items()
    }
