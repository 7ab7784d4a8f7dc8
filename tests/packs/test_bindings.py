"""``policy.bindings()``, the table of ``toolkit policy show``, is held to what really happens at every door."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.examples import repeats
from tests.guard.ways import needs
from tests.packs.conftest import SERVERS
from toolkit import (
    CommandSettings,
    FileSettings,
    Rule,
    SecurityPolicy,
    ToolCall,
    ToolkitContext,
    create_agent_toolkit,
)
from toolkit.guard.policy.policy import BoundRule, Door
from toolkit.packs import McpServer, McpTool, mcp_pack

SECRET = "the-key-itself"
FILES = {"secret/k": SECRET, "secret/deep/k": SECRET, "docs/a.md": "a page of the docs", "top": "the top"}


class Act(NamedTuple):
    """Something that is tried at every door."""

    kind: Literal["read", "write"]
    path: str


ACTS = [Act("read", "secret/k"), Act("read", "docs/a.md"), Act("write", "docs/a.md"), Act("write", "top")]
ALL: tuple[Door, ...] = ("file tools", "commands", "programs")
FEW: tuple[Door, ...] = ("file tools", "commands")  # a program is read by a type checker first
# What each pattern covers, by hand.
PATTERNS: Mapping[str | None, list[str]] = {
    None: [act.path for act in ACTS],
    "secret/**": ["secret/k"],
    "**/k": ["secret/k"],
    "k": ["secret/k"],
    "SECRET/K": ["secret/k"],
    "docs/*": ["docs/a.md"],
    "*.md": ["docs/a.md"],
    "elsewhere/**": [],
    "top": ["top"],
}


class Limit(NamedTuple):
    """A rule, or a limit of the context, as data that says which acts it is about."""

    pattern: str | None = None
    permission: Any = None
    decision: Any = "deny"

    def rule(self) -> Rule:
        return Rule(self.decision, path=self.pattern, permission=self.permission)

    def is_about(self, act: Act) -> bool | None:
        """None where the limit is about something else, and may stop the act on the way there."""
        if act.path not in PATTERNS[self.pattern]:
            return False
        if self.permission == "read" and act.kind == "write":
            return None  # a file that may not be read is often not written either
        return self.permission in (None, "execute", "network", act.kind)


RULES = st.builds(
    Limit,
    st.sampled_from(list(PATTERNS)),
    st.sampled_from([None, "read", "write", "execute"]),
    st.sampled_from(["deny", "ask"]),
).filter(lambda limit: limit.pattern is not None or limit.permission is not None)
CONTEXTS = st.sampled_from(
    [
        {},
        {},
        {"files": FileSettings(mode="read-only", ask_before_writing=())},
        {"permissions": {"read", "execute", "network"}},
        {"permissions": {"write", "execute", "network"}},
        {"permissions": {"read", "write", "network"}},
    ]
)


def fill(workspace: Path) -> None:
    for name, text in FILES.items():
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text(text)


def attempt(tk: Any, workspace: Path, door: Door, act: Act) -> bool:
    """Whether the act succeeds at that door."""
    fill(workspace)
    program = (
        f"print(tools.read_file(path={act.path!r}).content)"
        if act.kind == "read"
        else f"tools.write_file(path={act.path!r}, content='changed')"
    )
    shell = f"cat {act.path}" if act.kind == "read" else f"echo changed > {act.path}"
    calls: dict[Door, tuple[str, dict[str, Any]]] = {
        "file tools": ("read_file", {"path": act.path})
        if act.kind == "read"
        else ("write_file", {"path": act.path, "content": "changed"}),
        "commands": ("bash", {"command": shell}),
        "programs": ("run_program", {"source": program}),
        "local servers": ("odd_text", {"text": f"{act.kind} {act.path}"}),
        "remote servers": ("web_greet", {"name": act.path}),
    }
    name, arguments = calls[door]
    result = tk.call(ToolCall("1", name, arguments))
    if door == "remote servers":  # it has files of its own
        return bool(result.kind != "error")
    if act.kind == "write":
        return "changed" in (workspace / act.path).read_text()
    return FILES[act.path] in str(result.value)


def check(bound: tuple[BoundRule, ...], limits: list[Limit], door: Door, act: Act, happened: bool) -> None:
    """Compare what happened with the rows of the limits."""
    held = [held_at(door, row, limit) for row, limit in zip(bound, limits, strict=True)]
    about = [limit.is_about(act) for limit in limits]
    stopping = [how for how, is_it in zip(held, about, strict=True) if is_it and how in ("kernel", "checked")]
    unclear = [how for how, is_it in zip(held, about, strict=True) if is_it is None and how in ("kernel", "checked")]
    if stopping:
        assert not happened, (door, act, limits)
    elif not unclear:
        assert happened, (door, act, limits)


def held_at(door: Door, row: BoundRule, limit: Limit) -> str:
    """What the table says. What a program does by a file tool is held where the file tool is."""
    how = row.doors[door].how
    is_about_running = limit == Limit(permission="execute", decision=limit.decision)
    return row.doors["file tools"].how if door == "programs" and how != "-" and not is_about_running else how


def of_context(settings: dict[str, Any]) -> list[Limit]:
    """The limits of the context as rules, which is what they mean."""
    withheld = {"read", "write", "execute"} - set(settings.get("permissions", ("read", "write", "execute")))
    if "files" in settings:
        withheld.add("write")
    return [Limit(permission=word) for word in sorted(withheld)]


@pytest.fixture(scope="module")
def makers(served: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    needs("full")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SHOP_TOKEN", "s3cret")
        yield {"served": served, "folder": tmp_path_factory.mktemp("bindings")}


@settings(max_examples=repeats(24), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(limits=st.lists(RULES, max_size=3), given_context=CONTEXTS)
def test_every_door_obeys_what_the_table_says(
    makers: dict[str, Any], limits: list[Limit], given_context: dict[str, Any]
) -> None:
    served: Any = makers["served"]
    rules = [limit.rule() for limit in limits]
    folder = Path(tempfile.mkdtemp(dir=makers["folder"]))
    workspace = folder / "workspace"
    fill(workspace)
    common: dict[str, Any] = {
        "files": FileSettings(ask_before_writing=()),
        "commands": CommandSettings(sandbox="full"),
        "state_dir": folder / "state",
        **given_context,
    }
    everything = [*of_context(given_context), *limits]
    own: Any = SecurityPolicy(default="allow", tools={"run_program": "allow"}, rules=rules)
    with create_agent_toolkit(ToolkitContext(workspace, own, **common)) as tk:
        bound = rows_of(own.bindings(), given_context, limits)
        for act in ACTS:
            for door in FEW if act.path in ("docs/a.md", "top") else ALL:
                check(bound, everything, door, act, attempt(tk, workspace, door, act))
    theirs: Any = served.SecurityPolicy(default="allow", rules=rules)
    # Its text, not a file: a workspace that is hidden from it would hide the file, too.
    server = McpServer(name="odd", command=("python", "-c", (SERVERS / "odd.py").read_text(), "obeys"))
    packs = [mcp_pack(server, {"odd_text": McpTool("ask", "served.generated.models.odd_text:OddTextOutput")}), *web()]
    with served.create_agent_toolkit(served.ToolkitContext(workspace, theirs, **common), packs=packs) as tk:
        bound = rows_of(theirs.bindings(), given_context, limits)
        for act in ACTS:
            check(bound, everything, "local servers", act, attempt(tk, workspace, "local servers", act))
        check(bound, everything, "remote servers", ACTS[0], attempt(tk, workspace, "remote servers", ACTS[0]))


def test_a_door_is_as_weak_as_the_weakest_tool_behind_it(tmp_path: Path) -> None:
    """The proxy checks the hosts of ``bash``; that another tool's commands have no network does not make it the kernel."""
    needs("full")
    policy: Any = SecurityPolicy(default="allow", rules=[Rule("deny", host="example.org")])
    context: Any = ToolkitContext(tmp_path, policy, commands=CommandSettings(sandbox="full", network="guarded"))
    with create_agent_toolkit(context):
        (row,) = (row for row in policy.bindings() if row.text.startswith("Rule("))
        assert row.doors["commands"].how == "checked"


def rows_of(bound: tuple[BoundRule, ...], settings: dict[str, Any], limits: list[Limit]) -> tuple[BoundRule, ...]:
    """The rows of withheld permissions, then those of the rules."""
    withheld = sorted(
        (row for row in bound if row.text.startswith(("permissions=", "mode="))), key=lambda row: row.text
    )
    rules = [row for row in bound if row.text.startswith("Rule(")]
    assert (len(withheld), len(rules)) == (len(of_context(settings)), len(limits))
    return (*withheld, *rules)


def web() -> list[Any]:
    from importlib import import_module

    return [import_module("served.generated.imported").WEB]
