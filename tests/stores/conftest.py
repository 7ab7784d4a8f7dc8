"""Redis servers for tests: one for those that only use it, others for those that break it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.runtime.conftest import make_door as make_door
from tests.stores.redis_server import OwnRedis


@pytest.fixture(scope="session")
def shared_redis() -> Iterator[OwnRedis]:
    server = OwnRedis()
    yield server
    server.close()


@pytest.fixture
def own_redis() -> Iterator[OwnRedis]:
    server = OwnRedis()
    yield server
    server.close()
