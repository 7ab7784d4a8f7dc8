"""Programs that use too much of something: each is ended, or cut, and says why."""

from __future__ import annotations

import resource
from dataclasses import dataclass

import pytest

from tests.programs.hostile.world import World

_MIB = 1 << 20
FILL = """
def fill(size):
    block = bytearray(size)
    block[::4096] = b"x" * len(block[::4096])
    return block

def write(name, mebibytes):
    with open(name, "wb", buffering=0) as file:
        for _ in range(mebibytes):
            file.write(b"x" * (1 << 20))

tmp = os.environ["TMPDIR"]
"""


@dataclass(frozen=True)
class Excess:
    name: str
    code: str
    error: str


ROWS = [
    Excess("memory", "kept = fill(400 << 20); forever()", "used more than 300 MiB of memory"),
    Excess("memory of children", "[child(lambda: (fill(100 << 20), forever())) for _ in range(4)]; forever()", "used more than 300 MiB of memory"),
    Excess("memory in files without a name", "[os.write(os.memfd_create('x'), b'x' * (50 << 20)) for _ in range(9)]; forever()", "MiB of memory"),
    Excess("more memory than there is", "bytearray(1 << 50)", "MemoryError"),
    Excess("processes", "[child(forever) for _ in range(200)]; forever()", "used too much: processes"),
    Excess("processes of processes", "for _ in range(8): os.fork()\nforever()", "used too much: processes"),
    Excess("descriptors", "kept = [os.dup(1) for _ in range(10**7)]", "Too many open files"),
    Excess("a file that is too large", "write(tmp + '/f', 100)", "File too large"),
]  # fmt: skip


@pytest.mark.sample
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name.replace(" ", "-"))
def test_it_is_ended(each_world: World, row: Excess) -> None:
    with each_world.unharmed():
        (error,) = each_world.run(FILL + row.code).errors
        assert row.error in error.message


def test_its_own_tmp_is_limited(each_world: World) -> None:
    """In the full tier it is memory, in the reduced one it is on disk."""
    limit = "MiB of memory" if each_world.context.sandbox == "full" else "used too much: disk"
    with each_world.unharmed():
        (error,) = each_world.run(FILL + "[write(f'{tmp}/{n}', 50) for n in range(60)]; forever()").errors
        assert limit in error.message


@pytest.mark.parametrize(
    "size",
    [64 * _MIB, pytest.param(1024 * _MIB, marks=pytest.mark.whole)],
)
@pytest.mark.parametrize(
    "code",
    ["print('x' * (1 << 20), end='')", "os.write(2, b'x' * (1 << 20))", "put(frame({'print': 1}, b'x' * (1 << 20)))"],
)
def test_output_is_cut_and_memory_bounded(world: World, code: str, size: int) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with world.untouched():
        result = world.run(f"for _ in range({size >> 20}): {code}\nanswer = 1")
    assert (result.value, result.errors) == (1, ())
    assert len(result.output) <= _MIB + 100
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 32 << 10  # KiB


def test_many_small_prints_are_cut(world: World) -> None:
    with world.untouched():
        result = world.run("put(frame({'print': 1}, b'x') * 100_000)\nanswer = 1")
    assert (result.value, len(result.output)) == (1, 100_000)
