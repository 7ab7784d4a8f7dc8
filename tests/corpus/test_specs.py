"""The modules generated from real specs can be imported."""

from __future__ import annotations

from pathlib import Path

import pytest

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
    # The rest is refused with a reason, which `make corpus` counts.
    assert texts
    reasons = [str(item.reason) for item in made if item.text is None]
    assert not [reason for reason in reasons if not reason or "did not return the expected classes" in reason]
