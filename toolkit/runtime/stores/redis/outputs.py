"""The output cache in Redis: a string for each output, a hash with what is known about it, an index for each session.

The oldest outputs of a session make room for its new ones; other sessions are not touched. An output that comes in pieces
is appended to a string that no ref names, and gets its name at the end. If the server has lost a part of it meanwhile, as
after a failover, it is not kept.
"""

from __future__ import annotations

import json
import logging
import re
import secrets
import time
from array import array
from typing import Any, Final

from toolkit.errors import ToolFailed
from toolkit.runtime.output.cache.cached_output import CachedOutput
from toolkit.runtime.output.cache.index import STRETCH, LineIndex
from toolkit.runtime.stores.output_files import DAY
from toolkit.runtime.stores.outputs import TEXT_LIMIT, CountingWriter, OutputCache, OutputWriter, not_kept
from toolkit.runtime.stores.redis.server import LuaScript, RedisRequest, RedisServer

logger: Final = logging.getLogger("toolkit.cache")

_MEBIBYTE: Final = 1024 * 1024
_MAX_OUTPUTS: Final = 1000
_UNFINISHED_SECONDS: Final = 3600
_REF: Final = re.compile(r"[A-Za-z0-9_-]{32}", re.ASCII)
_KEEP: Final = "the output could not be stored"
_READ: Final = "the output cannot be read"

# Keys: the string, what is known about it, the index, the sizes, the unfinished string (or the same as the first).
# Arguments: id, bytes, most bytes of the session, milliseconds, most outputs, facts, marks, the beginning of all keys, data.
_KEEP_OUTPUT: Final = LuaScript("""
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local size, room, lasts = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
if KEYS[5] ~= KEYS[1] and redis.call('STRLEN', KEYS[5]) ~= size then
    redis.call('DEL', KEYS[5])
    return 0
end
local function forget(id)
    redis.call('HINCRBY', KEYS[4], 'total', -(redis.call('HGET', KEYS[4], id) or 0))
    redis.call('HDEL', KEYS[4], id)
    redis.call('ZREM', KEYS[3], id)
    redis.call('DEL', ARGV[8] .. id, ARGV[8] .. id .. ':facts')
end
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', now - lasts * 1000)) do forget(id) end
while redis.call('ZCARD', KEYS[3]) > 0 and (redis.call('ZCARD', KEYS[3]) >= tonumber(ARGV[5])
        or tonumber(redis.call('HGET', KEYS[4], 'total') or 0) + size > room) do
    forget(redis.call('ZRANGE', KEYS[3], 0, 0)[1])
end
if KEYS[5] == KEYS[1] then
    redis.call('SET', KEYS[1], ARGV[9])
else
    redis.call('RENAME', KEYS[5], KEYS[1])
end
redis.call('HSET', KEYS[2], 'facts', ARGV[6], 'marks', ARGV[7])
local newest = redis.call('ZRANGE', KEYS[3], -1, -1, 'WITHSCORES')[2]
redis.call('ZADD', KEYS[3], string.format('%.0f', math.max(now, (newest or 0) + 1)), ARGV[1])
redis.call('HSET', KEYS[4], ARGV[1], size)
redis.call('HINCRBY', KEYS[4], 'total', size)
for number = 1, 4 do redis.call('PEXPIRE', KEYS[number], lasts) end
return 1
""")

_APPEND: Final = LuaScript("""
if redis.call('STRLEN', KEYS[1]) ~= tonumber(ARGV[1]) then return 0 end
redis.call('APPEND', KEYS[1], ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
""")

_FIND: Final = LuaScript("""
local known = redis.call('HMGET', KEYS[2], 'facts', 'marks')
return {known[1], known[2], redis.call('STRLEN', KEYS[1])}
""")


class RedisOutputCache(OutputCache):
    """Outputs in Redis, for any number of machines. Whoever can read the server can read them.

    :param max_bytes_per_session: how much the outputs of one session may take; a longer output is not kept.
    :param max_age_seconds: how long an output is kept.
    :param text_limit: how many bytes of one output a model is shown.
    """

    def __init__(
        self,
        server: RedisServer,
        *,
        max_bytes_per_session: int = 64 * _MEBIBYTE,
        max_age_seconds: float = 7 * DAY,
        text_limit: int = TEXT_LIMIT,
    ) -> None:
        self.text_limit = text_limit
        self._server: Final = server
        self._max_bytes: Final = max_bytes_per_session
        self._milliseconds: Final = int(max_age_seconds * 1000)

    def put(self, session_id: str, data: bytes | str, *, tool: str, media_type: str | None = None) -> str | None:
        if isinstance(data, str):
            data = data.encode("utf-8", "backslashreplace")
        with self.writer(session_id, tool=tool, media_type=media_type) as writer:
            writer.write(data)
            return writer.finish()

    def writer(self, session_id: str, *, tool: str, media_type: str | None = None) -> OutputWriter:
        return _RedisWriter(self, session_id, tool, media_type, self._max_bytes)

    def open(self, session_id: str, ref: str) -> CachedOutput:
        if _REF.fullmatch(ref) is None:
            raise not_kept()
        data, known = self._names(session_id, ref)
        facts_data, marks_data, size = self._server.run(RedisRequest((), _FIND, (data, known)), _READ)
        if facts_data is None or marks_data is None:
            raise not_kept()
        facts: dict[str, Any] = json.loads(facts_data)
        if size != facts["size"]:
            raise not_kept()
        marks = array("Q", marks_data)

        def read(position: int, wanted: int) -> bytes:
            wanted = max(0, min(wanted, size - position))
            if not wanted:
                return b""
            words = ("GETRANGE", data, position, position + wanted - 1)
            found: bytes = self._server.run(RedisRequest(words), _READ)
            if len(found) != wanted:  # removed meanwhile
                raise not_kept()
            return found

        return CachedOutput(
            read,
            size=size,
            total_lines=facts["lines"],
            marks=marks,
            tool=facts["tool"],
            media_type=facts["media_type"],
            created=facts["created"],
        )

    def close(self) -> None:
        """Nothing: the connections belong to the server, which other stores and toolkits use. Close that."""

    def _append(self, unfinished: str, position: int, data: bytes) -> bool:
        given = (position, data, _UNFINISHED_SECONDS * 1000)
        return bool(self._server.run(RedisRequest(given, _APPEND, (unfinished,)), _KEEP))

    def _remove(self, unfinished: str) -> None:
        self._server.run(RedisRequest(("DEL", unfinished)), _KEEP)

    def _new_unfinished(self, session_id: str) -> str:
        return self._server.keys.of(session_id, "unfinished", secrets.token_hex(16))

    def _keep(
        self, session_id: str, tool: str, media_type: str | None, index: LineIndex, data: bytes, unfinished: str | None
    ) -> str | None:
        """Keeps an output: the data, or what was appended to an unfinished string."""
        ref = secrets.token_urlsafe(24)
        string, known = self._names(session_id, ref)
        keys = self._server.keys
        names = (string, known, keys.of(session_id, "outputs"), keys.of(session_id, "sizes"), unfinished or string)
        facts = {
            "size": index.size,
            "lines": index.lines,
            "tool": tool,
            "media_type": media_type,
            "created": time.time(),
        }
        given = (
            *(ref, index.size, self._max_bytes, self._milliseconds, _MAX_OUTPUTS),
            *(json.dumps(facts), index.marks.tobytes(), keys.of(session_id, "output", ""), data),
        )
        return ref if self._server.run(RedisRequest(given, _KEEP_OUTPUT, names), _KEEP) else None

    def _names(self, session_id: str, ref: str) -> tuple[str, str]:
        string = self._server.keys.of(session_id, "output", ref)
        return string, f"{string}:facts"


class _RedisWriter(CountingWriter):
    """Holds a small output in memory, and appends a large one to a string of its own, a piece at a time."""

    def __init__(
        self, cache: RedisOutputCache, session_id: str, tool: str, media_type: str | None, max_bytes: int
    ) -> None:
        super().__init__()
        self._cache = cache
        self._session_id = session_id
        self._tool = tool
        self._media_type = media_type
        self._max_bytes = max_bytes
        self._held = bytearray()
        self._unfinished: str | None = None
        self._sent = 0
        self._is_open = True

    def write(self, data: bytes) -> None:
        super().write(data)
        if not self._is_open:
            return
        if self.size > self._max_bytes:
            self._lose(f"it takes more than the {self._max_bytes} bytes of a session")
            return
        self._held += data
        try:
            while len(self._held) > STRETCH and self._is_open:
                self._send(bytes(self._held[:STRETCH]))
        except ToolFailed as error:
            self._lose(error.message.removeprefix(f"{_KEEP}: "))

    def finish(self) -> str | None:
        if not self._is_open:
            return None
        try:
            if self._unfinished is not None and self._held:
                self._send(bytes(self._held))
            if not self._is_open:
                return None
            ref = self._cache._keep(
                self._session_id, self._tool, self._media_type, self._index, bytes(self._held), self._unfinished
            )
        except ToolFailed as error:
            self._lose(error.message.removeprefix(f"{_KEEP}: "))
            return None
        self._is_open = False
        if ref is None:
            self._lose("Redis has lost a part of it")
        return ref

    def discard(self) -> None:
        self._is_open = False
        self._held.clear()
        unfinished, self._unfinished = self._unfinished, None
        if unfinished is not None:
            try:
                self._cache._remove(unfinished)
            except ToolFailed:
                logger.info("an unfinished output in Redis expires within %d s", _UNFINISHED_SECONDS)

    def _send(self, piece: bytes) -> None:
        if self._unfinished is None:
            self._unfinished = self._cache._new_unfinished(self._session_id)
        if not self._cache._append(self._unfinished, self._sent, piece):
            self._lose("Redis has lost a part of it")
            return
        self._sent += len(piece)
        del self._held[: len(piece)]

    def _lose(self, why: str) -> None:
        logger.warning("an output of %r could not be stored: %s", self._tool, why)
        self.discard()
