"""Every kept input passes its target: what a fuzzer found once does not come back."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.targets import CORPUS, MAX_INPUT, TARGETS, kept_inputs, load_target

INPUTS = [(target, file) for target in TARGETS for file in kept_inputs(target)]


@pytest.mark.every_row
@pytest.mark.parametrize(("target", "file"), INPUTS, ids=[f"{target}/{file.name}" for target, file in INPUTS])
def test_a_kept_input_breaks_no_property(target: str, file: Path) -> None:
    load_target(target)(file.read_bytes())


def test_every_target_has_inputs_and_every_input_a_target() -> None:
    assert {folder.name for folder in CORPUS.iterdir()} == set(TARGETS)
    assert all(sum(1 for _ in kept_inputs(target)) >= 10 for target in TARGETS)
    assert max(file.stat().st_size for _, file in INPUTS) <= MAX_INPUT
