"""Our server in the scenarios of the official suite, each revision at its own wire version.

The tools that scenarios call are those of ``project``. One process of node runs all scenarios of a revision, so they are
judged in every run. What we do not pass is listed with its reason and with the checks that fail: the other checks of such a
scenario must pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import pytest

from tests.conformance_suite import Suite, Verdict

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("serve-conformance")]

Verdicts: TypeAlias = Callable[[str], Mapping[str, Verdict]]

FOR_BOTH = [
    "tools-list",
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
    "tools-call-error",
    "tools-call-with-progress",
    "json-schema-2020-12",
    "server-sse-multiple-streams",
    "resources-list",
    "dns-rebinding-protection",
]
PASSED = {
    "2025-11-25": [
        *FOR_BOTH,
        "server-initialize",
        "server-session-lifecycle",
        "ping",
        "logging-set-level",
        "tools-call-with-logging",
        "tools-call-elicitation",  # the policy asks before the tool runs
    ],
    "2026-07-28": [
        *FOR_BOTH,
        "sep-2164-resource-not-found",
        "http-header-validation",
        "http-custom-header-server-validation",
        # Here too the question is that of the policy.
        "input-required-result-missing-input-response",
        "input-required-result-result-type",
        "input-required-result-unsupported-methods",
        "input-required-result-tampered-state",
        "input-required-result-validate-input",
    ],
}


@dataclass(frozen=True)
class Gap:
    """Why a scenario does not pass, and the checks in it that fail."""

    reason: str
    checks: tuple[str, ...]


NO_PROMPTS = "the server has no prompts, by decision: it offers tools"
NO_OTHER_RESOURCES = "the only resources are outputs of calls that were cut; files are read by tools, behind the policy"
NO_SUBSCRIPTIONS = "kept outputs never change, so nobody has to be told of a change"
NO_SAMPLING = "the client's model calls tools; a tool never asks the client's model"
ONLY_APPROVALS = "tools ask nothing by themselves; the one question is whether a call may run, in a form of our own"

NOT_PASSED = {
    "completion-complete": Gap("there is nothing to complete without prompts", ("completion-complete",)),
    "prompts-list": Gap(NO_PROMPTS, ("prompts-list",)),
    "prompts-get-simple": Gap(NO_PROMPTS, ("prompts-get-simple",)),
    "prompts-get-with-args": Gap(NO_PROMPTS, ("prompts-get-with-args",)),
    "prompts-get-embedded-resource": Gap(NO_PROMPTS, ("prompts-get-embedded-resource",)),
    "prompts-get-with-image": Gap(NO_PROMPTS, ("prompts-get-with-image",)),
    "caching": Gap(NO_PROMPTS, ("sep-2549-prompts-list-caching-hints",)),
    "input-required-result-non-tool-request": Gap(NO_PROMPTS, ("sep-2322-non-tool-incomplete",)),
    "resources-read-text": Gap(NO_OTHER_RESOURCES, ("resources-read-text",)),
    "resources-read-binary": Gap(NO_OTHER_RESOURCES, ("resources-read-binary",)),
    "resources-templates-read": Gap(NO_OTHER_RESOURCES, ("resources-templates-read",)),
    "resources-subscribe": Gap(NO_SUBSCRIPTIONS, ("resources-subscribe",)),
    "resources-unsubscribe": Gap(NO_SUBSCRIPTIONS, ("resources-unsubscribe",)),
    "tools-call-sampling": Gap(NO_SAMPLING, ("tools-call-sampling",)),
    "input-required-result-basic-sampling": Gap(NO_SAMPLING, ("sep-2322-sampling-incomplete",)),
    "input-required-result-capability-check": Gap(NO_SAMPLING, ("sep-2322-respect-client-capabilities",)),
    "input-required-result-basic-list-roots": Gap(
        "the folder is chosen where the server is started; a client cannot widen it with roots",
        ("sep-2322-list-roots-incomplete",),
    ),
    "elicitation-sep1034-defaults": Gap(ONLY_APPROVALS, ("elicitation-sep1034-general",)),
    "elicitation-sep1330-enums": Gap(ONLY_APPROVALS, ("elicitation-sep1330-general",)),
    "input-required-result-basic-elicitation": Gap(ONLY_APPROVALS, ("sep-2322-elicitation-incomplete",)),
    "input-required-result-request-state": Gap(ONLY_APPROVALS, ("sep-2322-request-state-incomplete",)),
    "input-required-result-multiple-input-requests": Gap(ONLY_APPROVALS, ("sep-2322-multiple-inputs-incomplete",)),
    "input-required-result-multi-round": Gap(ONLY_APPROVALS, ("sep-2322-multi-round-r1",)),
    "input-required-result-ignore-extra-params": Gap(
        "it answers a question that was never asked; an approval counts only with the sealed state of its question",
        ("sep-2322-ignore-unexpected-params",),
    ),
    "server-stateless": Gap(
        "two checks want a tool that needs sampling, and one a tool that changes the list of tools: here only the policy"
        " file does that, and the suite waits for 1.5 seconds",
        (
            "sep-2575-server-rejects-undeclared-capability",
            "sep-2575-missing-capability-http-400",
            "sep-2575-server-sends-tools-list-changed-on-subscription",
        ),
    ),
    "server-sse-polling": Gap(
        "answers are not stored, so a broken stream cannot be resumed; the suite's own server does not pass it either",
        ("incoming-sse-event", "server-sse-priming-event", "server-sse-retry-field"),
    ),
}
TASKS = [
    "tasks-lifecycle",
    "tasks-capability-negotiation",
    "tasks-wire-fields",
    "tasks-request-state-removal",
    "tasks-mrtr-input",
    "tasks-request-headers",
    "tasks-dispatch-and-envelope",
    "tasks-required-task-error",
    "tasks-mrtr-composition",
]
"""Scenarios of an extension that we do not pass: a call answers when it has ended."""
NOT_CONCERNED = [
    "tasks-status-notifications",
    "sep-2640-skills-directory",
    "sep-2640-skills-enumeration",
    "sep-2640-skills-manifest",
]
"""Scenarios of extensions in which the suite judges nothing, because the server does not announce the extension."""
REVISION_OF_EXTENSIONS = "2026-07-28"


@pytest.fixture(scope="session")
def verdicts(suite: Suite, url: str, tmp_path_factory: pytest.TempPathFactory) -> Verdicts:
    @cache
    def of(revision: str) -> Mapping[str, Verdict]:
        options = ["--suite", "all", "--spec-version", revision]
        return suite.run_server(url, options, tmp_path_factory.mktemp(revision))

    return of


NEWEST = max(PASSED)
REVISIONS = [
    pytest.param(revision, marks=() if revision == NEWEST else pytest.mark.whole, id=revision) for revision in PASSED
]


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_scenario_passes(verdicts: Verdicts, revision: str) -> None:
    found = {scenario: verdicts(revision)[scenario] for scenario in PASSED[revision]}
    assert {scenario: verdict.wrong for scenario, verdict in found.items() if verdict.wrong} == {}
    assert [scenario for scenario, verdict in found.items() if not verdict.is_judged] == []


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_scenario_of_a_revision_is_in_a_table(suite: Suite, verdicts: Verdicts, revision: str) -> None:
    ran = verdicts(revision).keys()
    assert ran == {*PASSED[revision], *(NOT_PASSED.keys() & ran)}
    assert ran >= set(suite.required("server", revision))


def test_every_scenario_of_the_suite_is_in_one_table(suite: Suite) -> None:
    passed = {name for names in PASSED.values() for name in names}
    tables = [*passed, *NOT_PASSED, *TASKS, *NOT_CONCERNED]
    assert sorted(tables) == sorted(suite.listed("server"))


@pytest.mark.whole
@pytest.mark.parametrize("scenario", NOT_PASSED)
def test_what_is_listed_as_not_passed_fails_in_these_checks_only(verdicts: Verdicts, scenario: str) -> None:
    judged = [verdicts(revision)[scenario] for revision in PASSED if scenario in verdicts(revision)]
    assert judged
    for verdict in judged:
        assert sorted(verdict.wrong) == sorted(NOT_PASSED[scenario].checks), verdict.wrong


@pytest.mark.whole
@pytest.mark.parametrize("scenario", [*TASKS, *NOT_CONCERNED])
def test_a_scenario_of_an_extension_does_not_pass(
    suite: Suite, url: str, scenario: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    options = ["--scenario", scenario, "--spec-version", REVISION_OF_EXTENSIONS, "--force"]
    verdict = suite.run_server(url, options, tmp_path_factory.mktemp("extension"))[scenario]
    assert verdict.is_judged == (scenario in TASKS)
    assert bool(verdict.wrong) == (scenario in TASKS), "it passes now: list it above"
