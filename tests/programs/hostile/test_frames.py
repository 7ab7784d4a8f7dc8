"""Forged frames on the pipe of a program: each ends the program, or is an ordinary call, and gains nothing."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.programs.hostile.world import World

_MALFORMED = "sent a call that is not well formed"
_AFTER = "a program that had ended went on"


@dataclass(frozen=True)
class Forged:
    name: str
    code: str
    error: str = ""
    """Part of the error of the program; empty if it runs to its end."""
    calls: tuple[str | None, ...] = ()
    """The codes of its calls."""


ROWS = [
    Forged("a length that is too short", "put(struct.pack('!II', 5, 0) + b'{\"call\": 1}'); forever()", "not JSON"),
    Forged("a head that is not JSON", "put(frame(b'no')); forever()", "not JSON"),
    Forged("a head that is a list", "put(frame(b'[]')); forever()", "not an object"),
    Forged("a head that is nested deeply", "put(frame(b'[' * 60000)); forever()", "not JSON"),
    Forged("a head with a number of many digits", "put(frame(b'{\"call\": ' + b'9' * 60000 + b'}')); forever()", "not JSON"),
    Forged("a head that is empty", "put(frame({})); forever()", "not a call"),
    Forged("the result of a call", "put(frame({'result': 1}, b'{}')); forever()", "not a call"),
    Forged("a program", "put(frame({'run': 'x'}, b'{}')); forever()", "not a call"),
    Forged("a head that is too long", "put(struct.pack('!II', (64 << 10) + 1, 0)); forever()", "too large"),
    Forged("a body that is too long", "put(struct.pack('!II', 2, (64 << 20) + 1)); forever()", "too large"),
    Forged("the longest lengths", "put(b'\\xff' * 8); forever()", "too large"),
    Forged("random bytes", "put(bytes(range(255, 0, -1))); forever()", "too large"),
    Forged("an end", "put(frame({'end': 'ok'}, b'7')); forever()"),
    Forged("two ends", "put(frame({'end': 'ok'}, b'7') * 2); forever()", _AFTER),
    Forged("a call after the end", "put(frame({'end': 'ok'}, b'7'), call(1)); forever()", _AFTER),
    Forged("a print after the end", "put(frame({'end': 'ok'}, b'7'), frame({'print': True}, b'x')); forever()"),
    Forged("an end that is not JSON", "put(frame({'end': 'ok'}, b'\\x80no')); forever()", "not valid JSON"),
    Forged("a value of NaN", "put(frame({'end': 'ok'}, b'[NaN]')); forever()", "not valid JSON"),
    Forged("a value that is nested deeply", "put(frame({'end': 'ok'}, b'[' * 100000)); forever()", "not valid JSON"),
    Forged("a value that is a pickle", "import pickle; put(frame({'end': 'ok'}, pickle.dumps(1))); forever()", "not valid JSON"),
    Forged("a value that is too large", "put(frame({'end': 'ok'}, b' ' * (17 << 20) + b'1')); forever()", "17825793 bytes"),
    Forged("an error in a negative line", "put(frame({'end': 'error', 'line': -5, 'message': 'm'})); forever()", "m"),
    Forged("an error in a line that is true", "put(frame({'end': 'error', 'line': True, 'message': ['m']})); forever()", "['m']"),
    Forged("a number in use", "put(call(1), call(1)); forever()", _MALFORMED, (None,)),
    Forged("a number that was used", "put(call(1)); os.read(source, 9999); put(call(1)); forever()", _MALFORMED, (None,)),
    *(
        Forged(f"the number {number}", f"put(call({number})); forever()", _MALFORMED)
        for number in ("0", "-1", "2**53", "2**200", "1.0", "True", "'1'", "None", "[1]")
    ),
    Forged("a call without a tool", "put(frame({'call': 1, 'line': 1}, b'{}')); forever()", _MALFORMED),
    Forged("a tool that is a list", "put(call(1, ['done'])); forever()", _MALFORMED),
    Forged("a tool with a very long name", "put(call(1, 'done' * 9000)); forever()", _MALFORMED),
    Forged("arguments that are not text", "put(call(1, arguments=b'\\xff')); forever()", "not text"),
    Forged("a line that is no line", "put(call(1, line=-3), call(2, line='x'), call(3, line=10**30), call(4, line=True))", calls=(None,) * 4),
    Forged("more fields than a call has", "put(call(1, program='x', deadline=9, permissions=['write'], audit=False))", calls=(None,)),
    Forged("arguments that are a pickle", "import pickle; put(call(1, arguments=pickle.dumps({'message': 'x'}, 0)))", calls=("INVALID_TOOL_ARGUMENTS",)),
    Forged("arguments with a key twice", "put(call(1, arguments=b'{\"message\": \"a\", \"message\": \"b\"}'))", calls=("INVALID_TOOL_ARGUMENTS",)),
    Forged("a tool that the text does not name", "put(call(1, 'list', {'path': '.'}))", calls=("TOOL_NOT_ALLOWED",)),
    Forged("a tool that the policy denies", "put(call(1, 'write_file', {'path': 'x', 'content': 'x'}))", calls=("TOOL_NOT_ALLOWED",)),
    Forged("a tool that does not exist", "put(call(1, 'nothing\\n{}'))", calls=("TOOL_NOT_ALLOWED",)),
    Forged("a program inside of the program", "put(call(1, 'run_program', {'source': '1'}))", calls=("TOOL_NOT_ALLOWED",)),
    Forged("a file outside of the workspace", "put(call(1, 'read_file', {'path': '../audit.jsonl'}))", calls=("SANDBOX_VIOLATION",)),
]  # fmt: skip


LIKE_ANOTHER = {"a program", "the longest lengths", "random bytes"} | {
    f"the number {number}" for number in ("-1", "2**200", "1.0", "None", "[1]")
}
"""Another row is refused by the same check."""


@pytest.mark.every_row
@pytest.mark.parametrize(
    "row",
    [
        pytest.param(row, id=row.name.replace(" ", "-"), marks=[pytest.mark.whole] if row.name in LIKE_ANOTHER else [])
        for row in ROWS
    ],
)
def test_a_forged_frame_gains_nothing(world: World, row: Forged) -> None:
    with world.untouched():
        result = world.run(row.code)
        assert result.ran
        assert [error.kind for error in result.errors] == ["run"] * bool(row.error)
        assert row.error in "".join(error.message for error in result.errors)
        assert all(error.line == 0 for error in result.errors)
        assert tuple(call.error for call in result.calls) == row.calls
        assert all(call.line in (0, 1) for call in result.calls)


def test_every_refused_call_is_in_the_audit_log(world: World) -> None:
    before = len(world.calls())
    world.run("put(call(1, 'list', {'path': '.'}), call(2, 'write_file', {'path': 'x', 'content': 'x'}))")
    refused = [("end", "list", "TOOL_NOT_ALLOWED"), ("end", "write_file", "TOOL_NOT_ALLOWED")]
    assert world.calls()[before:] == refused


def test_half_a_frame_and_then_silence_ends_with_the_time(world: World) -> None:
    with world.untouched():
        (error,) = world.run("put(frame({'print': True}, b'xx')[:-1]); forever()", deadline=3).errors
        assert error.message == "the program took longer than 3 s"


def test_no_more_calls_run_than_are_allowed(world: World) -> None:
    with world.untouched():
        said = len(world.said)
        result = world.run("put(*(call(n + 1) for n in range(3000))); forever()")
        assert [error.message for error in result.errors] == ["the program made more than 1000 calls"]
        assert len(world.said) - said == len(result.calls) <= 1000


def test_results_that_nobody_reads_stop_the_calls(world: World) -> None:
    """Of 900 calls that return 200 KB each, no more run than fit into 16 MiB and the pipe."""
    with world.untouched():
        code = (
            "put(*(call(n + 1, 'read_file', {'path': 'large.txt', 'max_lines': 200}) for n in range(900)))\n"
            "time.sleep(0.1)\n"
            "put(frame({'end': 'ok'}, b'7')); forever()"
        )
        result = world.run(code)
        assert (result.value, result.errors) == (7, ())
        assert len(result.calls) < 150


def test_arguments_that_wait_are_bounded(world: World) -> None:
    with world.untouched():
        code = (
            "put(*(call(n + 1, 'read_file', {'path': 'large.txt', 'max_lines': 200}) for n in range(200)))\n"
            "put(*(call(n + 500, 'done', {'message': 'x' * (1 << 20)}) for n in range(40))); forever()"
        )
        (error,) = world.run(code).errors
        assert "calls that wait for others have more than 32 Mi characters" in error.message


def test_a_program_that_writes_much_and_reads_late_does_not_stand_still(world: World) -> None:
    """Neither side waits for the other with a full pipe."""
    with world.untouched():
        code = (
            "put(*(call(n + 1, 'read_file', {'path': 'large.txt', 'max_lines': 200}) for n in range(20)))\n"
            "put(*(call(n + 500, 'done', {'message': 'x' * 100_000}) for n in range(20)))\n"
            "got = 0\n"
            "while got < 20 * 300_000: got += len(os.read(source, 1 << 20))\n"
        )
        result = world.run(code)
        assert result.errors == ()
        assert len(result.calls) == 40
