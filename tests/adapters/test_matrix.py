"""``docs/adapters.md`` shows what the adapters do."""

from __future__ import annotations

import pytest

from tests.adapters.matrix import ADAPTERS, document
from tests.projects import REPOSITORY

EXPORTED = {
    "Accumulator", "decode_choice", "decode_messages", "decode_response", "decode_tools", "encode_choice", "encode_messages",
    "encode_tools",
}  # fmt: skip


def test_the_document_is_what_the_adapters_do(pytestconfig: pytest.Config) -> None:
    file = REPOSITORY / "docs" / "adapters.md"
    if pytestconfig.getoption("--update-snapshots"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(document())
    assert file.read_text() == document(), (
        "run pytest tests/adapters/test_matrix.py --update-snapshots and read the diff"
    )


def test_every_adapter_is_in_it_and_exports_the_same_names() -> None:
    folders = {file.parent.name for file in (REPOSITORY / "toolkit" / "adapters").glob("*/content.py")}
    assert {adapter.module for adapter in ADAPTERS} == folders
    for adapter in ADAPTERS:
        assert set(adapter.__all__) >= EXPORTED, adapter.module
