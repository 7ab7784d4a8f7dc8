"""What tests of packs are given: a service on the loopback, and a context that may reach it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.packs.service import Service, running_service
from toolkit import ToolContext
from toolkit.runtime.standalone import StandaloneContext


@pytest.fixture(scope="session")
def one_service() -> Iterator[Service]:
    with running_service() as service:
        yield service


@pytest.fixture
def service(one_service: Service) -> Service:
    one_service.forget()
    return one_service


@pytest.fixture
def ctx(tmp_path: Path) -> Iterator[StandaloneContext]:
    with ToolContext.standalone(tmp_path) as context:
        yield context
