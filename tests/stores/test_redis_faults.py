"""A Redis server that is gone, slow, empty or full: errors in plain words, soon, and nothing half done."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.conftest import MakeDoor
from tests.stores.redis_server import OwnRedis
from tests.stores.test_failing_outputs import LINES, shout, stream
from toolkit import Pack, SetupError, Todo, ToolCall, ToolContext, ToolFailed
from toolkit.builtin import BUILTIN
from toolkit.stores import TODO_STORE, AsyncRedisStores, RedisStores, RedisWriteLocks, hold_lock, wait_for
from toolkit.testing.store_laws import wait_until

pytestmark = pytest.mark.slow

SHORT = 0.2
"""A time limit that a server which does not answer always exceeds."""
TODOS = {"todos": [{"content": "write tests", "status": "pending"}]}
HOUR = 3600.0

# What fails, in words for people; "lock" and "approval" have values made beforehand.
OPERATIONS: dict[str, tuple[Callable[[RedisStores], object], str]] = {
    "read todos": (lambda stores: stores.todos.read("s"), "the todo list cannot be read"),
    "write todos": (lambda stores: stores.todos.write("s", [Todo("1", "x")]), "the todo list could not be saved"),
    "swap todos": (lambda stores: stores.todos.swap("s", [], [Todo("1", "x")]), "the todo list cannot be read"),
    "put an approval": (
        lambda stores: stores.approvals.put("s", "1", "v", digest="d", seconds=HOUR),
        "the approval could not be stored",
    ),
    "take an approval": (
        lambda stores: stores.approvals.take("s", "1", digest="d"),
        "the stored approval cannot be read",
    ),
    "acquire a lock": (lambda stores: stores.locks.acquire("k", seconds=HOUR), "the write lock failed"),
    "extend a lock": (lambda stores: stores.locks.extend("k", "t", seconds=HOUR), "the write lock failed"),
    "release a lock": (lambda stores: stores.locks.release("k", "t"), "the write lock failed"),
    "open an output": (lambda stores: stores.outputs.open("s", "a" * 32), "the output cannot be read"),
}


def failure_of(act: Callable[[], object]) -> str:
    with pytest.raises(ToolFailed) as caught:
        act()
    assert caught.value.reason in ("NETWORK", "IO")
    return caught.value.message


def check_everything_fails(stores: RedisStores, why: str) -> None:
    for act, what in OPERATIONS.values():
        assert failure_of(lambda act=act: act(stores)) == f"{what}: {why}"  # type: ignore[misc]
    assert stores.outputs.put("s", LINES, tool="t") is None


def check_everything_works(stores: RedisStores) -> None:
    for act, _ in list(OPERATIONS.values())[:-1]:
        act(stores)
    ref = stores.outputs.put("s", LINES, tool="t")
    assert ref is not None and stores.outputs.open("s", ref).total_lines == 20_000


def test_a_server_that_is_gone_is_said_so_and_used_when_it_is_back(own_redis: OwnRedis) -> None:
    with RedisStores(own_redis.url, timeout=60) as stores:
        check_everything_works(stores)
        own_redis.kill()
        check_everything_fails(stores, "Redis cannot be reached")
        own_redis.start()
        check_everything_works(stores)


def test_a_server_that_was_never_there(tmp_path: Path) -> None:
    with RedisStores(f"unix://{tmp_path}/nothing") as stores:
        check_everything_fails(stores, "Redis cannot be reached")


def test_a_server_that_does_not_answer_holds_up_nobody(own_redis: OwnRedis) -> None:
    """The same for connections that were open and for new ones; late answers are not taken for answers to others."""
    with RedisStores(own_redis.url, timeout=SHORT) as stores:
        own_redis.stop()
        check_everything_fails(stores, f"Redis did not answer within {SHORT:g} s")
        own_redis.go_on()
    with RedisStores(own_redis.url, timeout=60) as stores:
        check_everything_works(stores)
        stores.todos.write("a", [Todo("1", "a")])
        stores.todos.write("b", [Todo("1", "b")])
        assert [stores.todos.read(name)[0].content for name in "ab"] == ["a", "b"]


def test_an_async_server_that_is_gone_or_slow(own_redis: OwnRedis) -> None:
    async def use() -> None:
        async with AsyncRedisStores(own_redis.url, timeout=60) as stores:
            assert await stores.todos.swap("s", [], [Todo("1", "x")])
            own_redis.kill()
            with pytest.raises(ToolFailed, match="the todo list cannot be read: Redis cannot be reached"):
                await stores.todos.read("s")
            own_redis.start()
            assert await stores.todos.read("s") == []
        async with AsyncRedisStores(own_redis.url, timeout=SHORT) as stores:
            own_redis.stop()
            for answer in (
                stores.todos.write("s", []),
                stores.approvals.take("s", "1", digest="d"),
                stores.locks.acquire("k", seconds=HOUR),
            ):
                with pytest.raises(ToolFailed, match=f"Redis did not answer within {SHORT:g} s"):
                    await answer
            own_redis.go_on()

    asyncio.run(use())


def test_async_stores_can_be_used_in_one_loop_after_the_other(own_redis: OwnRedis) -> None:
    stores = AsyncRedisStores(own_redis.url, timeout=60)

    async def use() -> list[Todo]:
        before = await stores.todos.read("s")
        assert await stores.todos.swap("s", before, [*before, Todo("1", "x")])
        await stores.close()
        return await stores.todos.read("s")

    async def use_and_close() -> int:
        found = await use()
        await stores.close()
        return len(found)

    assert [asyncio.run(use_and_close()) for _ in range(3)] == [1, 2, 3]


def test_a_full_server_refuses_what_is_new_and_still_answers(own_redis: OwnRedis) -> None:
    with RedisStores(own_redis.url, timeout=60) as stores:
        check_everything_works(stores)
        token = stores.locks.acquire("another", seconds=HOUR)
        ref = stores.outputs.put("s", LINES, tool="t")
        stores.approvals.put("s", "2", "v", digest="d", seconds=HOUR)
        own_redis.fill()

        why = "Redis has no memory left"
        assert failure_of(lambda: stores.todos.write("s", [])) == f"the todo list could not be saved: {why}"
        assert failure_of(lambda: stores.locks.acquire("third", seconds=HOUR)) == f"the write lock failed: {why}"
        assert stores.outputs.put("s", LINES * 10, tool="t") is None
        # What makes room, and what only reads, goes on.
        assert stores.todos.read("s") == [Todo("1", "x")]
        assert token is not None and stores.locks.release("another", token)
        assert stores.approvals.take("s", "2", digest="d") == "v"
        assert ref is not None and stores.outputs.open("s", ref).total_lines == 20_000

        own_redis.make_room()
        check_everything_works(stores)


def test_an_output_of_which_the_server_lost_a_part_is_not_kept(own_redis: OwnRedis) -> None:
    """As after a failover in the middle of a stream."""
    piece = b"x" * 1_000_000
    with RedisStores(own_redis.url, timeout=60) as stores:
        for later in (piece, b"x", b""):
            writer = stores.outputs.writer("s", tool="t")
            writer.write(piece)
            own_redis.restart_empty()
            writer.write(later)
            assert writer.finish() is None
            with own_redis.client() as client:
                assert client.dbsize() == 0


def test_a_lock_that_the_server_forgot_is_not_released_for_another(own_redis: OwnRedis) -> None:
    with RedisStores(own_redis.url, timeout=60) as stores:
        old = stores.locks.acquire("k", seconds=HOUR)
        own_redis.restart_empty()
        new = stores.locks.acquire("k", seconds=HOUR)
        assert old is not None and new is not None
        assert not stores.locks.extend("k", old, seconds=HOUR)
        assert not stores.locks.release("k", old)
        assert stores.locks.release("k", new)


def test_what_was_done_under_a_lock_is_done_if_its_release_fails(own_redis: OwnRedis) -> None:
    with RedisStores(own_redis.url, timeout=60) as stores, hold_lock(stores.locks, "k"):
        own_redis.kill()


def is_connected(stores: RedisStores) -> bool:
    try:
        return stores.todos.read("s") == []
    except ToolFailed:  # the machine was slower than its time limit
        return False


def test_an_approval_is_taken_at_most_once_however_often_its_answer_is_lost(own_redis: OwnRedis) -> None:
    """A request whose answer did not arrive is not repeated by itself: it may have been carried out."""
    with RedisStores(own_redis.url, timeout=SHORT) as hasty, RedisStores(own_redis.url, timeout=60) as patient:
        assert patient.approvals.put("s", "1", "v", digest="d", seconds=HOUR)
        wait_until(lambda: is_connected(hasty), "the server does not answer")
        own_redis.stop()
        assert "did not answer" in failure_of(lambda: hasty.approvals.take("s", "1", digest="d"))
        own_redis.go_on()
        # The server has received the request before this one, on a connection that was opened before.
        taken = [patient.approvals.take("s", "1", digest="d") for _ in range(3)]
        assert taken.count("v") <= 1


# -- through a toolkit -------------------------------------------------------------------------------------------------


def door_to(make_door: MakeDoor, stores: RedisStores, handler: Callable[..., Any] = shout) -> Any:
    return make_door(packs=[Pack({"shout": handler}), BUILTIN], overrides=stores.overrides(), session_id="s")


@pytest.mark.parametrize("handler", [shout, stream])
def test_two_toolkits_share_outputs_and_todos(
    make_door: MakeDoor, shared_redis: OwnRedis, handler: Callable[..., Any]
) -> None:
    with RedisStores(shared_redis.url, prefix=f"shared-{handler.__name__}", timeout=60) as stores:
        one, two = door_to(make_door, stores, handler), door_to(make_door, stores)
        ref = one.call(ToolCall("1", "shout", {"text": "x"})).output_ref
        found = two.tool("tool_output_cache_grep", ref_id=ref, pattern="line 1234")
        assert found.matches
        one.invoke("todowrite", TODOS)
        assert [todo.content for todo in two.tool("todoread").todos] == ["write tests"]


@pytest.mark.parametrize("handler", [shout, stream])
def test_a_server_that_dies_in_the_middle_costs_the_ref_and_not_the_answer(
    make_door: MakeDoor, own_redis: OwnRedis, handler: Callable[..., Any]
) -> None:
    with RedisStores(own_redis.url, timeout=60) as stores:
        door = door_to(make_door, stores, handler)
        assert door.call(ToolCall("1", "shout", {"text": "x"})).output_ref is not None
        own_redis.kill()
        message = door.invoke("shout", {"text": "x"})
        assert "could not be stored; the call has run" in message.text()
        assert message.metadata["output_not_kept"]
        failed = door.call(ToolCall("2", "todowrite", TODOS))
        assert str(failed.value).startswith("TOOL_FAILED: NETWORK: the todo list could not be saved: Redis cannot be")
        own_redis.start()
        assert door.call(ToolCall("3", "shout", {"text": "x"})).output_ref is not None


def test_a_server_that_dies_while_an_output_is_streamed_costs_the_ref(make_door: MakeDoor, own_redis: OwnRedis) -> None:
    def stream_and_kill(args: Any, ctx: ToolContext) -> Any:
        ctx.output.write(b"x" * 1_000_000)
        own_redis.kill()
        ctx.output.write(b"x" * 1_000_000)
        return {"text": "the beginning"}

    with RedisStores(own_redis.url, timeout=60) as stores:
        result = door_to(make_door, stores, stream_and_kill).call(ToolCall("1", "shout", {"text": "x"}))
    assert "the beginning" in str(result.value)
    assert "the full output has 2000000 bytes in 1 lines; it could not be stored; the call has run" in str(result.value)


def test_async_todos_serve_a_toolkit(make_door: MakeDoor, shared_redis: OwnRedis) -> None:
    stores = AsyncRedisStores(shared_redis.url, prefix="async-todos", timeout=60)
    door = make_door(packs=[BUILTIN], overrides={TODO_STORE.id: lambda: stores.todos}, session_id="s")
    door.invoke("todowrite", TODOS)
    assert [todo.content for todo in door.tool("todoread").todos] == ["write tests"]
    wait_for(stores.close())


# -- setup -------------------------------------------------------------------------------------------------------------


def test_a_client_of_ones_own_can_be_given(shared_redis: OwnRedis) -> None:
    """As Sentinel makes them."""
    with shared_redis.client() as client:
        locks = RedisWriteLocks(RedisStores(client, prefix="own-client").server)
        token = locks.acquire("k", seconds=HOUR)
        assert token is not None and locks.release("k", token)


def test_a_wrong_password_is_said_so_without_it(own_redis: OwnRedis) -> None:
    with own_redis.client() as client:
        client.config_set("requirepass", "right")
    with RedisStores(own_redis.url, timeout=60) as stores, pytest.raises(ToolFailed) as caught:
        stores.todos.read("s")
    assert caught.value.message == "the todo list cannot be read: Redis does not accept the login"


@pytest.mark.parametrize("url", ["http://localhost", "localhost:6379", "redis://:secret@localhost:port"])
def test_a_wrong_address_is_a_setup_error_that_does_not_repeat_it(url: str) -> None:
    with pytest.raises(SetupError) as caught:
        RedisStores(url)
    assert "secret" not in str(caught.value)
    assert "redis://host:port/0" in str(caught.value)


@pytest.mark.parametrize("prefix", ["", "a b", "{a}", "*"])
def test_a_prefix_is_a_word(prefix: str) -> None:
    with pytest.raises(SetupError, match="cannot be used for keys"):
        RedisStores("redis://localhost", prefix=prefix)


def test_nothing_in_redis_is_kept_for_ever(own_redis: OwnRedis) -> None:
    """Not even what a killed writer left; and no name of a session is a name of a key."""
    with RedisStores(own_redis.url, timeout=60) as stores, own_redis.client() as client:
        check_everything_works(stores)
        stores.todos.write("a session of somebody", [Todo("1", "x")])
        stores.outputs.writer("s", tool="t").write(b"x" * 1_000_000)
        names = list(client.scan_iter())
        assert len(names) >= 8
        assert all(client.pttl(name) > 0 for name in names)
        assert not [name for name in names if b"somebody" in name]


def test_a_toolkit_that_is_closed_does_not_disconnect_others(make_door: MakeDoor, own_redis: OwnRedis) -> None:
    """Nor does a message that outlives it, and is kept late."""
    with RedisStores(own_redis.url, timeout=60) as stores, own_redis.client() as client:
        door = door_to(make_door, stores)
        message = door.invoke("shout", {"text": "x"})
        stores.todos.read("s")
        before = {row["id"] for row in client.client_list()}
        door.close()
        assert message.output_ref in message.text()
        assert before <= {row["id"] for row in client.client_list()}


def test_threads_share_few_connections(own_redis: OwnRedis) -> None:
    with RedisStores(own_redis.url, timeout=60) as stores, own_redis.client() as client:
        threads = [threading.Thread(target=stores.todos.read, args=("s",)) for _ in range(100)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert client.info("clients")["connected_clients"] <= 33
