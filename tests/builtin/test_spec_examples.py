"""The examples in the built-ins' specs are run: what a spec shows is true."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.projects import REPOSITORY
from toolkit import SecurityPolicy, ToolFailed, ToolkitContext, ToolkitError, create_agent_toolkit
from toolkit.spec.load import load_specs
from toolkit.spec.model import SpecExample, ToolSpec

SPECS = load_specs([REPOSITORY / "toolkit" / "builtin"], base=REPOSITORY)
EXAMPLES = [
    pytest.param(spec, example, id=f"{spec.name}-{example.title}") for spec in SPECS for example in spec.examples
]


@pytest.mark.parametrize(("spec", "example"), EXAMPLES)
def test_example(spec: ToolSpec, example: SpecExample, tmp_path: Path) -> None:
    for path, text in example.files.items():
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    with create_agent_toolkit(ToolkitContext(tmp_path, SecurityPolicy(default="allow"))) as toolkit:
        try:
            message = toolkit.execute_raw(spec.name, json.dumps(example.arguments))
        except ToolkitError as error:
            assert example.error in (error.code, error.reason if isinstance(error, ToolFailed) else None)
            return
    assert example.error is None, f"no error, but {message}"
    given: dict[str, Any] = message.content.model_dump(mode="json", by_alias=True, exclude_unset=True)
    assert {key: given[key] for key in example.output or {}} == example.output
    assert message.text()


def test_every_built_in_shows_examples_of_success() -> None:
    assert all(any(example.error is None for example in spec.examples) for spec in SPECS)
