"""Every store in one Redis server."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import re
import secrets
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, TypeAlias

from toolkit.errors import SetupError, ToolFailed
from toolkit.runtime.stores.approvals import MAX_APPROVAL_BYTES, MAX_APPROVALS, check_approval, too_many_approvals
from toolkit.runtime.stores.keys import APPROVAL_STORE, OUTPUT_CACHE, TODO_STORE, WRITE_LOCKS
from toolkit.runtime.stores.locks import check_seconds, new_token
from toolkit.runtime.stores.output_files import DAY
from toolkit.runtime.stores.outputs import (
    STRETCH,
    TEXT_LIMIT,
    CachedOutput,
    CountingWriter,
    LineIndex,
    OutputCache,
    OutputWriter,
    not_kept,
)
from toolkit.runtime.stores.todos import MAX_TODO_BYTES, Todo, decode_todos, encode_todos

if TYPE_CHECKING:
    import redis
    import redis.asyncio


# ----------------------------------------------------------------------------------------------------------------------
# One Redis server: connections with time limits, scripts, and errors in plain words.
#
# Nothing is repeated by itself, because nobody knows whether a request that got no answer was carried out.

logger: Final = logging.getLogger("toolkit.redis")

Part: TypeAlias = bytes | str | int

TIMEOUT: Final = 2.0
MAX_CONNECTIONS: Final = 32


class LuaScript:
    """A Lua script, which Redis runs as one step."""

    __slots__ = ("sha", "text")

    def __init__(self, text: str) -> None:
        self.text: Final = text
        self.sha: Final = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


class RedisRequest(NamedTuple):
    """What is asked of the server: a script with its keys and arguments, or the words of a command."""

    parts: Sequence[Part]
    script: LuaScript | None = None
    keys: Sequence[str] = ()

    def words(self, *, in_full: bool = False) -> list[Part]:
        if self.script is None:
            return list(self.parts)
        head = ["EVAL", self.script.text] if in_full else ["EVALSHA", self.script.sha]
        return [*head, len(self.keys), *self.keys, *self.parts]


class RedisKeys:
    """The names under which one application keeps its things. Those of one session have one hash tag."""

    def __init__(self, prefix: str) -> None:
        if not prefix or any(mark in prefix for mark in "{}*?[] \n"):
            raise SetupError(f"the prefix {prefix!r} cannot be used for keys; give a word, such as 'acme'")
        self._prefix: Final = prefix

    def of(self, owner: str, *rest: str) -> str:
        """The key of something that belongs to a session, or to whatever ``owner`` names. It may be any text."""
        return ":".join((self._prefix, f"{{{hashed(owner)}}}", *rest))


def hashed(text: str) -> str:
    """A short name for any text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


class RedisServer:
    """Runs requests and waits for the answers.

    :param server: a URL (``redis://``, ``rediss://``, ``unix://``), or a client of redis-py, such as one of Sentinel; then
        its time limits count.
    :param timeout: seconds for connecting, for each answer, and for a free connection.
    """

    def __init__(self, server: str | redis.Redis, *, prefix: str = "toolkit", timeout: float = TIMEOUT) -> None:
        self.keys: Final = RedisKeys(prefix)
        self._timeout: Final = timeout
        self._client: Final[Any] = _connect(server, timeout) if isinstance(server, str) else server

    def run(self, request: RedisRequest, what: str) -> Any:
        """The answer of the server; ``what`` says in an error what failed."""
        import redis

        try:
            try:
                return self._client.execute_command(*request.words())
            except redis.exceptions.NoScriptError:  # new, or restarted
                return self._client.execute_command(*request.words(in_full=True))
        except (redis.RedisError, OSError) as error:
            raise as_tool_failure(error, what, self._timeout) from error

    def close(self) -> None:
        """Closes the connections; they are opened again if they are needed."""
        self._client.close()
        self._client.connection_pool.disconnect()


class AsyncRedisServer:
    """The same for stores that are awaited. Connections belong to the event loop that uses them: close it in each loop.

    :param server: a URL, or a client of ``redis.asyncio``, which must be used in one event loop only.
    """

    def __init__(self, server: str | redis.asyncio.Redis, *, prefix: str = "toolkit", timeout: float = TIMEOUT) -> None:
        self.keys: Final = RedisKeys(prefix)
        self._timeout: Final = timeout
        self._server: Final = server
        self._clients: Final[dict[asyncio.AbstractEventLoop, Any]] = {}

    async def run(self, request: RedisRequest, what: str) -> Any:
        """The answer of the server; ``what`` says in an error what failed."""
        import redis

        client = self._client()
        try:
            try:
                return await client.execute_command(*request.words())
            except redis.exceptions.NoScriptError:
                return await client.execute_command(*request.words(in_full=True))
        except (redis.RedisError, OSError) as error:
            raise as_tool_failure(error, what, self._timeout) from error

    async def close(self) -> None:
        """Closes the connections of the running event loop."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.aclose()
            await client.connection_pool.disconnect()

    def _client(self) -> Any:
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            for other in [other for other in self._clients if other.is_closed()]:
                del self._clients[other]
            given = self._server
            client = _connect_async(given, self._timeout) if isinstance(given, str) else given
            self._clients[loop] = client
        return client


def _connect(url: str, timeout: float) -> redis.Redis:
    library = _load("redis")
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    pool = _make_pool(library, url, timeout, Retry(NoBackoff(), 0))
    client: redis.Redis = library.Redis(connection_pool=pool)
    return client


def _connect_async(url: str, timeout: float) -> redis.asyncio.Redis:
    library = _load("redis.asyncio")
    from redis.asyncio.retry import Retry
    from redis.backoff import NoBackoff

    pool = _make_pool(library, url, timeout, Retry(NoBackoff(), 0))
    client: redis.asyncio.Redis = library.Redis(connection_pool=pool)
    return client


def _make_pool(library: Any, url: str, timeout: float, retry: Any) -> Any:
    try:
        return library.BlockingConnectionPool.from_url(
            url,
            timeout=timeout,
            socket_timeout=timeout,
            socket_connect_timeout=timeout,
            max_connections=MAX_CONNECTIONS,
            retry=retry,
        )
    except ValueError as error:
        # Its text may hold the password that is in the URL.
        raise SetupError(
            "the address of Redis cannot be read; write redis://host:port/0, rediss://… or unix:///path"
        ) from error


def _load(name: str) -> Any:
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError as error:
        raise SetupError("the stores in Redis need the package redis: pip install 'typed-toolkit[redis]'") from error


def as_tool_failure(error: Exception, what: str, timeout: float) -> ToolFailed:
    """An error of the client in plain words: without the address, which is in the log."""
    from redis import exceptions

    logger.warning("%s: %s: %s", what, type(error).__name__, error)
    if any(isinstance(one, exceptions.TimeoutError | TimeoutError) for one in _with_causes(error)):
        return ToolFailed("NETWORK", f"{what}: Redis did not answer within {timeout:g} s")
    if isinstance(error, exceptions.AuthenticationError | exceptions.AuthorizationError | exceptions.NoPermissionError):
        return ToolFailed("PERMISSION_DENIED", f"{what}: Redis does not accept the login")
    if isinstance(error, exceptions.ReadOnlyError | exceptions.MasterDownError):
        return ToolFailed("NETWORK", f"{what}: Redis takes no changes at the moment")
    if isinstance(error, exceptions.ConnectionError | OSError):
        return ToolFailed("NETWORK", f"{what}: Redis cannot be reached")
    if isinstance(error, exceptions.OutOfMemoryError):
        return ToolFailed("IO", f"{what}: Redis has no memory left")
    return ToolFailed("IO", f"{what}: Redis refused the request")


def _with_causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error and what led to it: a time limit that is exceeded while connecting shows as a lost connection."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


# ----------------------------------------------------------------------------------------------------------------------
# Suspended approvals in Redis: a hash for each, and an index of those that wait in a session.

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


# ----------------------------------------------------------------------------------------------------------------------
# Write locks in Redis: one string per key, which holds the token of its owner.

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


# ----------------------------------------------------------------------------------------------------------------------
# The output cache in Redis: a string for each output, a hash with what is known about it, an index for each session.
#
# The oldest outputs of a session make room for its new ones; other sessions are not touched. An output that comes in pieces
# is appended to a string that no ref names, and gets its name at the end. If the server has lost a part of it meanwhile, as
# after a failover, it is not kept.

cache_logger: Final = logging.getLogger("toolkit.cache")

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
                cache_logger.info("an unfinished output in Redis expires within %d s", _UNFINISHED_SECONDS)

    def _send(self, piece: bytes) -> None:
        if self._unfinished is None:
            self._unfinished = self._cache._new_unfinished(self._session_id)
        if not self._cache._append(self._unfinished, self._sent, piece):
            self._lose("Redis has lost a part of it")
            return
        self._sent += len(piece)
        del self._held[: len(piece)]

    def _lose(self, why: str) -> None:
        cache_logger.warning("an output of %r could not be stored: %s", self._tool, why)
        self.discard()


# ----------------------------------------------------------------------------------------------------------------------
# Todo lists in Redis: one string per session, as JSON.

_TODOS_READ: Final = "the todo list cannot be read"
_TODOS_SAVE: Final = "the todo list could not be saved"

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
        return decode_todos(self._server.run(self._requests.get(session_id), _TODOS_READ))

    def write(self, session_id: str, todos: Sequence[Todo]) -> None:
        self._server.run(self._requests.set(session_id, todos), _TODOS_SAVE)

    def swap(self, session_id: str, expected: Sequence[Todo], todos: Sequence[Todo]) -> bool:
        found = self._server.run(self._requests.get(session_id), _TODOS_READ)
        if decode_todos(found) != list(expected):
            return False
        return bool(self._server.run(self._requests.swap(session_id, found, todos), _TODOS_SAVE))


class AsyncRedisTodoStore:
    """``RedisTodoStore``, awaited."""

    def __init__(
        self, server: AsyncRedisServer, *, max_age_seconds: float = 7 * DAY, max_bytes: int = MAX_TODO_BYTES
    ) -> None:
        self._server: Final = server
        self._requests: Final = _TodoRequests(server.keys, max_age_seconds, max_bytes)

    async def read(self, session_id: str) -> list[Todo]:
        return decode_todos(await self._server.run(self._requests.get(session_id), _TODOS_READ))

    async def write(self, session_id: str, todos: Sequence[Todo]) -> None:
        await self._server.run(self._requests.set(session_id, todos), _TODOS_SAVE)

    async def swap(self, session_id: str, expected: Sequence[Todo], todos: Sequence[Todo]) -> bool:
        found = await self._server.run(self._requests.get(session_id), _TODOS_READ)
        if decode_todos(found) != list(expected):
            return False
        return bool(await self._server.run(self._requests.swap(session_id, found, todos), _TODOS_SAVE))


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
