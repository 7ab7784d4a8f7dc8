"""The table of ``make corpus``: every refusal and failure is counted in its row, and named."""

from __future__ import annotations

from tests.corpus.project import SharedTool
from tests.corpus.proof import Proof
from tests.corpus.report import table


def shared(file: str, name: str) -> SharedTool:
    return SharedTool(file, f"key of {name}", "origin", name, {"name": name})


def test_refusals_and_failures_are_counted_and_named() -> None:
    proof = Proof(
        [shared("mcp.jsonl", name) for name in ("good", "refused", "broken")] + [shared("bfcl.jsonl", "wrong")]
    )
    proof.refused = {"refused": "it cannot be expressed in Python"}
    proof.not_imported = {"broken": "NameError()"}
    proof.errors = {
        "mypy": [("wrong", "no overload"), ("facade.py", "no such name")],
        "pyright": [("wrong", "no overload")],
    }
    proof.disagreements = {"good": [], "wrong": ["call: 1 arrived as 2"]}
    lines = table(proof)
    assert [line.split() for line in lines[1:6]] == [
        ["bfcl.jsonl", "1", "1", "1", "1", "1", "0", "1", "0.00", "%"],
        ["cookbooks.jsonl", "0", "0", "0", "0", "0", "0", "0", "-"],
        ["mcp.jsonl", "3", "2", "1", "0", "0", "1", "1", "100.00", "%"],
        ["openapi_ops.jsonl", "0", "0", "0", "0", "0", "0", "0", "-"],
        ["all", "4", "3", "2", "2", "1", "1", "2", "50.00", "%"],
    ]
    assert "refused: refused: it cannot be expressed in Python" in lines
    assert "failed: mypy: facade.py: no such name" in lines
    assert "failed: wrong: call: 1 arrived as 2" in lines
    assert "failed: broken cannot be imported or refuses valid arguments: NameError()" in lines
