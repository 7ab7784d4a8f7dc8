"""Programs that turn against their own interpreter: threads, forks, patches of the client, recursion, strange values."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.programs.hostile.world import World

_ENDED = "the process of the program ended before the program did"
_STOP = "it was stopped"


@dataclass(frozen=True)
class Row:
    name: str
    code: str
    error: str = ""
    answer: object = None
    calls: tuple[str | None, ...] = ()
    like: str = ""
    """The row of ``make test`` that ends in the same way."""


ROWS = [
    Row("a thread calls", "t = threading.Thread(target=lambda: done(message='t')); t.start(); t.join(); answer = 1", answer=1, calls=(None,), like="many threads call"),
    Row("many threads call", "ts = [threading.Thread(target=lambda: done(message='t')) for _ in range(20)]; [t.start() for t in ts]; [t.join() for t in ts]; answer = 1", answer=1, calls=(None,) * 20),
    Row("a thread calls for ever", "threading.Thread(target=lambda: [read_file(path='a.txt') for _ in range(900)], daemon=True).start(); done(message='stop'); forever()", _STOP),
    Row("a fork calls", "os.waitpid(child(lambda: done(message='child')), 0); answer = 1", answer=1, calls=(None,)),
    Row("forks and the program call with the same numbers", "[child(lambda: (done(message='x'), forever())) for _ in range(3)]; done(message='y'); forever()", "not well formed"),
    Row("a fork reads the results", "child(lambda: [os.read(source, 9) for _ in range(9)]); done(message='stop'); forever()", _STOP),
    Row("another name for a tool", "done.__self__._name = 'write_file'; done(message='x')", "does not name 'write_file'", calls=("TOOL_NOT_ALLOWED",)),
    Row("a tool of its own making", "from toolkit.runtime.programs.inside import CalledTool; CalledTool(connection, {'name': 'list', 'attribute': 'list', 'module': None, 'output': '', 'wire': {}}).call(path='.')", "does not name 'list'", calls=("TOOL_NOT_ALLOWED",)),
    Row("a json that writes nonsense", "json.dumps = lambda *a, **k: '{}'; done(message='x')", "not a call"),
    Row("a connection that says yes", "type(connection).call = lambda self, head, body: type('F', (), {'head': {}, 'body': b'{\"message\": \"yes\"}'})(); answer = done(message='x').message", answer="yes"),
    Row("frames that are never broken", "from toolkit.runtime.programs import frames; frames.MAX_BODY = frames.MAX_HEAD = 1 << 40; put(struct.pack('!II', 1 << 20, 0)); forever()", "too large"),
    Row("all that the interpreter knows is gone", "[m.__dict__.clear() for n, m in list(sys.modules.items()) if n.startswith('toolkit')]", ""),
    Row("the modules are other ones", "sys.modules.clear(); sys.path.clear()", like="all that the interpreter knows is gone"),
    Row("a result that runs code when it is read", "answer = type('R', (), {'__reduce__': lambda self: (os.system, ('touch x',))})()", "cannot be written as JSON"),
    Row("a value in itself", "answer = []; answer.append(answer)", "recursion"),
    Row("a value of a million levels", "answer = []\nfor _ in range(10**6): answer = [answer]", "recursion", like="a value in itself"),
    Row("an error that cannot be printed", "class E(Exception):\n    def __str__(self): raise SystemExit\nraise E"),
    Row("an error that ends the interpreter", "raise SystemExit(0)", "SystemExit"),
    Row("an interrupt", "raise KeyboardInterrupt", "KeyboardInterrupt", like="an error that ends the interpreter"),
    Row("recursion", "def f(): f()\nf()", "recursion", like="a value in itself"),
    Row("recursion without a limit", "sys.setrecursionlimit(10**9)\nclass R:\n    def __repr__(self): return repr(self)\nrepr(R())", _ENDED, like="a crash"),
    Row("a crash", "ctypes.string_at(0)", _ENDED),
    Row("an exit", "os._exit(0)", _ENDED, like="a crash"),
    Row("an abort", "os.abort()", _ENDED, like="a crash"),
    Row("another program in its place", "os.execv('/bin/sh', ['sh', '-c', 'exit 3'])", _ENDED, like="a crash"),
    Row("another program that keeps the pipe", "os.set_inheritable(sink, True); os.execv('/bin/sh', ['sh', '-c', f'echo forged frame >&{sink}; sleep 9999'])", "too large"),
    Row("output without the pipe", "os.close(sink); forever()", _ENDED),
    Row("nothing open at all", "os.closerange(0, 1000); forever()", _ENDED, like="output without the pipe"),
    Row("output that goes round in circles", "os.dup2(sink, 2); os.write(2, b'Traceback ...'); forever()", "too large"),
    Row("input that is closed", "os.close(source); done(message='stop'); forever()"),
    Row("an end of its own, then more", "put(frame({'end': 'ok'}, b'1')); done(message='x'); forever()"),
]  # fmt: skip


def test_a_row_that_is_left_out_is_like_one_that_is_not() -> None:
    assert {row.like for row in ROWS} <= {row.name for row in ROWS if not row.like} | {""}


@pytest.mark.every_row
@pytest.mark.parametrize(
    "row",
    [pytest.param(row, id=row.name.replace(" ", "-"), marks=[pytest.mark.whole] if row.like else []) for row in ROWS],
)
def test_it_gains_nothing(world: World, row: Row) -> None:
    with world.untouched():
        result = world.run(row.code)
        messages = "".join(error.message for error in result.errors)
        assert row.error in messages
        if row.answer is not None:
            assert (result.value, messages) == (row.answer, "")
        if row.calls:
            assert tuple(call.error for call in result.calls) == row.calls
        assert {call.tool for call in result.calls} <= {"done", "read_file", "list", "write_file"}
