"""A plain dump of a model generated from a real spec reads back."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from tests.corpus.plain_dumps import read_back
from tests.corpus.specs import FILES, rows

SAMPLE_EVERY = {"bfcl.jsonl": 40, "cookbooks.jsonl": 4, "mcp.jsonl": 25, "openapi_ops.jsonl": 4}


def test_plain_dumps_read_back(corpus: Path, everything: bool) -> None:
    found = [
        result
        for file in FILES
        for row in islice(rows(corpus, file), 0, None, 1 if everything else SAMPLE_EVERY[file])
        if (result := read_back(row)) is not None
    ]
    assert sum(result.dumped for result in found) > 2_000
    failures = [text for result in found for text in result.failures]
    assert not failures, "\n".join(failures[:20])
