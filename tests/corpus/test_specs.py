"""Real specs from outside: what is generated from them runs and judges real calls as JSON Schema does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from tests.corpus.specs import FILES, outcome, rows
from tests.modules import load_module

SAMPLE_EVERY = 20


@pytest.fixture(params=FILES)
def file(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_generated_modules_can_be_imported(corpus: Path, file: str, everything: bool) -> None:
    made = [outcome(row) for index, row in enumerate(rows(corpus, file)) if everything or index % SAMPLE_EVERY == 0]
    texts = [item.text for item in made if item.text is not None]
    for text in texts:
        module = load_module(text)
        assert {"XInput", "XOutput", "XArgs"} <= set(module.__dict__)
    # The rest is refused with a sentence, which `make corpus` counts.
    assert texts
    reasons = [str(item.reason) for item in made if item.text is None]
    assert not [reason for reason in reasons if not reason or "the generator made other classes" in reason]


def test_real_calls_get_the_verdict_of_json_schema(corpus: Path, everything: bool) -> None:
    calls = list(rows(corpus, "bfcl_calls.jsonl"))
    wanted = {call["tool_key"] for call in calls}
    known = [row for row in rows(corpus, "bfcl.jsonl") if row["key"] in wanted]
    sample = {row["key"]: outcome(row) for index, row in enumerate(known) if everything or index % SAMPLE_EVERY == 0}
    models = {key: load_module(item.text).XInput for key, item in sample.items() if item.text is not None}
    judged, differing = 0, []
    for call in (call for call in calls if call["tool_key"] in models):
        judged += 1
        try:
            models[call["tool_key"]].model_validate(call["arguments"])
            accepted = True
        except ValidationError:
            accepted = False
        if accepted != call["valid"]:
            differing.append(json.dumps(call))
    assert judged > 50
    assert not differing, "\n".join(differing)
