"""No keyword of JSON Schema is ignored silently: every group of the suite is refused with a reason or gets the right verdicts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from jsonschema import Draft7Validator, Draft201909Validator, Draft202012Validator
from jsonschema_specifications import REGISTRY

from tests.corpus.suite import EXCEPTIONS, Result
from tests.corpus.suite_report import document, results
from tests.projects import REPOSITORY
from toolkit.codegen.schema.keywords import ANNOTATION, ENFORCED, REFUSED, TYPED

# One worker for all of them: the results take ten seconds to compute.
pytestmark = pytest.mark.xdist_group("suite")
DOCUMENT = REPOSITORY / "docs" / "json-schema.md"


@pytest.fixture(scope="module")
def found(corpus: Path) -> list[Result]:
    return results(corpus)


def test_every_group_is_refused_or_wholly_right(found: list[Result]) -> None:
    wrong = [result for result in found if result.wrong and result.group.exception is None]
    assert len(found) > 1000
    assert not wrong, "\n".join(f"{r.group.draft} {r.group.file}: {r.group.description}: {r.wrong}" for r in wrong)


def test_only_references_elsewhere_are_refused_and_with_a_reason(found: list[Result]) -> None:
    refused = [result for result in found if result.how == "refused"]
    assert {result.group.file for result in refused} <= {
        "dynamicRef", "optional/cross-draft", "refRemote", "vocabulary",
    }  # fmt: skip
    for result in refused:
        assert re.search("read from elsewhere|Retrieval is disabled|meta-schema", str(result.sentence)), result
        assert "(/outputSchema" in str(result.sentence), result


def test_exceptions_are_still_needed(found: list[Result]) -> None:
    needed = {(result.group.file, result.group.description) for result in found if result.wrong}
    assert set(EXCEPTIONS) == needed


def test_the_document_is_what_the_generator_does(found: list[Result], pytestconfig: pytest.Config) -> None:
    if pytestconfig.getoption("--update-snapshots"):
        DOCUMENT.write_text(document(found), encoding="utf-8")
    assert DOCUMENT.read_text(encoding="utf-8") == document(found), (
        "run pytest tests/corpus/test_suite.py --update-snapshots and read the diff"
    )


@pytest.mark.parametrize("draft", [Draft7Validator, Draft201909Validator, Draft202012Validator])
def test_every_keyword_of_the_drafts_has_one_kind(draft: type[Draft202012Validator]) -> None:
    words = set(draft.META_SCHEMA.get("properties", ()))
    for part in draft.META_SCHEMA.get("allOf", ()):
        words |= set(REGISTRY.resolver(draft.META_SCHEMA["$id"]).lookup(part["$ref"]).contents.get("properties", ()))
    rows = [TYPED, ENFORCED, ANNOTATION, frozenset(REFUSED)]
    assert len(words) > 40
    assert not {word for word in words if sum(word in row for row in rows) != 1}
