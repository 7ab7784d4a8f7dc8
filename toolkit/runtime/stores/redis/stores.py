"""Every store in one Redis server."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Self

from toolkit.runtime.stores.keys import APPROVAL_STORE, OUTPUT_CACHE, TODO_STORE, WRITE_LOCKS
from toolkit.runtime.stores.redis.approvals import AsyncRedisApprovalStore, RedisApprovalStore
from toolkit.runtime.stores.redis.locks import AsyncRedisWriteLocks, RedisWriteLocks
from toolkit.runtime.stores.redis.outputs import RedisOutputCache
from toolkit.runtime.stores.redis.server import TIMEOUT, AsyncRedisServer, RedisServer
from toolkit.runtime.stores.redis.todos import AsyncRedisTodoStore, RedisTodoStore

if TYPE_CHECKING:
    import redis
    import redis.asyncio


class RedisStores:
    """The stores of this application in Redis, for any number of processes and machines.

    They connect when they are first used. One object serves all toolkits of a process; it is closed by its owner.

    >>> stores = RedisStores("redis://localhost:6379/0", prefix="acme")
    >>> sorted(stores.overrides())
    ['approval_store', 'output_cache', 'todo_store']
    >>> stores.close()

    :param server: a URL, or a client of redis-py; see ``RedisServer``.
    :param prefix: the first word of all keys.
    :param timeout: seconds for connecting, for each answer, and for a free connection.
    """

    def __init__(self, server: str | redis.Redis, *, prefix: str = "toolkit", timeout: float = TIMEOUT) -> None:
        self.server: Final = RedisServer(server, prefix=prefix, timeout=timeout)
        self.outputs: Final = RedisOutputCache(self.server)
        self.todos: Final = RedisTodoStore(self.server)
        self.approvals: Final = RedisApprovalStore(self.server)
        self.locks: Final = RedisWriteLocks(self.server)

    def overrides(self, *, files: str | None = None) -> dict[str, Callable[..., Any]]:
        """For ``ToolkitContext(overrides=...)``: outputs, todos and approvals of its toolkits are kept here.

        :param files: a name for the files of the workspace, if several machines share them. Give the same name on each of
            them: the file tools then hold a lock here around every change.
        """
        made: dict[str, Callable[..., Any]] = {
            OUTPUT_CACHE.id: lambda: self.outputs,
            TODO_STORE.id: lambda: self.todos,
            APPROVAL_STORE.id: lambda: self.approvals,
        }
        if files is not None:
            locks = RedisWriteLocks(self.server, of=files)
            made[WRITE_LOCKS.id] = lambda: locks
        return made

    def close(self) -> None:
        """Closes the connections; what is kept stays."""
        self.server.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class AsyncRedisStores:
    """Todos, approvals and locks in Redis, awaited. Outputs are read piece by piece in threads: ``RedisStores`` has them.

    Connections belong to the event loop that uses them: ``await stores.close()`` in each.
    """

    def __init__(self, server: str | redis.asyncio.Redis, *, prefix: str = "toolkit", timeout: float = TIMEOUT) -> None:
        self.server: Final = AsyncRedisServer(server, prefix=prefix, timeout=timeout)
        self.todos: Final = AsyncRedisTodoStore(self.server)
        self.approvals: Final = AsyncRedisApprovalStore(self.server)
        self.locks: Final = AsyncRedisWriteLocks(self.server)

    async def close(self) -> None:
        """Closes the connections of the running event loop; what is kept stays."""
        await self.server.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()
