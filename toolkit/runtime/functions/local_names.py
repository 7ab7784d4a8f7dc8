"""Names that annotations mean in the function or class around a tool: its globals do not have them."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any, Final, ForwardRef

from toolkit.runtime.functions.signature import plain_function

_NAME: Final = re.compile(r"[^\W\d]\w*")


def find_local_names(function: Callable[..., Any], frame: FrameType) -> Mapping[str, object]:
    """What the annotations of a function mention among the locals of ``frame``, where the tool is made, and its closure.

    Only those are kept, so that a tool does not keep everything alive that is in the frame.
    """
    if frame.f_locals is frame.f_globals:
        return {}
    plain = inspect.unwrap(plain_function(function))
    mentioned = {name for text in _texts(getattr(plain, "__annotations__", {})) for name in _NAME.findall(text)}
    if not mentioned:
        return {}
    spaces = [_closure(plain), frame.f_locals]
    while _is_class_body(frame) and frame.f_back is not None:
        frame = frame.f_back
        if frame.f_locals is not frame.f_globals:
            spaces.insert(0, frame.f_locals)
    return {name: space[name] for space in spaces for name in mentioned.intersection(space)}


def _texts(annotations: Mapping[str, object]) -> list[str]:
    """The parts of annotations that are written as text: ``"Order"``, ``list["Order"]``."""
    found: list[str] = []
    left = list(annotations.values())
    while left:
        part = left.pop()
        if isinstance(part, str):
            found.append(part)
        elif isinstance(part, ForwardRef):
            found.append(part.__forward_arg__)
        else:
            left.extend(typing.get_args(part))
    return found


def _closure(function: Callable[..., Any]) -> dict[str, object]:
    names = getattr(getattr(function, "__code__", None), "co_freevars", ())
    found: dict[str, object] = {}
    for name, cell in zip(names, getattr(function, "__closure__", None) or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # assigned later
            continue
    return found


def _is_class_body(frame: FrameType) -> bool:
    return "__qualname__" in frame.f_locals and "__module__" in frame.f_locals
