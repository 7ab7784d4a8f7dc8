"""Spec files, YAML and JSON."""

from __future__ import annotations

import dataclasses
import json

from toolkit.errors import SpecError
from toolkit.schema.problems import Problems, Unreadable
from toolkit.schema.spec import ToolSpec
from toolkit.schema.spec_files import load_spec_text
from toolkit.schema.spec_text import read_json


def check_spec(data: bytes) -> None:
    """Specs, or ``SpecError`` with a message and a place for each mistake; JSON written again is the same spec."""
    text = data.decode(errors="replace")
    for source in ("fuzz.yaml", "fuzz.json"):
        specs = _load(text, source)
        if specs is not None and source.endswith(".json"):
            again = json.dumps(read_json(text, Problems(source)), indent=1)
            assert _essence(specs) == _essence(_load(again, source)), "written again, it is another spec"


def _load(text: str, source: str) -> list[ToolSpec] | None:
    try:
        return load_spec_text(text, source, None)
    except SpecError as error:
        assert str(error).startswith(f"{source}:"), "an error says where"
        return None
    except Unreadable as error:
        raise AssertionError("only SpecError leaves the loader") from error


def _essence(specs: list[ToolSpec] | None) -> list[str] | None:
    return None if specs is None else [repr(dataclasses.asdict(spec)) for spec in specs]
