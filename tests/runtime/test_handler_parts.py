"""A handler keeps its ``text`` and ``preview``, whatever is wrapped around its ``run``."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from acme.generated import Rule, SecurityPolicy
from tests.runtime.conftest import Door, MakeDoor
from toolkit import Pack, ToolContext, ToolNotAllowed
from toolkit.builtin import BUILTIN
from toolkit.runtime.packs import HandlerParts

MODULE = """
from toolkit import Preview
from {decorators} import decorate

@decorate
def run(args, ctx):
    return {{"text": args.text.upper()}}

def text(output):
    return f"shouted: {{output.text}}"

def preview(args, ctx):
    return Preview(reads=(args.text,))
"""


def with_wraps(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


def without_wraps(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda args, ctx: function(args, ctx)


class Callee:
    """A handler that is an object."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, args: Any, ctx: ToolContext) -> Any:
        return self.function(args, ctx)


@pytest.fixture
def make_module(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    def make(decorate: Callable[..., Any] = lambda function: function, **more: object) -> Any:
        decorators = ModuleType("decorators_for_a_test")
        decorators.decorate = decorate  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, decorators.__name__, decorators)
        module = ModuleType("handler_for_a_test")
        monkeypatch.setitem(sys.modules, module.__name__, module)
        exec(MODULE.format(decorators=decorators.__name__), module.__dict__)
        vars(module).update(more)
        return module

    return make


def check_parts(make_door: MakeDoor, handler: Callable[..., Any]) -> None:
    policy = SecurityPolicy(default="allow", rules=[Rule("deny", tools=["shout"], path="secret*")])
    door = make_door(policy, packs=[Pack({"shout": handler})])
    message = door.invoke("shout", {"text": "open.txt"})
    assert (message.content.text, message.text()) == ("OPEN.TXT", "shouted: OPEN.TXT")
    with pytest.raises(ToolNotAllowed):
        door.invoke("shout", {"text": "secret.txt"})


def test_a_plain_function(make_door: MakeDoor, make_module: Callable[..., Any]) -> None:
    check_parts(make_door, make_module().run)


def test_a_decorator_with_wraps_in_the_module(make_door: MakeDoor, make_module: Callable[..., Any]) -> None:
    check_parts(make_door, make_module(with_wraps).run)


def test_a_decorator_with_wraps_where_the_handler_is_bound(
    make_door: MakeDoor, make_module: Callable[..., Any]
) -> None:
    check_parts(make_door, with_wraps(with_wraps(make_module(with_wraps).run)))


def test_a_decorator_without_wraps_is_given_its_parts(make_door: MakeDoor, make_module: Callable[..., Any]) -> None:
    module = make_module(without_wraps)
    check_parts(make_door, HandlerParts(module.run, text=module.text, preview=module.preview))


def test_an_object_in_the_module(make_door: MakeDoor, make_module: Callable[..., Any]) -> None:
    module = make_module()
    handler = type("Callee", (Callee,), {"__module__": module.__name__})(module.run)
    module.run = handler
    check_parts(make_door, handler)


def test_another_function_of_the_module_has_none(make_door: MakeDoor, make_module: Callable[..., Any]) -> None:
    module = make_module()
    exec("def other(args, ctx): return run(args, ctx)", module.__dict__)
    door = make_door(packs=[Pack({"shout": module.other})])
    assert door.invoke("shout", {"text": "a"}).text() == '{"text":"A"}'


def test_parts_can_be_called_as_the_handler(make_module: Callable[..., Any]) -> None:
    module = make_module()
    args = ModuleType("args")
    args.text = "a"  # type: ignore[attr-defined]
    assert HandlerParts(module.run)(args, None) == {"text": "A"}


# -- outputs that are not kept -------------------------------------------------------------------------------------------


def long_answer(args: Any, ctx: ToolContext) -> dict[str, str]:
    return {"text": "word " * 20_000}


def is_kept(door: Door) -> bool:
    message = door.invoke("shout", {"text": "x"})
    cut = "omitted here" in message.text()
    assert cut == (message.output_ref is not None)
    return cut


def test_a_module_declares_that_its_outputs_are_not_kept(make_door: MakeDoor, make_module: Callable[..., Any]) -> None:
    module = make_module()
    exec("def run(args, ctx): return {'text': 'word ' * 20_000}\ndel text, preview", module.__dict__)
    assert is_kept(make_door(packs=[Pack({"shout": module.run})]))
    module.KEEPS_OUTPUT = False
    assert not is_kept(make_door(packs=[Pack({"shout": module.run})]))


def test_parts_declare_that_outputs_are_not_kept(make_door: MakeDoor) -> None:
    assert is_kept(make_door(packs=[Pack({"shout": HandlerParts(long_answer)})]))
    assert not is_kept(make_door(packs=[Pack({"shout": HandlerParts(long_answer, keeps_output=False)})]))


def test_what_is_read_from_the_cache_is_not_kept_again(make_door: MakeDoor) -> None:
    door = make_door(packs=[Pack({"shout": long_answer}), BUILTIN])
    ref = door.invoke("shout", {"text": "x"}).output_ref
    page = door.invoke("tool_output_cache", {"ref_id": ref})
    found = door.invoke("tool_output_cache_grep", {"ref_id": ref, "pattern": "word"})
    assert len(page.text()) > 1000
    assert (page.output_ref, page.to_result("1").output_ref) == (None, None)
    assert (found.output_ref, found.to_result("1").output_ref) == (None, None)
