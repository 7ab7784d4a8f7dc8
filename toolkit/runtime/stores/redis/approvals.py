"""Suspended approvals in Redis: a hash for each, and an index of those that wait in a session."""

from __future__ import annotations

from typing import Final

from toolkit.runtime.stores.approvals import MAX_APPROVAL_BYTES, MAX_APPROVALS, check_approval, too_many_approvals
from toolkit.runtime.stores.redis.server import (
    AsyncRedisServer,
    LuaScript,
    RedisKeys,
    RedisRequest,
    RedisServer,
    hashed,
)

_PUT_FAILED: Final = "the approval could not be stored"
_TAKE_FAILED: Final = "the stored approval cannot be read"
_KNOWN: Final = 0
_TOO_MANY: Final = -1

_PUT: Final = LuaScript("""
local time = redis.call('TIME')
local now, lasts = time[1] * 1000 + math.floor(time[2] / 1000), tonumber(ARGV[4])
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
if redis.call('ZCARD', KEYS[2]) >= tonumber(ARGV[5]) then return -1 end
redis.call('HSET', KEYS[1], 'digest', ARGV[2], 'value', ARGV[3])
redis.call('PEXPIRE', KEYS[1], lasts)
redis.call('ZADD', KEYS[2], now + lasts, ARGV[1])
if redis.call('PTTL', KEYS[2]) < lasts then redis.call('PEXPIRE', KEYS[2], lasts) end
return 1
""")

# The hash stays until it expires, so that nobody can put the same id a second time.
_TAKE: Final = LuaScript("""
local kept = redis.call('HMGET', KEYS[1], 'digest', 'value')
if not kept[2] or kept[1] ~= ARGV[2] then return false end
redis.call('HDEL', KEYS[1], 'value')
redis.call('ZREM', KEYS[2], ARGV[1])
return kept[2]
""")


class _ApprovalRequests:
    """What is asked of the server."""

    def __init__(self, keys: RedisKeys, max_bytes: int, max_per_session: int) -> None:
        self._keys: Final = keys
        self._max_bytes: Final = max_bytes
        self._max_per_session: Final = max_per_session

    def put(self, session_id: str, approval_id: str, value: str, digest: str, seconds: float) -> RedisRequest:
        check_approval(value, seconds, self._max_bytes)
        lasts = max(1, int(seconds * 1000))
        given = (hashed(approval_id), _encode(digest), _encode(value), lasts, self._max_per_session)
        return RedisRequest(given, _PUT, self._names(session_id, approval_id))

    def take(self, session_id: str, approval_id: str, digest: str) -> RedisRequest:
        return RedisRequest((hashed(approval_id), _encode(digest)), _TAKE, self._names(session_id, approval_id))

    def was_put(self, answer: int) -> bool:
        if answer == _TOO_MANY:
            raise too_many_approvals(self._max_per_session)
        return answer != _KNOWN

    def _names(self, session_id: str, approval_id: str) -> tuple[str, str]:
        return (
            self._keys.of(session_id, "approval", hashed(approval_id)),
            self._keys.of(session_id, "approvals"),
        )


class RedisApprovalStore:
    """Suspended approvals in Redis, for any number of machines; see ``ApprovalStore``."""

    def __init__(
        self, server: RedisServer, *, max_bytes: int = MAX_APPROVAL_BYTES, max_per_session: int = MAX_APPROVALS
    ) -> None:
        self._server: Final = server
        self._requests: Final = _ApprovalRequests(server.keys, max_bytes, max_per_session)

    def put(self, session_id: str, approval_id: str, value: str, *, digest: str, seconds: float) -> bool:
        request = self._requests.put(session_id, approval_id, value, digest, seconds)
        return self._requests.was_put(self._server.run(request, _PUT_FAILED))

    def take(self, session_id: str, approval_id: str, *, digest: str) -> str | None:
        return _decode(self._server.run(self._requests.take(session_id, approval_id, digest), _TAKE_FAILED))


class AsyncRedisApprovalStore:
    """``RedisApprovalStore``, awaited."""

    def __init__(
        self, server: AsyncRedisServer, *, max_bytes: int = MAX_APPROVAL_BYTES, max_per_session: int = MAX_APPROVALS
    ) -> None:
        self._server: Final = server
        self._requests: Final = _ApprovalRequests(server.keys, max_bytes, max_per_session)

    async def put(self, session_id: str, approval_id: str, value: str, *, digest: str, seconds: float) -> bool:
        request = self._requests.put(session_id, approval_id, value, digest, seconds)
        return self._requests.was_put(await self._server.run(request, _PUT_FAILED))

    async def take(self, session_id: str, approval_id: str, *, digest: str) -> str | None:
        return _decode(await self._server.run(self._requests.take(session_id, approval_id, digest), _TAKE_FAILED))


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _decode(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "surrogatepass")
