"""Write locks in Redis: one string per key, which holds the token of its owner."""

from __future__ import annotations

from typing import Final

from toolkit.runtime.stores.locks import check_seconds, new_token
from toolkit.runtime.stores.redis.server import AsyncRedisServer, LuaScript, RedisKeys, RedisRequest, RedisServer

_FAILED: Final = "the write lock failed"

# A request that is sent twice by a client with retries finds its own token.
_ACQUIRE: Final = LuaScript("""
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end
return redis.call('GET', KEYS[1]) == ARGV[1] and 1 or 0
""")

_EXTEND: Final = LuaScript("""
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
""")

_RELEASE: Final = LuaScript("""
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])
""")


def _request(script: LuaScript, keys: RedisKeys, key: str, token: str, seconds: float | None = None) -> RedisRequest:
    given: list[bytes | int] = [token.encode("utf-8", "surrogatepass")]
    if seconds is not None:
        check_seconds(seconds)
        given.append(max(1, int(seconds * 1000)))
    return RedisRequest(given, script, (keys.of(key, "lock"),))


class RedisWriteLocks:
    """Locks between any number of machines. They hold as long as the server remembers them: after a failover to a server
    that does not, two may hold one lock.

    :param of: what the keys are of; the same key of something else is another lock.
    """

    def __init__(self, server: RedisServer, *, of: str = "") -> None:
        self._server: Final = server
        self._of: Final = f"{of}\n" if of else ""

    def acquire(self, key: str, *, seconds: float) -> str | None:
        token = new_token()
        return token if self._run(_ACQUIRE, key, token, seconds) else None

    def extend(self, key: str, token: str, *, seconds: float) -> bool:
        return self._run(_EXTEND, key, token, seconds)

    def release(self, key: str, token: str) -> bool:
        return self._run(_RELEASE, key, token)

    def _run(self, script: LuaScript, key: str, token: str, seconds: float | None = None) -> bool:
        request = _request(script, self._server.keys, f"{self._of}{key}", token, seconds)
        return bool(self._server.run(request, _FAILED))


class AsyncRedisWriteLocks:
    """``RedisWriteLocks``, awaited."""

    def __init__(self, server: AsyncRedisServer) -> None:
        self._server: Final = server

    async def acquire(self, key: str, *, seconds: float) -> str | None:
        token = new_token()
        taken = await self._server.run(_request(_ACQUIRE, self._server.keys, key, token, seconds), _FAILED)
        return token if taken else None

    async def extend(self, key: str, token: str, *, seconds: float) -> bool:
        return bool(await self._server.run(_request(_EXTEND, self._server.keys, key, token, seconds), _FAILED))

    async def release(self, key: str, token: str) -> bool:
        return bool(await self._server.run(_request(_RELEASE, self._server.keys, key, token), _FAILED))
