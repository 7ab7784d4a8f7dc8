"""The audit log: what it records of every call, that nothing runs without it, and that tampering is found."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acme.generated import Rule, SecurityPolicy, ToolkitContext, create_agent_toolkit
from tests.projects import REPOSITORY
from tests.runtime.conftest import MakeDoor
from toolkit import (
    Approve,
    Deny,
    DynamicPolicy,
    InvalidArguments,
    JsonObject,
    Pack,
    Respond,
    SetupError,
    ToolCall,
    ToolContext,
    ToolFailed,
    ToolkitError,
    tool,
)
from toolkit.runtime.audit import AuditHead, verify
from toolkit.runtime.audit.log import redact
from toolkit.runtime.audit.verification import AUDIT_BEGINNING, chain_records, write_record
from toolkit.stores import AuditFile


def records(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


def told(log: Path, *names: str) -> list[tuple[Any, ...]]:
    return [tuple(record.get(name) for name in names) for record in records(log)]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "audit.jsonl"


def test_a_call_leaves_two_lines_and_a_refusal_one(make_door: MakeDoor, log: Path) -> None:
    policy = SecurityPolicy(default="allow", tools={"shout": "deny"})
    door = make_door(policy, audit=log, session_id="s-1")

    door.call(ToolCall("c-1", "add", {"a": 1, "b": 2}))
    door.call(ToolCall("c-2", "shout", {"text": "x"}))
    door.call(ToolCall("c-3", "shuot", {"text": "x"}))
    door.call(ToolCall("c-4", "add", {"a": "1"}))
    door.call(ToolCall("c-5", "fail", {"how": "expected"}))

    assert told(log, "event", "call_id", "tool", "decision", "outcome", "reason") == [
        ("start", "c-1", "add", "allow", None, None),
        ("end", "c-1", "add", "allow", "ok", None),
        ("end", "c-2", "shout", "deny", "TOOL_NOT_ALLOWED", None),
        ("end", "c-3", "shuot", None, "TOOL_NOT_FOUND", None),
        ("end", "c-4", "add", None, "INVALID_TOOL_ARGUMENTS", None),
        ("start", "c-5", "fail", "allow", None, None),
        ("end", "c-5", "fail", "allow", "TOOL_FAILED", "CONFLICT"),
    ]
    assert {record["session"] for record in records(log)} == {"s-1"}
    start, end = records(log)[:2]
    assert start["call"] == end["call"]
    assert start["rule"] == end["rule"] == "the policy's default is allow"
    assert end["output_bytes"] == len(b'{"sum":3}')
    assert end["duration_ms"] >= 0
    assert verify(log) == verify(log, AuditHead.parse(str(verify(log).head)))
    assert verify(log).problems == ()
    assert verify(log).open_calls == 0


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Approve(), [("start", "ask", "approve", None), ("end", "ask", "approve", "ok")]),
        (Deny("no"), [("end", "ask", "deny", "TOOL_NOT_ALLOWED")]),
        (Respond({"sum": 9}), [("end", "ask", "respond", "ok")]),
    ],
)
def test_says_what_the_approver_answered(
    make_door: MakeDoor, log: Path, answer: Any, expected: list[tuple[Any, ...]]
) -> None:
    door = make_door(SecurityPolicy(default="ask"), approver=lambda request: answer, audit=log)

    door.call(ToolCall("1", "add", {"a": 1, "b": 2}))

    assert told(log, "event", "decision", "answer", "outcome") == expected


def test_names_the_rule_behind_a_decision(make_door: MakeDoor, log: Path) -> None:
    rule: Any = Rule("deny", tools=["read_file"], path="secret/**", justification="not for models")
    door = make_door(SecurityPolicy(default="allow", rules=[rule]), audit=log)

    door.call(ToolCall("1", "read_file", {"path": "secret/key"}))

    [record] = records(log)
    assert (record["decision"], record["outcome"]) == ("deny", "TOOL_NOT_ALLOWED")
    assert "not for models" in record["rule"]


LONG = "long\x1b[31m\n\ud800" + "x" * 1_000_000


@pytest.mark.parametrize("end", ["a", "b"])
def test_what_a_model_chooses_is_bounded_in_the_log_and_the_chain_holds(
    make_door: MakeDoor, log: Path, end: str
) -> None:
    justification = "because " * 100_000
    rule: Any = Rule("deny", tools=["read_file"], path="secret/**", justification=justification)
    door = make_door(SecurityPolicy(default="allow", rules=[rule]), audit=log, session_id="s" * 100_000)

    error = door.call(ToolCall(LONG + end, LONG + end, {"a": 1}))
    door.call(ToolCall(LONG + end, "add", {"a": 1, "b": 2}))
    door.call(ToolCall("1", "read_file", {"path": "secret/key"}))

    assert error.kind == "error"
    assert log.stat().st_size < 4 * 5000
    assert b"\x1b" not in log.read_bytes() and len(log.read_bytes().splitlines()) == 4
    assert verify(log).problems == () and verify(log).open_calls == 0
    unknown, start, *_, refused = records(log)
    for shown in (unknown["tool"], unknown["call_id"], start["call_id"]):
        assert shown.startswith("long\x1b[31m\n\ud800xxx") and len(shown) < 400
        digest = hashlib.sha256((LONG + end).encode("utf-8", "surrogatepass")).hexdigest()
        assert shown.endswith(f"… ({len(LONG) + 1} characters, sha256 {digest})")
    assert (unknown["tool"], start["tool"]) == (unknown["call_id"], "add")
    assert "because" in refused["rule"] and len(refused["rule"]) < 400


def test_a_text_of_usual_length_is_whole_in_the_log(make_door: MakeDoor, log: Path) -> None:
    make_door(audit=log, session_id="s" * 1000).call(ToolCall("c" * 1000, "add", {"a": 1, "b": 2}))
    assert told(log, "session", "call_id") == [("s" * 1000, "c" * 1000)] * 2


def test_names_the_sandbox_of_tools_that_may_run_commands(make_door: MakeDoor, log: Path) -> None:
    def hold(args: Any, ctx: ToolContext) -> Any:
        return {"thread": ctx.process.tier}

    door = make_door(packs=[Pack({"hold": hold})], audit=log, sandbox="unsafe-none")
    result = door.call(ToolCall("1", "hold", {"key": "k"}))

    assert {record["sandbox"] for record in records(log)} == {result.value["thread"]}


def test_holds_no_values_and_one_record_a_line(make_door: MakeDoor, log: Path) -> None:
    forged = 'x"}\n{"event": "end", "tool": "forged"}\r\n\u2028'
    door = make_door(audit=log)

    door.call(ToolCall(forged, "shout", {"text": forged}))
    door.call(ToolCall("2", forged, {}))

    assert len(log.read_bytes().splitlines()) == 3
    assert [record["event"] for record in records(log)] == ["start", "end", "end"]
    assert records(log)[0]["call_id"] == forged
    assert verify(log).problems == ()


def test_the_digest_is_of_the_arguments_and_not_of_secrets(make_door: MakeDoor, log: Path) -> None:
    door = make_door(audit=log)
    for arguments in ({"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 1.0, "b": 2}, {"a": 1, "b": 3}):
        door.call(ToolCall("1", "add", arguments))

    one, two, three, four = (digest for [digest] in told(log, "arguments")[::2])
    assert one == two == three != four


@pytest.mark.parametrize("batch_seconds", [None, 0.01])
def test_what_is_not_json_has_no_digest_and_changes_no_call(
    make_door: MakeDoor, log: Path, batch_seconds: float | None
) -> None:
    @tool
    def take(value: Any) -> int:
        """Take anything."""
        return 1

    door = make_door(DynamicPolicy(default="allow"), packs=[take], audit=AuditFile(log, batch_seconds=batch_seconds))
    for text in (b"no JSON", b'{"value": 1}'):
        with pytest.raises(InvalidArguments, match="the arguments must be JSON text, not bytes"):
            door.execute_raw("take", text)
    assert door.invoke("take", {"value": 10**5000}).content == 1  # as text, that is more digits than Python reads
    door.close()

    assert told(log, "event", "outcome", "arguments") == [
        ("end", "INVALID_TOOL_ARGUMENTS", None),
        ("end", "INVALID_TOOL_ARGUMENTS", None),
        ("start", None, None),
        ("end", "ok", None),
    ]


@pytest.mark.every_row
@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"properties": {"k": {"x-secret": True}}}, {"k": "s", "u": 1}, {"k": None, "u": 1}),
        ({"properties": {"o": {"properties": {"k": {"x-secret": True}}}}}, {"o": {"k": [1]}}, {"o": {"k": None}}),
        ({"properties": {"l": {"items": {"$ref": "#/$defs/T"}}}, "$defs": {"T": {"x-secret": True}}}, {"l": ["s"]}, {"l": [None]}),
        ({"additionalProperties": {"x-secret": True}, "properties": {"u": {}}}, {"u": 1, "v": 2}, {"u": 1, "v": None}),
        ({"anyOf": [{"properties": {"k": {"x-secret": True}}}, {}]}, {"k": 1}, {"k": None}),
        ({"prefixItems": [{}, {"x-secret": True}]}, [1, 2, 3], [1, None, 3]),
        ({"$ref": "#/$defs/T", "$defs": {"T": {"$ref": "#/$defs/T"}}}, {"k": 1}, {"k": 1}),
        ({"properties": {"k": {"$ref": "#/$defs/T", "x-secret": True}}, "$defs": {"T": {}}}, {"k": 1}, {"k": None}),
        ({"properties": {"k": {"$ref": "#t"}}, "$defs": {"T": {"$anchor": "t", "x-secret": True}}}, {"k": 1}, {"k": None}),
        ({"properties": {"k": {"$ref": "#t"}}, "$defs": {"T": {"$id": "#t", "x-secret": True}}}, {"k": 1}, {"k": None}),
        ({"properties": {"k": {"$ref": "#/$defs/a%20b"}}, "$defs": {"a b": {"x-secret": True}}}, {"k": 1}, {"k": None}),
        ({"properties": {"k": {"x-secret": True}, "o": {"$ref": "#"}}}, {"o": {"k": 1, "u": 2}}, {"o": {"k": None, "u": 2}}),
        ({"properties": {"k": {"x-secret": True}}, "anyOf": [{"$ref": "#"}]}, {"k": 1, "u": 2}, {"k": None, "u": 2}),
        ({"properties": {"k": {"$ref": "https://example.com/k"}, "u": {}}}, {"k": 1, "u": 2}, {"k": None, "u": 2}),
        ({"properties": {"k": {"$dynamicRef": "#t"}}, "$defs": {"T": {"$dynamicAnchor": "t", "x-secret": True}}}, {"k": 1}, {"k": None}),
        ({"patternProperties": {"^k": {"x-secret": True}}}, {"k1": 1, "u": 2}, {"k1": None, "u": 2}),
        ({"patternProperties": {"^(?=k)": {"x-secret": True}}}, {"k1": 1, "u": 2}, {"k1": None, "u": None}),
        ({"unevaluatedProperties": {"x-secret": True}}, {"k": 1}, {"k": None}),
        ({"if": {}, "then": {"properties": {"k": {"x-secret": True}}}}, {"k": 1}, {"k": None}),
        ({"dependentSchemas": {"u": {"properties": {"k": {"x-secret": True}}}}}, {"k": 1, "u": 2}, {"k": None, "u": 2}),
        ({"items": [{}, {"x-secret": True}], "additionalItems": {"x-secret": True}}, [1, 2, 3], [1, None, None]),
        ({"contains": {"x-secret": True}}, [1], [None]),
        ({"properties": [], "items": 1, "anyOf": "x", "patternProperties": 2, "$ref": "#"}, {"k": 1}, {"k": 1}),
        (True, {"k": 1}, {"k": 1}),
    ],
)  # fmt: skip
def test_leaves_out_what_is_secret(schema: Any, value: Any, expected: Any) -> None:
    assert redact(value, schema) == expected


# What happens when the log is in the way


@pytest.mark.slow
def test_nothing_runs_where_the_log_cannot_be_written(tmp_path: Path, log: Path) -> None:
    """A file size limit stands for a full disk; in a process of its own, as it cannot be taken back."""
    (tmp_path / "workspace").mkdir()
    code = f"""
import resource, signal, sys
from acme.generated import SecurityPolicy, ToolkitContext, create_agent_toolkit
from toolkit import Pack, ToolCall
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
ran = []
def add(args, ctx):
    ran.append(args.a)
    return {{"sum": 0}}
context = ToolkitContext({str(tmp_path / "workspace")!r}, SecurityPolicy(default="allow"), audit={str(log)!r})
with create_agent_toolkit(context, packs=[Pack({{"add": add}})]) as toolkit:
    toolkit.call(ToolCall("1", "add", {{"a": 1, "b": 1}}))
    resource.setrlimit(resource.RLIMIT_FSIZE, (__import__("os").stat({str(log)!r}).st_size + 100,) * 2)
    print(toolkit.call(ToolCall("2", "add", {{"a": 2, "b": 2}})).value)
    print(ran)
"""
    done = run_python(code, tmp_path)
    assert done.stdout.splitlines() == [
        "TOOL_FAILED: IO: nothing was run, because the audit log cannot be written",
        "[1]",
    ]
    assert "the end of a call is missing in the audit log" in done.stderr
    assert verify(log).problems == ()
    assert verify(log).head.lines == 2


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("workspace/audit.jsonl", "is inside"),
        ("link/audit.jsonl", "is inside"),
        ("missing/audit.jsonl", "its folder does not exist; create it"),
        (".", "cannot be opened: Is a directory"),
        ("fifo", "not a regular file|cannot be opened"),
    ],
)
def test_refuses_places_for_a_log_when_the_toolkit_is_built(tmp_path: Path, place: str, words: str) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (tmp_path / "link").symlink_to(workspace)
    os.mkfifo(tmp_path / "fifo")

    with pytest.raises(SetupError, match=words):
        create_agent_toolkit(ToolkitContext(workspace, SecurityPolicy(default="allow"), audit=tmp_path / place))


def test_the_file_is_private(make_door: MakeDoor, log: Path) -> None:
    make_door(audit=log)
    assert log.stat().st_mode & 0o777 == 0o600


# Several writers, and writers that die


def run_python(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join([str(REPOSITORY), str(REPOSITORY / "tests" / "downstream")])
    environment = {**os.environ, "PYTHONPATH": paths}
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def calling(log: Path, workspace: Path, count: int) -> str:
    return f"""
from acme.generated import SecurityPolicy, ToolkitContext, create_agent_toolkit
from toolkit import ToolCall
context = ToolkitContext({str(workspace)!r}, SecurityPolicy(default="allow"), audit={str(log)!r})
with create_agent_toolkit(context) as toolkit:
    for number in range({count}):
        toolkit.call(ToolCall(str(number), "add", {{"a": number, "b": 1}}))
"""


@pytest.mark.slow
def test_processes_share_a_log(tmp_path: Path, log: Path) -> None:
    paths = os.pathsep.join([str(REPOSITORY), str(REPOSITORY / "tests" / "downstream")])
    code = calling(log, tmp_path / "w", 100)
    (tmp_path / "w").mkdir()
    writers = [
        subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": paths}) for _ in range(3)
    ]
    assert [writer.wait(120) for writer in writers] == [0, 0, 0]

    report = verify(log)
    assert (report.head.lines, report.problems, report.open_calls) == (600, (), 0)


def test_threads_share_a_log(make_door: MakeDoor, log: Path) -> None:
    door = make_door(audit=log)
    door.call_all([ToolCall(str(n), "count-words", {"text": "a b"}) for n in range(64)])

    assert verify(log).problems == ()
    assert verify(log).head.lines == 128


def test_a_line_its_writer_died_in_is_no_record_and_the_next_one_says_so(make_door: MakeDoor, log: Path) -> None:
    make_door(audit=log).call(ToolCall("1", "add", {"a": 1, "b": 1}))
    whole = log.read_bytes()
    log.write_bytes(whole + b'{"event": "start", "time"')
    assert verify(log).problems == (
        "the last line is not a complete record: its writer was interrupted, or it was cut off",
    )

    make_door(audit=log).call(ToolCall("2", "add", {"a": 1, "b": 1}))

    assert log.read_bytes().startswith(whole)
    report = verify(log)
    assert (report.head.lines, report.problems) == (4, ())


@pytest.mark.slow
def test_a_call_that_never_ended_shows(tmp_path: Path, log: Path) -> None:
    (tmp_path / "w").mkdir()
    code = calling(log, tmp_path / "w", 1)
    killing = f"""
import os, signal
from acme.generated import SecurityPolicy, ToolkitContext, create_agent_toolkit
from toolkit import Pack
def add(args, ctx):
    os.kill(os.getpid(), signal.SIGKILL)
context = ToolkitContext({str(tmp_path / "w")!r}, SecurityPolicy(default="allow"), audit={str(log)!r})
create_agent_toolkit(context, packs=[Pack({{"add": add}})]).tools.add(a=1, b=1)
"""
    assert run_python(code, tmp_path).returncode == 0
    assert run_python(killing, tmp_path).returncode == -signal.SIGKILL

    report = verify(log)
    assert (report.head.lines, report.problems, report.open_calls) == (3, (), 1)


# Tampering


def lines(log: Path) -> list[bytes]:
    return log.read_bytes().splitlines(keepends=True)


def reforged(line: bytes) -> bytes:
    """The line with another tool's name and a hash that fits it."""
    record = json.loads(line)
    record["tool"] = "shout"
    previous = record.pop("previous")
    del record["hash"]
    return chain_records([record], previous)[0]


TAMPERING: list[tuple[str, Callable[[list[bytes]], list[bytes]], str]] = [
    ("a changed value", lambda old: [*old[:2], old[2].replace(b"add", b"adb"), *old[3:]], "line 3 was changed"),
    ("a changed value with a new hash", lambda old: [*old[:2], reforged(old[2]), *old[3:]], "line 4 does not follow"),
    ("a removed line", lambda old: [*old[:2], *old[3:]], "line 3 does not follow"),
    ("a removed first line", lambda old: old[1:], "line 1 does not follow"),
    ("a line twice", lambda old: [*old[:2], old[1], *old[2:]], "line 3 does not follow"),
    ("two lines in another order", lambda old: [old[1], old[0], *old[2:]], "line 1 does not follow"),
    ("garbage in between", lambda old: [*old[:2], b"garbage\n", *old[2:]], "line 3 is not a record"),
    ("a record made into garbage", lambda old: [*old[:2], b"x" + old[2], *old[3:]], "line 4 does not follow"),
    ("an empty line", lambda old: [*old[:2], b"\n", *old[2:]], "line 3 is not a record"),
]


@pytest.mark.parametrize(("change", "words"), [row[1:] for row in TAMPERING], ids=[row[0] for row in TAMPERING])
def test_tampering_shows(
    make_door: MakeDoor, log: Path, change: Callable[[list[bytes]], list[bytes]], words: str
) -> None:
    door = make_door(audit=log)
    for number in range(3):
        door.call(ToolCall(str(number), "add", {"a": 1, "b": 1}))
    assert verify(log).problems == ()

    log.write_bytes(b"".join(change(lines(log))))

    assert any(problem.startswith(words) for problem in verify(log).problems), verify(log).problems


def test_a_cut_tail_shows_against_a_head_kept_elsewhere(make_door: MakeDoor, log: Path) -> None:
    door = make_door(audit=log)
    for number in range(3):
        door.call(ToolCall(str(number), "add", {"a": 1, "b": 1}))
    head = verify(log).head
    door.call(ToolCall("more", "add", {"a": 1, "b": 1}))
    assert verify(log, head).problems == ()

    log.write_bytes(b"".join(lines(log)[:4]))

    assert verify(log).problems == ()
    assert "the tail was cut off" in verify(log, head).problems[0]
    log.write_bytes(b"".join(lines(log)[:2]))
    door = make_door(audit=log)
    for number in range(3):
        door.call(ToolCall(str(number), "add", {"a": 1, "b": 1}))
    assert "does not match the given head" in verify(log, head).problems[0]


def test_an_empty_log_is_whole(log: Path) -> None:
    log.touch()
    assert verify(log).head == AuditHead(0, AUDIT_BEGINNING)


@pytest.mark.parametrize("text", ["", "3", "x:" + "0" * 64, "3:abc"])
def test_a_head_that_is_none(text: str) -> None:
    with pytest.raises(SetupError, match="a head has the form lines:hash"):
        AuditHead.parse(text)


def test_a_handler_that_fails_is_recorded_without_its_words(make_door: MakeDoor, log: Path) -> None:
    def add(args: Any, ctx: ToolContext) -> Any:
        raise ToolFailed("IO", "the password is hunter2") if args.a else RuntimeError("hunter2")

    door = make_door(packs=[Pack({"add": add})], audit=log)
    for number in (0, 1):
        with pytest.raises(ToolkitError):
            door.invoke("add", JsonObject({"a": number, "b": 0}))

    assert [outcome for [outcome] in told(log, "outcome")] == [None, "INTERNAL", None, "TOOL_FAILED"]
    assert "hunter2" not in log.read_text()


def test_what_is_called_after_the_end_writes_nothing_anywhere(make_door: MakeDoor, log: Path, tmp_path: Path) -> None:
    door = make_door(audit=log)
    door.close()
    # The number of the closed log is free now, and this file gets it.
    with (tmp_path / "other").open("w+b") as other:
        result = door.call(ToolCall("1", "add", {"a": 1, "b": 2}))
        assert other.seek(0, os.SEEK_END) == 0

    assert result.value.startswith("TOOL_CANCELLED: ")
    assert log.read_bytes() == b""


@given(
    st.dictionaries(
        st.text(),
        st.none() | st.booleans() | st.integers() | st.text() | st.floats(0, 1e9).map(lambda ms: round(ms, 3)),
    )
)
def test_a_line_holds_what_was_recorded_in_ascii(record: dict[str, Any]) -> None:
    written = write_record(record)
    assert written.isascii() and b"\n" not in written
    assert json.loads(written) == record
