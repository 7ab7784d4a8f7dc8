"""Runs the JSON-Schema-Test-Suite through the generator: each group is the output schema of a tool."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

from jsonschema import Draft202012Validator
from pydantic import BaseModel, ValidationError

from tests.corpus.shapes import KINDS
from tests.modules import load_module, module_text
from toolkit.errors import SpecError
from toolkit.runtime.arguments import Reader

DRAFTS: Final = {
    "draft2020-12": "https://json-schema.org/draft/2020-12/schema",
    "draft7": "http://json-schema.org/draft-07/schema#",
}
How = Literal["typed", "enforced", "refused"]

LEFT_OUT: Final = {
    "optional/format-assertion": "formats are not asserted, which the specification allows",
}
"""Files of the suite that test something we decided against, besides the folder ``optional/format``."""

_METASCHEMA: Final = "an unknown metaschema is read as 2020-12, with a finding, as in the jsonschema package"
_CONTENT: Final = "the content keywords describe a text and do not assert anything, as draft 2019-09 and later say"
EXCEPTIONS: Final[dict[tuple[str, str], str]] = {
    ("optional/content", "validation of string-encoded content based on media type"): _CONTENT,
    ("optional/content", "validation of binary string-encoding"): _CONTENT,
    ("optional/content", "validation of binary-encoded media type documents"): _CONTENT,
    ("vocabulary", "schema that uses custom metaschema with with no validation vocabulary"): _METASCHEMA,
}
"""Groups with a verdict that differs from the suite's on purpose: (file, description) -> the reason."""


@dataclass(frozen=True, slots=True)
class Group:
    """One schema of the suite with its cases."""

    draft: str
    file: str
    description: str
    schema: Any
    tests: list[dict[str, Any]]

    @property
    def exception(self) -> str | None:
        return EXCEPTIONS.get((self.file, self.description))


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of a group: how it is checked, the text of a refusal, the cases with the wrong verdict."""

    group: Group
    how: How
    sentence: str | None
    wrong: tuple[str, ...]


def groups(corpus: Path) -> Iterator[Group]:
    for draft, dialect in DRAFTS.items():
        folder = corpus / "json_schema" / "tests" / draft
        for path in sorted([*folder.glob("*.json"), *folder.glob("optional/*.json")]):
            file = path.relative_to(folder).with_suffix("").as_posix()
            if file in LEFT_OUT:
                continue
            for found in json.loads(path.read_text(encoding="utf-8")):
                schema = found["schema"]
                if isinstance(schema, dict):
                    schema = {"$schema": dialect, **schema}
                group = Group(draft, file, found["description"], schema, found["tests"])
                yield group
                yield from _with_its_type(group)


def _with_its_type(group: Group) -> Iterator[Group]:
    """The same group with the type that its keywords apply to, which most groups leave out. Cases of other types become invalid."""
    # In a schema that refers to itself, the type would apply in other places as well.
    if not isinstance(group.schema, dict) or "type" in group.schema or '"$ref"' in json.dumps(group.schema):
        return
    spoken = [kind for kind, words in KINDS.items() if any(word in group.schema for word in words)]
    if len(spoken) == 1:
        kind = "number" if spoken[0] == "integer" else spoken[0]
        typed = Draft202012Validator({"type": kind})
        tests = [{**case, "valid": case["valid"] and typed.is_valid(case["data"])} for case in group.tests]
        yield replace(group, schema={**group.schema, "type": kind}, tests=tests)


def judge(group: Group) -> Result:
    """Generates the group's model and validates every case with it."""
    # The schema of a tool is an object, so true and false are tested as the schema of a property.
    inside = isinstance(group.schema, bool)
    schema = {"properties": {"value": group.schema}, "type": "object"} if inside else group.schema
    try:
        text = module_text({"type": "object"}, schema)
    except SpecError as error:
        return Result(group, "refused", str(error).splitlines()[0], ())
    model = load_module(text).XOutput
    wrong = [
        case["description"]
        for case in group.tests
        if set(_verdicts(model, {"value": case["data"]} if inside else case["data"])) != {case["valid"]}
    ]
    return Result(group, "enforced" if "__enforced__" in vars(model) else "typed", None, tuple(wrong))


def _verdicts(model: type[BaseModel], value: Any) -> Iterator[bool]:
    for parse in (lambda: Reader(model).from_wire(value), lambda: model.model_validate_json(json.dumps(value))):
        try:
            parse()
            yield True
        except ValidationError:
            yield False
