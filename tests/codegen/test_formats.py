"""``format``: a word in the docstring; with ``formats = "rich"`` a type that reads and writes the same text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests import command_line
from tests.codegen.test_docstrings import field_docs
from tests.modules import load_module, module_text
from tests.projects import Project
from toolkit.codegen import find_settings
from toolkit.errors import SetupError

FORMATS = ("date-time", "date", "time", "uuid", "uri")
SAME = {
    "date-time": ["2026-01-31T08:30:00Z", "2026-01-31t08:30:00.50z", "2026-01-31T08:30:00.123456789-05:30"],
    "date": ["2026-01-31", "0001-01-01"],
    "time": ["08:30:00Z", "23:59:59.9+01:00"],
    "uuid": ["f81d4fae-7dec-11d0-a765-00a0c91e6bf6", "F81D4FAE-7DEC-11D0-A765-00A0C91E6BF6"],
    "uri": [
        "http://Example.com",
        "https://example.org:443/a/../b?x=%7e#y",
        "urn:isbn:0451450523",
        "mailto:a@example.org",
    ],
}
REFUSED = {
    "date-time": [
        "2026-01-31",
        "2026-01-31T08:30:00",
        "2026-02-30T08:30:00Z",
        "2026-01-31T23:59:60Z",
        "",
        "٢026-01-31T08:30:00Z",
    ],
    "date": ["2026-02-30", "20260131", "2026-01-31T00:00:00Z", "31.01.2026"],
    "time": ["08:30:00", "8:30:00Z", "24:00:01Z"],
    "uuid": [
        "f81d4fae7dec11d0a76500a0c91e6bf6",
        "{f81d4fae-7dec-11d0-a765-00a0c91e6bf6}",
        "urn:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
    ],
    "uri": ["example.org", "http://a b/", "http://x/%zz", "http://x:99999/", "http://é.example/"],
}


def text(word: str, **more: Any) -> dict[str, Any]:
    return {"type": "string", "format": word, **more}


BOOKING = {
    "name": "book",
    "inputSchema": {
        "type": "object",
        "required": list(FORMATS),
        "properties": {
            **{word: text(word) for word in FORMATS},
            "ends": {"type": ["string", "null"], "format": "date-time"},
            "ids": {"type": "array", "items": text("uuid")},
            "links": {"type": "object", "additionalProperties": text("uri")},
            "codes": {"type": "array", "items": {"type": "string", "maxLength": 3}},
            "first": text("date", default="2026-01-01"),
            "short": text("date", maxLength=30),
            "mail": text("email"),
            "wait": text("duration"),
            "until": {"anyOf": [text("date"), {"const": "never"}, text("time")]},
            "reply": {"anyOf": [text("email"), {"const": "none"}]},
        },
    },
    "outputSchema": {"type": "object", "required": ["at"], "properties": {"at": text("date-time")}},
}


def test_a_format_is_a_word_in_the_docstring() -> None:
    properties = {
        "at": text("date-time", description="When it starts"),
        "day": text("date", description="The day."),
        "size": {"type": "integer", "format": "int64"},
        "ends": {"type": ["string", "null"], "format": "time"},
        "ids": {"type": "array", "items": text("uuid", minLength=1), "description": "The ids."},
        "links": {"type": "object", "additionalProperties": text("uri")},
        "long": text("email", description="One line.\n\nAnother."),
        "name": {"type": "string", "description": "No format"},
        "until": {"anyOf": [text("date"), {"const": "never"}]},
        "either": {"anyOf": [text("email", maxLength=9), text("uri")]},
    }
    source = module_text({"type": "object", "properties": properties})
    assert field_docs(source, "XInput") == {
        "at": "When it starts. Format: date-time.",
        "day": "The day. Format: date.",
        "size": "Format: int64.",
        "ends": "Format: time.",
        "ids": "The ids. Format of each item: uuid.",
        "links": "Format of each value: uri.",
        "long": "One line.\n\n    Another.\n\n    Format: email.\n    ",
        "name": "No format",
        "until": "Format: date.",
        "either": "Format: email, uri.",
    }


def test_by_default_a_format_is_text_and_is_not_checked() -> None:
    model = load_module(module_text({"type": "object", "properties": {"at": text("date-time")}})).XInput
    assert model(at="tomorrow").at == "tomorrow"


def test_an_unknown_value_of_formats_is_named(tmp_path: Path) -> None:
    Project(tmp_path, formats="fancy")
    with pytest.raises(
        SetupError, match=r"pyproject.toml:.*: 'formats' must be 'text' or 'rich' \(/tool/toolkit/formats\)"
    ):
        find_settings(tmp_path)


@pytest.fixture(scope="module")
def rich(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(tmp_path_factory.mktemp("rich"), [BOOKING], formats="rich")
    project.generate()
    return project


def run_json(project: Project, code: str, data: object) -> Any:
    """What a program in the project prints, given ``data``."""
    done = command_line.python(project.root, f"import json\ndata = json.loads({json.dumps(json.dumps(data))})\n{code}")
    return json.loads(done.stdout)


def test_every_text_is_written_as_it_was_read(rich: Project) -> None:
    longest = max(map(len, SAME.values()))
    values: list[dict[str, Any]] = [
        {word: SAME[word][index % len(SAME[word])] for word in FORMATS} for index in range(longest)
    ]
    values += [
        {**values[0], "ends": SAME["date-time"][1], "ids": SAME["uuid"], "links": {"a": SAME["uri"][0]}},
        {**values[0], "ends": None, "first": "soon", "short": "later", "mail": "me", "wait": "P1M"},
        *({**values[0], "until": until, "reply": "none"} for until in ("never", SAME["date"][0], SAME["time"][0])),
    ]
    code = """
import copy, pickle
from acme.generated import BookInput
found = []
for value in data:
    model = BookInput.model_validate(value)
    assert BookInput.model_validate_json(json.dumps(value)) == model
    for same in (model, copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        found.append(same.model_dump(by_alias=True, exclude_unset=True))
        found.append(json.loads(same.model_dump_json(by_alias=True, exclude_unset=True)))
print(json.dumps(found))
"""
    found = run_json(rich, code, values)
    assert found == [value for value in values for _ in range(6)]


def test_rich_types_leave_no_gap_where_they_are_imported(rich: Project) -> None:
    module = (rich.output / "models" / "book.py").read_text()
    assert "\n\n\n\n" not in module


def test_a_constant_next_to_a_rich_type_stays(rich: Project) -> None:
    module = (rich.output / "models" / "book.py").read_text()
    assert '    until: Omissible[WireDate | Literal["never"] | WireTime] = None\n' in module
    assert "    reply: Omissible[str] = None\n" in module


def test_values_are_rich(rich: Project) -> None:
    code = """
from datetime import date, datetime, time
from uuid import UUID
from pydantic import AnyUrl
from acme.generated import BookInput
value = BookInput.model_validate(data)
kinds = {"date-time": datetime, "date": date, "time": time, "uuid": UUID, "uri": AnyUrl}
print(json.dumps({wire: isinstance(getattr(value, wire.replace("-", "_")), kind) for wire, kind in kinds.items()}))
"""
    assert run_json(rich, code, {word: SAME[word][0] for word in FORMATS}) == dict.fromkeys(FORMATS, True)


def test_a_text_of_another_format_is_refused_with_an_example(rich: Project) -> None:
    good = {word: SAME[word][0] for word in FORMATS}
    values = [({**good, word: bad}, word) for word in FORMATS for bad in REFUSED[word]]
    code = """
from pydantic import ValidationError
from acme.generated import BookInput
found = []
for value, word in data:
    try:
        BookInput.model_validate(value)
        found.append("accepted")
    except ValidationError as error:
        [only] = error.errors()
        found.append([list(only["loc"]), only["msg"]])
print(json.dumps(found))
"""
    found = run_json(rich, code, values)
    for (value, word), problem in zip(values, found, strict=True):
        assert problem != "accepted", value[word]
        place, message = problem
        assert place == [word]
        assert message.startswith(f"Input should be of the format {word}, such as ")


def test_a_call_takes_texts_and_values(rich: Project) -> None:
    code = """
from datetime import UTC, date, datetime, time
from uuid import UUID
from pydantic import AnyUrl
from acme.generated import BookInput, BookOutput, SecurityPolicy, ToolkitContext, bind, create_agent_toolkit
from toolkit import Approve, ToolkitError

seen = []
def book(args: BookInput, ctx: object) -> BookOutput:
    seen.append(args.model_dump(mode="json", by_alias=True, exclude_unset=True))
    return BookOutput(at=args.date_time)

values = {"date-time": datetime(2026, 1, 31, 8, tzinfo=UTC), "date": date(2026, 1, 31), "time": time(8, tzinfo=UTC),
          "uuid": UUID(int=7), "uri": AnyUrl("http://Example.com"), "ids": [UUID(int=8)]}
policy = SecurityPolicy(default="ask")
context = ToolkitContext("acme", policy, approver=lambda request: Approve(), audit="audit.jsonl")
with create_agent_toolkit(context, packs=[bind(book=book)]) as toolkit:
    texts = [toolkit.invoke("book", data).text(), toolkit.invoke("book", values).text()]
    toolkit.tools.book(date_time=values["date-time"], date="2026-01-31", time=values["time"], uuid=data["uuid"], uri=values["uri"])
    for wrong in ({"date-time": datetime(2026, 1, 31)}, {"date": datetime(2026, 1, 31)}, {"date": 7}, {"uuid": "7"}):
        try:
            toolkit.invoke("book", {**data, **wrong})
        except ToolkitError as error:
            texts.append(error.code)
print(json.dumps([texts, seen]))
"""
    given = {word: SAME[word][1] for word in FORMATS}
    texts, seen = run_json(rich, code, given)
    assert [json.loads(words) for words in texts[:2]] == [
        {"at": given["date-time"]},
        {"at": "2026-01-31T08:00:00+00:00"},
    ]
    assert texts[2:] == ["INVALID_TOOL_ARGUMENTS"] * 4
    assert seen[0] == given
    assert seen[1] == {
        "date-time": "2026-01-31T08:00:00+00:00",
        "date": "2026-01-31",
        "time": "08:00:00+00:00",
        "uuid": "00000000-0000-0000-0000-000000000007",
        "uri": "http://example.com/",
        "ids": ["00000000-0000-0000-0000-000000000008"],
    }
    assert seen[2]["date-time"] == "2026-01-31T08:00:00+00:00"
