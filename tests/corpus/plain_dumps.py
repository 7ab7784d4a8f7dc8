"""Whether a plain ``model_dump()`` of a generated model is a value that its schema accepts and its class reads back."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from tests.corpus.instances import Instance, instances
from tests.corpus.oracle import Oracle
from tests.corpus.specs import outcome
from tests.modules import load_module
from toolkit.runtime.arguments import Reader

DUMPS: Final[dict[str, Callable[[BaseModel], Any]]] = {
    "model_dump()": lambda made: made.model_dump(),
    'model_dump(mode="json")': lambda made: made.model_dump(mode="json"),
    "model_dump_json()": lambda made: json.loads(made.model_dump_json()),
    "model_dump() of a deep copy": lambda made: made.model_copy(deep=True).model_dump(),
}


@dataclass(slots=True)
class ReadBack:
    """How many instances were dumped, how many of them read back, and what did not; results can be added."""

    dumped: int = 0
    same: int = 0
    failures: list[str] = field(default_factory=list)

    def add(self, other: ReadBack) -> None:
        self.dumped, self.same = self.dumped + other.dumped, self.same + other.same
        self.failures += other.failures


def read_back(row: dict[str, Any]) -> ReadBack | None:
    """Dumps the valid instances of a shared spec in every plain way; None if the spec is not served."""
    made = outcome(row)
    if made.text is None:
        return None
    module, result = load_module(made.text), ReadBack()
    for word, model in (("inputSchema", module.XInput), ("outputSchema", module.XOutput)):
        if row.get(word) is not None:
            key = f"{row['key']} {word}"
            result.add(read_back_instances(row[word], model, instances(row[word], key), key))
    return result


def read_back_instances(schema: Any, model: type[BaseModel], found: Iterable[Instance], key: str) -> ReadBack:
    """Dumps those of the instances that schema and model accept, in every plain way."""
    oracle, reader, result = Oracle(schema), Reader(model), ReadBack()
    for value in (instance.value for instance in found if instance.verdict.accepted):
        try:
            made = reader.from_wire(value)
        except ValidationError:
            continue  # a difference that ``meaning`` reports
        failures = list(_failures(oracle, reader, made, f"{key} {json.dumps(value)[:200]}"))
        result.add(ReadBack(1, not failures, failures))
    return result


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
