"""Tools as a model's provider is told of them -> specs: OpenAI (chat, Responses, the old functions), Anthropic, Gemini and
Bedrock, each entry recognised by itself and read by the decoder of its adapter.

A file holds one tool, a list of them, or a request that has some. What a provider runs by itself is left out and named.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from toolkit.adapters.anthropic.decode import decode_tools as decode_anthropic
from toolkit.adapters.bedrock.decode import decode_tools as decode_bedrock
from toolkit.adapters.gemini.decode import decode_tools as decode_gemini
from toolkit.adapters.gemini.key_case import to_camel_case
from toolkit.adapters.gemini.schema import from_openapi
from toolkit.adapters.openai_chat.decode import decode_tools as decode_chat
from toolkit.adapters.openai_responses.decode import decode_tools as decode_responses
from toolkit.codegen.imports.importers.result import Imported
from toolkit.codegen.imports.importers.source_file import named_file
from toolkit.codegen.imports.settings import ImportSettings
from toolkit.errors import SpecError
from toolkit.spec.files import read_plain_file
from toolkit.spec.json_text import read_json
from toolkit.spec.load import MAX_FILE_BYTES
from toolkit.spec.model import Json
from toolkit.spec.problems import Problems, Unreadable, below, kind, shown
from toolkit.wire.definition import AnyDefinition, ToolDefinition

# Where requests and settings of requests keep their tools.
_HOLDERS: Final = ("tools", "functions", "functionDeclarations", "function_declarations", "config", "toolConfig")
_DECLARATIONS: Final = ("functionDeclarations", "function_declarations")
_NATIVE_OF_GEMINI: Final = frozenset(
    {
        "codeExecution", "computerUse", "enterpriseWebSearch", "fileSearch", "googleMaps", "googleSearch",
        "googleSearchRetrieval", "mcpServers", "retrieval", "urlContext",
    }
)  # fmt: skip
# Google's JSON writes whole numbers as text.
_COUNTS: Final = ("minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties")
_FORMS: Final = "tools of OpenAI (chat, Responses, functions), Anthropic, Gemini and Bedrock are read"


def import_provider_json(settings: ImportSettings, root: Path) -> Imported:
    """The tools of the file that an import of the settings names; all mistakes are raised at once."""
    file = named_file(settings, root)
    reading = _Reading(Problems(settings.tools))
    try:
        reading.read(read_json(read_plain_file(file, MAX_FILE_BYTES), reading.problems), "")
        if not reading.tools and not reading.problems.found:
            reading.problems.add(f"there are no tools in it: {_FORMS}", "")
    except Unreadable as reason:
        reading.problems.stop(reason)
    if reading.problems.found:
        raise SpecError(map(str, reading.problems.found))
    return Imported({"forms": sorted(reading.forms)}, reading.tools, tuple(reading.notes))


class _Reading:
    """The tools found so far, and where; mistakes go to ``problems``."""

    def __init__(self, problems: Problems) -> None:
        self.problems = problems
        self.tools: list[dict[str, Any]] = []
        self.forms: set[str] = set()
        self.notes: list[str] = []
        self._places: dict[str, str] = {}

    def read(self, value: Json, pointer: str) -> None:
        """A list, one entry, or an object that holds some of them."""
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
            rest = [key for key in value if to_camel_case({key: 0}).keys() & _NATIVE_OF_GEMINI]
            for key in rest:
                self._leave_out(key, below(pointer, key))
            if rest or any(key in value for key in _HOLDERS):
                return
        self._entry(value, pointer)

    def _declarations(self, value: Json, pointer: str) -> None:
        for index, entry in enumerate(value if isinstance(value, list) else []):
            place = below(pointer, index)
            if isinstance(entry, dict):
                self._take("gemini", decode_gemini([{_DECLARATIONS[0]: [entry]}]), place, _response(entry))
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
            self.problems.add("this is a spec already: put the file into the folder of 'specs'", pointer)
        elif _is_declaration(entry):
            self._declarations([entry], pointer)
        elif "name" in entry:
            self._take("openai-functions", decode_chat([{"type": "function", "function": entry}]), pointer)
        else:
            self.problems.add(f"no provider's tool is written like this: {_FORMS}", pointer)

    def _take(self, form: str, found: list[AnyDefinition], pointer: str, output: Json = None) -> None:
        for definition in found:
            if not isinstance(definition, ToolDefinition) or not isinstance(definition.name, str):
                self.problems.add(f"a tool of this form has a name and a schema: {_FORMS}", pointer)
                continue
            self.forms.add(form)
            first = self._places.setdefault(definition.name, pointer)
            if first != pointer:
                twins = f"the file itself has two tools named {shown(definition.name)}"
                self.problems.add(f"{twins}, the other at {first or 'its top'}: keep one", pointer)
            tool = _spec(definition)
            if form == "gemini":
                tool["inputSchema"] = _with_numbers(tool["inputSchema"])
            if isinstance(output, dict):
                tool["outputSchema"] = _with_numbers(output)
            self.tools.append(tool)

    def _leave_out(self, name: str, pointer: str) -> None:
        self.notes.append(f"{shown(name)} is run by its provider and has no schema, so it is left out @ {pointer}")


def _spec(definition: ToolDefinition) -> dict[str, Any]:
    schema = dict(definition.parameters)
    if "type" not in schema:
        schema = {"type": "object", **schema}
    return {"name": definition.name, "description": definition.description, "inputSchema": schema}


def _is_declaration(entry: dict[str, Json]) -> bool:
    """Whether a bare entry is Gemini's and none of OpenAI's old functions: by its keys, or types in capitals."""
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


def _response(entry: dict[str, Json]) -> Json:
    """What Gemini is told of a function's answer."""
    spelled = to_camel_case(dict(entry))
    found: Json = spelled.get("responseJsonSchema") or from_openapi(spelled.get("response"))
    return found


def _with_numbers(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_with_numbers(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: int(value) if key in _COUNTS and isinstance(value, str) and value.isdecimal() else _with_numbers(value)
        for key, value in schema.items()
    }
