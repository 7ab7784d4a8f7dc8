"""A reference means the same to everything that reads schemas: repair, the audit log, ``describe``, strict mode, Gemini."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests import command_line
from tests.projects import Project
from toolkit.adapters.gemini.schema import to_openapi
from toolkit.adapters.strict import check_strict, to_strict
from toolkit.codegen.imports.subset import gaps

INTEGER = {"type": "integer"}
SPELLINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "a pointer": ("#/$defs/n", {"n": {}}),
    "percent encoding": ("#/$defs/a%20b", {"a b": {}}),
    "an escaped slash": ("#/$defs/a~1b", {"a/b": {}}),
    "an escaped tilde": ("#/$defs/a~0b", {"a~b": {}}),
    "an encoded escape": ("#/$defs/a%7E1b", {"a/b": {}}),
    "a place in a list": ("#/$defs/all/allOf/0", {"all": {"allOf": [{}]}}),
    "an anchor": ("#here", {"n": {"$anchor": "here"}}),
}
"""How a reference may be written, and the definitions it leads into; the innermost schema is the target."""


def with_target(definitions: dict[str, Any], target: dict[str, Any]) -> dict[str, Any]:
    def fill(node: Any) -> Any:
        if isinstance(node, list):
            return [fill(item) for item in node]
        inner = {key: fill(value) for key, value in node.items() if key != "$anchor"}
        return {**node, **inner} if inner else {**target, **node}

    return {name: fill(node) for name, node in definitions.items()}


def schema(spelling: str, target: dict[str, Any]) -> dict[str, Any]:
    ref, definitions = SPELLINGS[spelling]
    return {
        "type": "object",
        "properties": {"v": {"$ref": ref}, "inner": {"$ref": "#"}},
        "$defs": with_target(definitions, target),
    }


TOOLS: list[dict[str, Any]] = [
    {
        "name": f"t{at}",
        "inputSchema": schema(spelling, {**INTEGER, "x-secret": True}),
        "outputSchema": {"type": "string"},
    }
    for at, spelling in enumerate(SPELLINGS)
]
LOOP = {
    "type": "object",
    "properties": {"v": {"type": "integer", "anyOf": [{"$ref": "#/$defs/self"}]}},
    "$defs": {"self": {"anyOf": [{"$ref": "#/$defs/self"}, {"type": "boolean"}]}},
}
RUN = """
import json
from acme.generated import SecurityPolicy, ToolkitContext, create_agent_toolkit
from toolkit import Pack, ToolkitError
pack = Pack({name: (lambda args, ctx: "done") for name in NAMES})
context = ToolkitContext("workspace", SecurityPolicy(default="allow"), coerce=True, audit="audit.jsonl")
with create_agent_toolkit(context, packs=[pack]) as toolkit:
    for name in NAMES:
        for arguments in CALLS:
            try:
                print(json.dumps(toolkit.invoke(name, arguments).metadata.get("repairs")))
            except ToolkitError as error:
                print(json.dumps(error.code))
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(
        tmp_path_factory.mktemp("project"),
        [*TOOLS, {"name": "loop", "inputSchema": LOOP, "outputSchema": {"type": "string"}}],
    )
    project.generate()
    (project.root / "workspace").mkdir()
    return project


def called(project: Project, names: list[str], calls: list[dict[str, Any]]) -> tuple[list[Any], list[Any]]:
    """What the calls of each tool came to, and the audit log's records of their starts."""
    log = project.root / "audit.jsonl"
    log.unlink(missing_ok=True)
    done = command_line.python(project.root, f"NAMES, CALLS = {names!r}, {calls!r}\n{RUN}")
    records = [json.loads(line) for line in log.read_text().splitlines()]
    return [json.loads(line) for line in done.stdout.splitlines()], [r for r in records if r["event"] == "start"]


@pytest.mark.slow
def test_arguments_behind_references_are_repaired(project: Project) -> None:
    results, _ = called(project, [tool["name"] for tool in TOOLS], [{"v": "7", "inner": {"v": "8"}}])
    repairs = [
        {"pointer": "/v", "what": "string read as integer"},
        {"pointer": "/inner/v", "what": "string read as integer"},
    ]
    # What an anchor leads to is judged by the validator, which judges the arguments as a whole.
    assert results == [repairs] * (len(TOOLS) - 1) + ["INVALID_TOOL_ARGUMENTS"]


@pytest.mark.slow
def test_a_schema_that_is_its_own_branch_is_refused_as_any_other(project: Project) -> None:
    results, _ = called(project, ["loop"], [{"v": "x"}, {"v": {}}])
    assert results == ["INVALID_TOOL_ARGUMENTS"] * 2


@pytest.mark.slow
def test_secrets_behind_references_are_not_in_the_audit_log(project: Project) -> None:
    calls = [{"v": 1, "inner": {"v": 2}}, {"v": 3, "inner": {"v": 4}}]
    _, records = called(project, [tool["name"] for tool in TOOLS], calls)
    digests = [record["arguments"] for record in records]
    assert digests[::2] == digests[1::2]
    assert len(digests) == 2 * len(TOOLS)


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.slow
def test_describe_shows_what_the_root_refers_to(tmp_path: Path, spelling: str) -> None:
    ref, definitions = SPELLINGS[spelling]
    output = {"$ref": ref, "$defs": with_target(definitions, {"type": "boolean"})}
    project = Project(tmp_path, [{"name": "x", "inputSchema": {"type": "object"}, "outputSchema": output}])
    project.generate()
    shown = command_line.toolkit(project.root, "describe", "x", check=True).stdout
    assert "\noutput:\n  boolean\n" in shown


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_strict_mode_follows(spelling: str) -> None:
    receipt = to_strict(schema(spelling, INTEGER))
    assert receipt.problems == ()
    [name] = receipt.schema["$defs"]
    assert receipt.schema["$defs"][name] == INTEGER
    assert receipt.decode({"v": 1, "inner": {"v": None, "inner": None}}) == {"v": 1, "inner": {}}


def test_strict_mode_takes_defaults_and_null_behind_references() -> None:
    properties = {"v": {"$ref": "#here", "default": None}, "w": {"$ref": "#/$defs/a%20b", "default": 1}}
    definitions = {"n": {"$anchor": "here", "type": ["integer", "null"]}, "a b": INTEGER}
    receipt = to_strict({"type": "object", "properties": properties, "$defs": definitions})
    assert receipt.problems == ()
    assert [note for note in receipt.notes if note.effect == "dropped"] == []


def test_an_anchor_is_not_the_root_to_the_checker() -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": "#a"}}, "required": ["a"], "additionalProperties": False}
    assert [problem.pointer for problem in check_strict(schema)] == ["/properties/a/$ref"]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_gemini_follows(spelling: str) -> None:
    assert to_openapi(schema(spelling, INTEGER))["properties"]["v"] == {"type": "INTEGER"}


@pytest.mark.parametrize("spelling", [spelling for spelling in SPELLINGS if spelling != "an anchor"])
def test_the_proof_follows(spelling: str) -> None:
    ref, definitions = SPELLINGS[spelling]
    left = {"$ref": ref, "$defs": with_target(definitions, INTEGER)}
    assert gaps(left, {"type": "number"}, only_named=True) == []


@pytest.mark.parametrize(("dialect", "minimum"), [("draft-07/schema#", None), ("draft/2020-12/schema", 5)])
def test_only_old_drafts_ignore_the_words_next_to_a_reference(dialect: str, minimum: int | None) -> None:
    document = {
        "$schema": f"http://json-schema.org/{dialect}",
        "type": "object",
        "properties": {"v": {"$ref": "#/definitions/n", "minimum": 5, "description": "D"}},
        "required": ["v"],
        "definitions": {"n": INTEGER},
    }
    receipt = to_strict(document)
    assert receipt.is_strict
    sent = receipt.schema["properties"]["v"]
    assert (sent.get("minimum"), sent["description"]) == (minimum, "D")
    gemini = to_openapi(document)["properties"]["v"]
    assert (gemini.get("minimum"), gemini["description"]) == (minimum, "D")
    taken = {"type": "object", "properties": {"v": {"type": "integer", "minimum": 5}}}
    assert bool(gaps(document, taken, only_named=True)) == (minimum is None)
