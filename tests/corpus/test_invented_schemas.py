"""Random schemas are generated or refused with a reason, and the generated models agree with JSON Schema."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from tests.corpus.instances import instances
from tests.corpus.meaning import ARGUMENTS, compare
from tests.corpus.schemas import schema
from tests.findings import short_forms
from tests.modules import load_module, module_text
from toolkit.errors import SpecError
from toolkit.runtime.arguments import Reader


def made(invented: dict[str, Any], *, is_input: bool) -> type[BaseModel] | None:
    """The model of a schema; None if it is refused. Every refusal names a place."""
    try:
        text = module_text(invented) if is_input else module_text({"type": "object"}, invented)
    except SpecError as error:
        assert all(" @ x.json:/" in problem for problem in short_forms(error))
        return None
    model: type[BaseModel] = getattr(load_module(text), "XInput" if is_input else "XOutput")
    return model


def test_invented_schemas_mean_what_they_say(everything: bool) -> None:
    judged = refused = 0
    for seed in map(str, range(3000 if everything else 60)):
        invented = schema(seed)
        # The loader accepts no other type for arguments.
        for is_input in [True, False] if invented.get("type", "object") == "object" else [False]:
            model = made(invented, is_input=is_input)
            if model is None:
                refused += 1
                continue
            for instance in instances(invented, seed):
                judged += 1
                seen = dict(compare(Reader(model), instance, is_input=is_input))
                assert seen.keys() <= {ARGUMENTS}, (seed, instance, seen)
    assert judged > 50 * refused


def test_the_same_seed_invents_the_same_schema() -> None:
    assert schema("7") == schema("7") != schema("8")
