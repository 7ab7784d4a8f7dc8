"""Our client in the scenarios that the official suite requires of every client, each revision at its own wire version.

``make test`` runs one of each revision, ``make test-all`` all: a scenario costs the start of node and of a Python with the
official client. Everything is on the loopback; only npm, once, is not.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance_suite import Suite, find_suite

pytestmark = pytest.mark.slow

CLIENT = "tests.packs.conformance.client"

FOR_BOTH = [
    "tools_call",
    "auth/metadata-default",
    "auth/metadata-var1",
    "auth/metadata-var2",
    "auth/metadata-var3",
    "auth/basic-cimd",
    "auth/scope-from-www-authenticate",
    "auth/scope-from-scopes-supported",
    "auth/scope-omitted-when-undefined",
    "auth/scope-step-up",
    "auth/scope-retry-limit",
    "auth/token-endpoint-auth-basic",
    "auth/token-endpoint-auth-post",
    "auth/token-endpoint-auth-none",
    "auth/pre-registration",
]
REQUIRED = {
    "2025-11-25": [*FOR_BOTH, "initialize", "elicitation-sep1034-client-defaults", "sse-retry"],
    "2026-07-28": [
        *FOR_BOTH,
        "request-metadata",
        "auth/resource-mismatch",
        "auth/offline-access-scope",
        "auth/offline-access-not-supported",
        "auth/authorization-server-migration",
        "auth/iss-supported",
        "auth/iss-not-advertised",
        "auth/iss-supported-missing",
        "auth/iss-wrong-issuer",
        "auth/iss-unexpected",
        "auth/iss-normalized",
        "auth/metadata-issuer-mismatch",
        "sep-2322-client-request-state",
        "http-standard-headers",
        "http-custom-headers",
        "http-invalid-tool-headers",
        "json-schema-ref-no-deref",
    ],
}
IN_EVERY_RUN = {
    ("2025-11-25", "sse-retry"),
    ("2026-07-28", "auth/scope-step-up"),
}
ALSO_PASSED = [
    ("2025-03-26", "auth/2025-03-26-oauth-metadata-backcompat"),
    ("2025-03-26", "auth/2025-03-26-oauth-endpoint-fallback"),
    ("2025-11-25", "json-schema-2020-12-preservation"),
    ("2026-07-28", "json-schema-2020-12-preservation"),
]
"""Scenarios that no list of requirements has: of an older revision, and newer than the lists."""
NOT_PASSED = {
    "auth/client-credentials-jwt": "a login of a program without a person: send its token in 'headers' instead",
    "auth/client-credentials-basic": "a login of a program without a person: send its token in 'headers' instead",
    "auth/enterprise-managed-authorization": "needs a token of the company's identity provider, which nobody hands us",
    "auth/wif-jwt-bearer": "needs a token of the workload's platform, which nobody hands us",
    "auth/dpop": "the official client that we use does not bind tokens to a key",
    "auth/dpop-nonce": "the official client that we use does not bind tokens to a key",
}
"""Scenarios of extensions, which no revision requires, and why our client does not pass them."""
NOT_CONCERNED = {
    "sep-2640-client-no-prefetch",
    "sep-2640-client-verify-digest",
    "sep-2640-client-verify-size",
    "sep-2640-client-verify-frontmatter",
}
"""Scenarios of an extension that we do not have (skills): the suite judges nothing about a client that loads none."""


@pytest.fixture(scope="session")
def suite(request: pytest.FixtureRequest) -> Suite:
    return find_suite(request)


@pytest.mark.parametrize(
    ("revision", "scenario"),
    [
        pytest.param(revision, name, marks=[] if (revision, name) in IN_EVERY_RUN else pytest.mark.whole)
        for revision, names in REQUIRED.items()
        for name in names
    ],
)
def test_a_required_scenario_passes(suite: Suite, revision: str, scenario: str, tmp_path: Path) -> None:
    wrong = suite.run_client(CLIENT, scenario, revision, tmp_path)
    assert not wrong, wrong


@pytest.mark.whole
@pytest.mark.parametrize(("revision", "scenario"), ALSO_PASSED)
def test_a_scenario_outside_the_lists_passes(suite: Suite, revision: str, scenario: str, tmp_path: Path) -> None:
    wrong = suite.run_client(CLIENT, scenario, revision, tmp_path)
    assert not wrong, wrong


@pytest.mark.parametrize("revision", REQUIRED)
def test_the_table_of_required_scenarios_is_that_of_the_suite(suite: Suite, revision: str) -> None:
    assert sorted(REQUIRED[revision]) == sorted(suite.required("client", revision))


def test_every_scenario_of_the_suite_is_in_a_table(suite: Suite) -> None:
    passed = {name for names in REQUIRED.values() for name in names} | {name for _, name in ALSO_PASSED}
    assert passed | NOT_PASSED.keys() | NOT_CONCERNED == set(suite.listed("client"))


@pytest.mark.whole
@pytest.mark.parametrize("scenario", NOT_PASSED)
def test_what_is_listed_as_not_passed_does_not_pass(suite: Suite, scenario: str, tmp_path: Path) -> None:
    assert suite.run_client(CLIENT, scenario, "2025-11-25", tmp_path), "it passes now: require it above"
