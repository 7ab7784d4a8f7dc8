"""One Redis server: connections with time limits, scripts, and errors in plain words.

Nothing is repeated by itself, because nobody knows whether a request that got no answer was carried out.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from toolkit.errors import SetupError, ToolFailed

if TYPE_CHECKING:
    import redis
    import redis.asyncio

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
