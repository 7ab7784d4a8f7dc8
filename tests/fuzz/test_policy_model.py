"""Policy and approvals step by step: nothing denied ever runs, ask always asks, and an approval covers only what was shown.

The rules name whole paths, so that the model can say by comparing texts what the policy must decide.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from toolkit import ApprovalRequest, Approve, Deny, Edit, InternalError, Respond, ToolkitError
from toolkit.generated import Rule, SecurityPolicy, ToolkitContext, create_agent_toolkit

PATHS: Final = ("a", "b", "sub/c", "sub/d")  # a pattern without a slash covers its name in every folder
TOOLS: Final = ("read_file", "write_file")
DECISIONS: Final = ("allow", "ask", "deny")
paths = st.sampled_from(PATHS)
decisions = st.sampled_from(DECISIONS)
rules_of_policy = st.lists(st.tuples(decisions, paths, st.none() | st.sampled_from(TOOLS)), max_size=4)
SPELLINGS: Final = ("{}", "./{}", "sub/../{}", "link/../{}")


class NothingPastThePolicy(RuleBasedStateMachine):
    """Files hold their own path, so that what was read says which file it was."""

    @initialize(default=decisions, tools=st.dictionaries(st.sampled_from(TOOLS), decisions), rules=rules_of_policy)
    def begin(self, default: Any, tools: Any, rules: list[tuple[Any, str, Any]]) -> None:
        self.base = Path(tempfile.mkdtemp(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None))
        self.top = self.base / "ws"
        (self.top / "sub").mkdir(parents=True)
        (self.top / "link").symlink_to("sub")
        self.expected = {path: f"first {path}" for path in PATHS}
        for path, text in self.expected.items():
            (self.top / path).write_text(text)
        self.default, self.tools, self.conditions = default, tools, rules
        made: list[Any] = [Rule(word, path=path, tools=None if tool is None else [tool]) for word, path, tool in rules]
        policy: SecurityPolicy = SecurityPolicy(default, tools, made)
        self.asked: list[ApprovalRequest] = []
        self.answer: Any = Deny()
        self.meanwhile: str | None = None
        self.times = 0
        self.toolkit = create_agent_toolkit(
            ToolkitContext(workspace=self.top, policy=policy, state_dir=self.base / "state", approver=self.approve)
        )

    def teardown(self) -> None:
        if hasattr(self, "toolkit"):
            self.toolkit.close()
            shutil.rmtree(self.base)

    def approve(self, request: ApprovalRequest) -> Any:
        self.asked.append(request)
        if self.meanwhile is not None:
            self.times += 1
            self.expected[self.meanwhile] = f"theirs {self.times}"
            (self.top / self.meanwhile).write_text(self.expected[self.meanwhile])
        # An edit is asked about again if the policy asks about what it became.
        return self.answer if len(self.asked) == 1 else Approve()

    def decide(self, tool: str, path: str) -> str:
        """A deny rule is final, then come ask rules, then allow rules, then the tool's own entry, then the default."""
        found = {word for word, of, only in self.conditions if of == path and only in (None, tool)}
        return next((word for word in ("deny", "ask", "allow") if word in found), self.tools.get(tool, self.default))

    def call(self, tool: str, path: str, text: str) -> str | None:
        """What was read, or that it was written; None if the call did not run."""
        self.asked.clear()
        try:
            if tool == "read_file":
                return str(self.toolkit.tools.read_file(path=path).content)
            self.toolkit.tools.write_file(path=path, content=text)
        except InternalError:
            raise
        except ToolkitError:
            return None
        return "written"

    @rule(tool=st.sampled_from(TOOLS), path=paths, spelling=st.sampled_from(SPELLINGS), edited=paths, theirs=st.none() | paths, answer=st.sampled_from(["approve", "deny", "edit", "respond"]))  # fmt: skip
    def make_call(self, tool: str, path: str, spelling: str, edited: str, theirs: str | None, answer: str) -> None:
        decision, given = self.decide(tool, path), spelling.format(path)
        self.meanwhile = theirs
        content = {"content": "new text"} if tool == "write_file" else {}
        edit = Edit({"path": edited, **content})
        self.answer = {"approve": Approve(), "deny": Deny("no"), "edit": edit, "respond": Respond("not an output")}[
            answer
        ]
        before = dict(self.expected)

        ran = self.call(tool, given, "new text")

        assert decision == "ask" or not self.asked or answer == "edit", "it asked without being told to"
        if decision == "deny":
            assert ran is None and not self.asked, "denied, but it ran or somebody was asked"
            return
        if decision == "ask":
            assert self.asked, "it ran without being asked about"
            assert str(self.asked[0].arguments.path) == given, "something else was shown"  # type: ignore[attr-defined]
        self.check_effect(
            tool, path if decision == "allow" or answer != "edit" else edited, ran, decision, answer, before
        )

    def check_effect(
        self, tool: str, path: str, ran: str | None, decision: str, answer: str, before: dict[str, str]
    ) -> None:
        """``path`` is what may have been touched."""
        if ran is None:
            return
        if decision == "ask":
            assert answer in ("approve", "edit"), "it ran although nobody said so"
            assert self.decide(tool, path) != "deny", "an edit led to what is denied"
            last = self.asked[-1]
            # Who edits a call has approved what it became: it is judged, but not asked about again.
            if self.decide(tool, path) == "ask" and answer == "approve":
                assert str(last.arguments.path).endswith(path), "what ran was not what was shown last"  # type: ignore[attr-defined]
                assert self.meanwhile != path, "an approval covered a file that had changed since"
        if tool == "write_file":
            self.expected[path] = "new text"
        else:
            assert self.expected[path] in ran or before[path] in ran, "another file was read"

    @invariant()
    def only_what_ran_changed_files(self) -> None:
        if hasattr(self, "top"):
            assert {path: (self.top / path).read_text() for path in PATHS} == self.expected


BOUNDED: Final = settings(
    max_examples=20,
    stateful_step_count=8,
    phases=(Phase.generate,),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
WHOLE: Final = settings(max_examples=60, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.slow
def test_nothing_goes_past_the_policy(everything: bool) -> None:
    run_state_machine_as_test(NothingPastThePolicy, settings=WHOLE if everything else BOUNDED)
