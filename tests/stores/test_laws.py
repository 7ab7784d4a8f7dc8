"""The stores in files, in memory and in Redis pass the same laws; so do async ones."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.stores.redis_server import OwnRedis
from toolkit.stores import (
    AsyncOutputCache,
    AsyncRedisStores,
    CachedOutput,
    FileApprovalStore,
    FileOutputCache,
    FileTodoStore,
    FileWriteLocks,
    MemoryTodoStore,
    OutputCache,
    RedisOutputCache,
    RedisStores,
    not_kept,
    wait_for,
)
from toolkit.testing import ApprovalStoreLaws, OutputCacheLaws, TodoStoreLaws, WriteLockLaws

T = TypeVar("T")


class InFiles:
    """Two objects over one folder."""

    kind: Callable[[str], Any]

    @pytest.fixture
    def store(self, tmp_path: Path) -> Any:
        return type(self).kind(str(tmp_path))

    @pytest.fixture
    def other_store(self, tmp_path: Path) -> Any:
        return type(self).kind(str(tmp_path))


class TestTodosInMemory(TodoStoreLaws):
    @pytest.fixture
    def store(self) -> MemoryTodoStore:
        return MemoryTodoStore()


class TestTodosInFiles(InFiles, TodoStoreLaws):
    kind = FileTodoStore


class TestApprovalsInFiles(InFiles, ApprovalStoreLaws):
    kind = FileApprovalStore


class TestLocksInFiles(InFiles, WriteLockLaws):
    kind = FileWriteLocks


class TestOutputsInFiles(InFiles, OutputCacheLaws):
    kind = FileOutputCache


class InRedis:
    """Two sets of stores over one server, under a prefix of their own."""

    part: str

    @pytest.fixture
    def prefix(self) -> str:
        return f"test-{secrets.token_hex(4)}"

    @pytest.fixture
    def store(self, shared_redis: OwnRedis, prefix: str) -> Iterator[Any]:
        with RedisStores(shared_redis.url, prefix=prefix, timeout=60) as stores:
            yield getattr(stores, self.part)

    @pytest.fixture
    def other_store(self, shared_redis: OwnRedis, prefix: str) -> Iterator[Any]:
        with RedisStores(shared_redis.url, prefix=prefix, timeout=60) as stores:
            yield getattr(stores, self.part)


class TestTodosInRedis(InRedis, TodoStoreLaws):
    part = "todos"


class TestApprovalsInRedis(InRedis, ApprovalStoreLaws):
    part = "approvals"


class TestLocksInRedis(InRedis, WriteLockLaws):
    part = "locks"


class TestOutputsInRedis(InRedis, OutputCacheLaws):
    part = "outputs"

    def test_a_session_keeps_its_newest_outputs(self, shared_redis: OwnRedis, prefix: str) -> None:
        """It makes room for itself, and not at the cost of others."""
        with RedisStores(shared_redis.url, prefix=prefix, timeout=60) as stores:
            cache = RedisOutputCache(stores.server, max_bytes_per_session=100_000)
            others = cache.put("another", b"x" * 90_000, tool="t")
            refs = [cache.put("s", b"%d" % number * 30_000, tool="t") for number in range(5)]
            assert None not in (others, *refs)
            for ref in refs[:2]:
                with pytest.raises(Exception, match="no output is stored"):
                    cache.open("s", str(ref))
            assert [cache.open("s", str(ref)).size for ref in refs[2:]] == [30_000] * 3
            assert cache.open("another", str(others)).size == 90_000
            assert cache.put("s", b"x" * 100_001, tool="t") is None
            with shared_redis.client() as client:
                total = sum(
                    client.strlen(key) for key in client.scan_iter(f"{prefix}:*") if client.type(key) == b"string"
                )
                assert total == 180_000
                assert all(client.pttl(key) > 0 for key in client.scan_iter(f"{prefix}:*"))


class InAsyncRedis(InRedis):
    @pytest.fixture
    def store(self, shared_redis: OwnRedis, prefix: str) -> Iterator[Any]:
        stores = AsyncRedisStores(shared_redis.url, prefix=prefix, timeout=60)
        yield getattr(stores, self.part)
        wait_for(stores.close())

    @pytest.fixture
    def other_store(self, shared_redis: OwnRedis, prefix: str) -> Iterator[Any]:
        stores = AsyncRedisStores(shared_redis.url, prefix=prefix, timeout=60)
        yield getattr(stores, self.part)
        wait_for(stores.close())


class TestTodosInAsyncRedis(InAsyncRedis, TodoStoreLaws):
    part = "todos"


class TestApprovalsInAsyncRedis(InAsyncRedis, ApprovalStoreLaws):
    part = "approvals"


class TestLocksInAsyncRedis(InAsyncRedis, WriteLockLaws):
    part = "locks"


class OwnCache(OutputCache):
    """What a user writes, with public names only."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], CachedOutput] = {}

    def put(self, session_id: str, data: bytes | str, *, tool: str, media_type: str | None = None) -> str | None:
        ref = secrets.token_urlsafe(24)
        self.kept[session_id, ref] = CachedOutput.of(data, tool=tool, media_type=media_type)
        return ref

    def open(self, session_id: str, ref: str) -> CachedOutput:
        found = self.kept.get((session_id, ref))
        if found is None:
            raise not_kept()
        return found

    def close(self) -> None:
        pass


class OwnAsyncCache(AsyncOutputCache):
    def __init__(self) -> None:
        self.cache = OwnCache()

    async def put(self, session_id: str, data: bytes | str, *, tool: str, media_type: str | None = None) -> str | None:
        return self.cache.put(session_id, data, tool=tool, media_type=media_type)

    async def open(self, session_id: str, ref: str) -> CachedOutput:
        return self.cache.open(session_id, ref)

    async def close(self) -> None:
        pass


class TestOwnOutputs(OutputCacheLaws):
    @pytest.fixture(params=[OwnCache, OwnAsyncCache])
    def store(self, request: pytest.FixtureRequest) -> Any:
        return request.param()
