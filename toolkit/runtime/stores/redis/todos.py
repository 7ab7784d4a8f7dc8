"""Todo lists in Redis: one string per session, as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from toolkit.runtime.stores.output_files import DAY
from toolkit.runtime.stores.redis.server import AsyncRedisServer, LuaScript, RedisKeys, RedisRequest, RedisServer
from toolkit.runtime.stores.todos import MAX_TODO_BYTES, Todo, decode_todos, encode_todos

_READ: Final = "the todo list cannot be read"
_SAVE: Final = "the todo list could not be saved"

_SWAP: Final = LuaScript("""
local found = redis.call('GET', KEYS[1])
if (found or '') ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
return 1
""")


class _TodoRequests:
    """What is asked of the server."""

    def __init__(self, keys: RedisKeys, max_age_seconds: float, max_bytes: int) -> None:
        self._keys: Final = keys
        self._milliseconds: Final = int(max_age_seconds * 1000)
        self._max_bytes: Final = max_bytes

    def get(self, session_id: str) -> RedisRequest:
        return RedisRequest(("GET", self._keys.of(session_id, "todos")))

    def set(self, session_id: str, todos: Sequence[Todo]) -> RedisRequest:
        data = encode_todos(todos, self._max_bytes)
        return RedisRequest(("SET", self._keys.of(session_id, "todos"), data, "PX", self._milliseconds))

    def swap(self, session_id: str, found: bytes | None, todos: Sequence[Todo]) -> RedisRequest:
        data = encode_todos(todos, self._max_bytes)
        return RedisRequest((found or b"", data, self._milliseconds), _SWAP, (self._keys.of(session_id, "todos"),))


class RedisTodoStore:
    """Todo lists in Redis, for any number of machines.

    :param max_age_seconds: how long a list is kept after it was last written.
    :param max_bytes: how long the list of one session may be, as JSON.
    """

    def __init__(
        self, server: RedisServer, *, max_age_seconds: float = 7 * DAY, max_bytes: int = MAX_TODO_BYTES
    ) -> None:
        self._server: Final = server
        self._requests: Final = _TodoRequests(server.keys, max_age_seconds, max_bytes)

    def read(self, session_id: str) -> list[Todo]:
        return decode_todos(self._server.run(self._requests.get(session_id), _READ))

    def write(self, session_id: str, todos: Sequence[Todo]) -> None:
        self._server.run(self._requests.set(session_id, todos), _SAVE)

    def swap(self, session_id: str, expected: Sequence[Todo], todos: Sequence[Todo]) -> bool:
        found = self._server.run(self._requests.get(session_id), _READ)
        if decode_todos(found) != list(expected):
            return False
        return bool(self._server.run(self._requests.swap(session_id, found, todos), _SAVE))


class AsyncRedisTodoStore:
    """``RedisTodoStore``, awaited."""

    def __init__(
        self, server: AsyncRedisServer, *, max_age_seconds: float = 7 * DAY, max_bytes: int = MAX_TODO_BYTES
    ) -> None:
        self._server: Final = server
        self._requests: Final = _TodoRequests(server.keys, max_age_seconds, max_bytes)

    async def read(self, session_id: str) -> list[Todo]:
        return decode_todos(await self._server.run(self._requests.get(session_id), _READ))

    async def write(self, session_id: str, todos: Sequence[Todo]) -> None:
        await self._server.run(self._requests.set(session_id, todos), _SAVE)

    async def swap(self, session_id: str, expected: Sequence[Todo], todos: Sequence[Todo]) -> bool:
        found = await self._server.run(self._requests.get(session_id), _READ)
        if decode_todos(found) != list(expected):
            return False
        return bool(await self._server.run(self._requests.swap(session_id, found, todos), _SAVE))
