"""Whether a plain ``model_dump()`` of a generated model is a value that its schema accepts and its class reads back."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from tests.corpus.instances import instances
from tests.corpus.oracle import Oracle
from tests.corpus.specs import outcome
from tests.modules import load_module
from toolkit.runtime.call.reader import Reader

DUMPS: Final[dict[str, Callable[[BaseModel], Any]]] = {
    "model_dump()": lambda made: made.model_dump(),
    'model_dump(mode="json")': lambda made: made.model_dump(mode="json"),
    "model_dump_json()": lambda made: json.loads(made.model_dump_json()),
    "model_dump() of a deep copy": lambda made: made.model_copy(deep=True).model_dump(),
}


@dataclass(slots=True)
class ReadBack:
    """The result for one tool: how many instances were dumped, and what did not read back."""

    dumped: int = 0
    failures: list[str] = field(default_factory=list)

    @property
    def reads_back(self) -> bool:
        return not self.failures


def read_back(row: dict[str, Any]) -> ReadBack | None:
    """Dumps the valid instances of a shared spec in every plain way; None if the spec is not served."""
    made = outcome(row)
    if made.text is None:
        return None
    module, result = load_module(made.text), ReadBack()
    for word, model in (("inputSchema", module.XInput), ("outputSchema", module.XOutput)):
        if row.get(word) is not None:
            for value, parsed in _valid_models(row[word], f"{row['key']} {word}", Reader(model)):
                result.dumped += 1
                result.failures += _failures(Oracle(row[word]), Reader(model), parsed, f"{row['key']} {word} {value}")
    return result


def _valid_models(schema: Any, key: str, reader: Reader) -> Iterator[tuple[str, BaseModel]]:
    for instance in instances(schema, key):
        if instance.verdict.accepted:
            try:
                yield json.dumps(instance.value)[:200], reader.from_wire(instance.value)
            except ValidationError:
                continue  # a difference that ``meaning`` reports


def _failures(oracle: Oracle, reader: Reader, made: BaseModel, what: str) -> Iterator[str]:
    for way, dump in DUMPS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            data = dump(made)
        if not oracle.verdict(data).accepted:
            yield f"{what}: {way} is {json.dumps(data)[:300]}, which its schema refuses"
            continue
        try:
            same = reader.from_wire(data) == made
        except ValidationError as error:
            yield f"{what}: {way} is {json.dumps(data)[:300]}, which its class refuses: {error}"
        else:
            if not same:
                yield f"{what}: {way} is {json.dumps(data)[:300]}, which reads as another value"
