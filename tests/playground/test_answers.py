"""What the page is told: tools, verdicts, results, the same call in Python, the timeline, the cost in tokens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.playground.running import RunningPlayground, playground
from toolkit.generated import SecurityPolicy, ToolkitContext, ToolName, create_agent_toolkit
from toolkit.playground.answers import measure_tools, python_line
from toolkit.wire.definition import ToolDefinition


def test_every_tool_is_listed_with_what_the_policy_says_about_it(shop: RunningPlayground) -> None:
    tools = {tool["name"]: tool for tool in shop.get("/api/tools")}
    assert set(tools) == set(ToolName.__args__)  # type: ignore[attr-defined]
    said = {name: tool["decision"] for name, tool in tools.items()}
    assert (said["bash"], said["exec_command"], said["read_file"], said["webfetch"]) == (
        "allow", "ask", "depends", "deny",
    )  # fmt: skip
    assert tools["webfetch"]["because"] == "'webfetch' is not allowed: the policy's default is deny"


def test_a_preset_marks_what_it_does_not_allow(tmp_path: Path) -> None:
    with playground(tmp_path, allowing=("--preset", "read-only")) as running:
        said = {tool["name"]: tool["decision"] for tool in running.get("/api/tools")}
        assert (said["read_file"], said["write_file"], said["bash"]) == ("allow", "deny", "deny")
        assert running.run("write_file", path="a", content="b")["error"].startswith("TOOL_NOT_ALLOWED: ")
        assert running.get("/api/session")["auditIsTemporary"]
    assert list(tmp_path.iterdir()) == []


def test_one_tool_has_documentation_signature_and_schemas(shop: RunningPlayground) -> None:
    tool = shop.get("/api/tools/edit")
    assert tool["signature"].startswith("tk.tools.edit(\n    *,\n    path: str,")
    assert tool["classes"][0].startswith("class EditOutput:")
    assert tool["inputSchema"]["required"] == ["path", "old_string", "new_string"]
    assert "match_mode: exact" in tool["documentation"]
    assert set(tool["example"]) == set(tool["inputSchema"]["required"])


VERDICTS: dict[str, tuple[str, str, str | None, list[list[str]]]] = {
    "allowed": ("read_file", '{"path": "README.md"}', "allow", []),
    "a rule denies the path": ("read_file", '{"path": "secrets/key.txt"}', "deny", []),
    "asks": ("exec_command", '{"command": ["ls"]}', "ask", []),
    "denied by name, whatever the arguments": ("webfetch", '{"nonsense": 1', "deny", [[]]),
    "an argument is missing": ("read_file", "{}", None, [["path"]]),
    "a wrong and an unknown argument": ("read_file", '{"path": 1, "lines": 2}', None, [["path"], ["lines"]]),
    "inside a list": ("todowrite", '{"todos": [{"content": 1, "status": "pending"}]}', None, [["todos", "0", "content"]]),
    "no JSON": ("read_file", '{"path": ', None, [[]]),
    "no object": ("read_file", "[1]", None, [[]]),
    "nothing yet": ("read_file", "", None, [["path"]]),
}  # fmt: skip


@pytest.mark.parametrize("case", VERDICTS)
def test_the_verdict_on_a_call_that_somebody_writes(shop: RunningPlayground, case: str) -> None:
    tool, arguments, decision, places = VERDICTS[case]
    answer = shop.post("/api/explain", {"tool": tool, "arguments": arguments}).json()
    assert (answer["verdict"] and answer["verdict"]["decision"]) == decision
    assert [problem["path"] for problem in answer["problems"]] == places
    assert (answer["python"] is None) == bool(places)


def test_the_verdict_names_the_rule_and_its_place(shop: RunningPlayground) -> None:
    body = {"tool": "read_file", "arguments": '{"path": "secrets/key.txt"}'}
    verdict = shop.post("/api/explain", body).json()["verdict"]
    assert "keys stay here" in verdict["because"]
    first, entry = verdict["considered"]
    assert (first["outcome"], first["place"].rpartition("/")[2]) == ("decides", "policy.toml:14:1")
    assert entry["outcome"] == "not needed"


def test_the_typed_result_stands_beside_what_the_model_reads(shop: RunningPlayground) -> None:
    result = shop.run("read_file", path="README.md")
    assert (result["kind"], result["type"], result["error"]) == ("text", "ReadFileOutput", None)
    assert result["typed"].startswith("ReadFileOutput(\n    path='README.md',\n    content='# Shop")
    assert result["text"].startswith("     1\t# Shop")


def test_a_failed_call_says_what_the_model_reads(shop: RunningPlayground) -> None:
    result = shop.run("read_file", path="no such file")
    assert result["error"].startswith("TOOL_FAILED: ") and json.loads(result["text"]) == {"error": result["error"]}


LINES: dict[str, tuple[ToolName, dict[str, Any]]] = {
    "a text": ("read_file", {"path": "README.md"}),
    "quotes and hidden characters": ("write_file", {"path": "a\u202e'\".txt", "content": "\x1b[31m\n"}),
    "several arguments": ("grep", {"pattern": "x", "path": ".", "regex": False, "limit": 3}),
    "objects in a list": ("todowrite", {"todos": [{"content": "x", "status": "pending"}]}),
}


@pytest.mark.parametrize("case", LINES)
def test_the_python_line_makes_the_same_call(tmp_path: Path, case: str) -> None:
    name, arguments = LINES[case]
    (tmp_path / "README.md").write_text("hello\n")
    asked: list[Any] = []
    policy = SecurityPolicy(default="ask")

    def note(request: Any) -> Any:
        from toolkit import Deny

        asked.append((request.tool_name, request.arguments.model_dump(mode="json", by_alias=True, exclude_unset=True)))
        return Deny()

    with create_agent_toolkit(ToolkitContext(tmp_path, policy, approver=note)) as toolkit:
        line = python_line(toolkit._core.catalog.definitions[name], arguments)
        assert line.startswith(f"tk.tools.{name}(") and line.isprintable() or "\n    " in line
        for code in (line, f"tk.invoke({name!r}, {arguments!r})"):
            with pytest.raises(Exception, match="not approved"):
                exec(code, {"tk": toolkit})
    assert asked == [(name, arguments)] * 2


def test_the_timeline_has_durations_and_the_state_of_the_chain(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    (tmp_path / "workspace").mkdir()
    with playground(tmp_path / "workspace", "--audit", str(log)) as running:
        running.run("list", path=".")
        running.run("read_file", path="nothing")
        found = running.get("/api/audit")
        assert (found["records"], found["openCalls"], found["problems"]) == (4, 0, [])
        first, second = found["calls"]
        assert (first["tool"], first["outcome"], first["decision"]) == ("list", "ok", "allow")
        assert (second["outcome"], second["reason"]) == ("TOOL_FAILED", "NOT_FOUND")
        assert first["duration_ms"] > 0 and first["isOwn"]
        log.write_text(log.read_text().replace('"outcome":"ok"', '"outcome":"no"'))
        assert running.get("/api/audit")["problems"] == ["line 2 was changed"]


def test_tokens_are_estimated_from_the_bytes_that_each_adapter_writes(shop: RunningPlayground) -> None:
    found = shop.get("/api/tokens")
    assert found["count"] == 9 and len(found["forms"]) == 8
    for form in (*found["forms"], *found["tools"]):
        assert form["tokens"] == -(-form["bytes"] // 4) and form["problem"] is None
    sizes = {form["name"]: form["bytes"] for form in found["forms"]}
    assert sizes["Python signatures (text)"] < sizes["OpenAI Chat Completions"]
    assert {tool["name"] for tool in found["tools"]} >= {"read_file", "bash"}


def test_the_bytes_are_those_of_the_encoded_definitions() -> None:
    from toolkit.adapters.openai_chat.codec import encode_tools
    from toolkit.wire.call import JsonObject

    tool = ToolDefinition("a", "Ä.", JsonObject({"type": "object", "properties": {}}))
    written = json.dumps(encode_tools([tool]), ensure_ascii=False, separators=(",", ":")).encode()
    forms = {form["name"]: form["bytes"] for form in measure_tools([tool], "a()")["forms"]}
    assert (forms["OpenAI Chat Completions"], forms["Python signatures (text)"]) == (len(written), 3)
