"""Signatures as the text that a model reads: one line for a tool, then one for each class it uses, in the order of the names.

The text depends only on the tools in it. A tool that is added later adds its own lines and changes no other, so that a
provider's prompt cache keeps what comes before them.

If a text must be short, every tool is shown in the fullest form in which all fit. Then tools are shown in the next fuller
form, in the order of their names, where there is room. The forms: with all classes; without the classes of the output; as a
name and one sentence; as a name.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

from toolkit.errors import SetupError
from toolkit.runtime.signatures.generated_tool import CONTENT_CLASSES
from toolkit.runtime.signatures.model_source import CONTENT_OUTPUT
from toolkit.runtime.signatures.signature import ToolSignature

HEAD: Final = (
    "# Tools as Python functions. Pass arguments by name; one with a default may be left out. "
    f"A function without -> returns a {CONTENT_OUTPUT}."
)
LEAST_BUDGET: Final = 400
"""Room for the first and the last line."""
DESCRIBE, SEARCH = "describe_tools", "search_tools"


def prompt_text(
    signatures: Iterable[ToolSignature], budget: int | None = None, *, ways: Collection[str] = (DESCRIBE, SEARCH)
) -> str:
    """The text for a model, of at most ``budget`` characters. ``ways`` are the tools that tell it more."""
    if budget is not None and budget < LEAST_BUDGET:
        raise SetupError(f"a budget is a number of characters, at least {LEAST_BUDGET}, not {budget}")
    tools = sorted(signatures, key=lambda tool: tool.name)
    whole = _join(tools, [_FULL] * len(tools))
    if budget is None or len(whole) <= budget:
        return whole
    return _shorten(tools, budget, ways)


def function_line(tool: ToolSignature) -> str:
    """A tool as the head of a function, with its sentence and the names that differ in JSON as a comment."""
    notes = [f"{tool.name!r}."] if tool.name != tool.attribute else []
    notes += [tool.doc] if tool.doc else []
    notes += [f"In JSON: {', '.join(repr(wire) for _, wire in tool.renamed)}."] if tool.renamed else []
    comment = f"  # {' '.join(notes)}" if notes else ""
    output = "" if tool.output == CONTENT_OUTPUT else f" -> {tool.output}"
    return f"{tool.attribute}({tool.parameters}){output}{comment}"


def _shorten(tools: Sequence[ToolSignature], budget: int, ways: Collection[str]) -> str:
    """The text with an end that says how to learn more, which counts too."""
    end = f"\n{_how_to_learn_more(ways)}"
    room = budget - len(end)
    level = next((level for level in (_CALLS, _SENTENCE, _NAME) if _size(tools, level) <= room), None)
    if level is None:
        return _some_names(tools, room) + end
    forms = [level] * len(tools)
    size = _size(tools, level)
    shared: set[str] = set()
    for index, tool in enumerate(tools):
        with_it = shared.union(tool.classes).intersection(CONTENT_CLASSES) if level + 1 == _FULL else shared
        size_with_it = size + len(_text(tool, level + 1)) - len(_text(tool, level))
        size_with_it += sum(len(line) + 1 for line in with_it - shared)
        if size_with_it <= room:
            forms[index], size, shared = level + 1, size_with_it, with_it
    return _join(tools, forms) + end


def _size(tools: Sequence[ToolSignature], level: int) -> int:
    return len(_join(tools, [level] * len(tools)))


def _join(tools: Sequence[ToolSignature], forms: Sequence[int]) -> str:
    """The head, the tools with functions, the classes that they share, and the other tools."""
    with_functions = [_text(tool, form) for tool, form in zip(tools, forms, strict=True) if form >= _CALLS]
    others = [_text(tool, form) for tool, form in zip(tools, forms, strict=True) if form < _CALLS]
    shared = [
        line
        for line in CONTENT_CLASSES
        if any(form == _FULL and line in tool.classes for tool, form in zip(tools, forms, strict=True))
    ]
    return "\n".join([HEAD, *with_functions, *shared, *others])


def _some_names(tools: Sequence[ToolSignature], room: int) -> str:
    """As many names as there is room for."""
    shown, size = [HEAD], len(HEAD)
    for tool in tools:
        size += len(tool.name) + 1
        if size > room:
            break
        shown.append(tool.name)
    return "\n".join(shown)


def _how_to_learn_more(ways: Collection[str]) -> str:
    sentences = {
        DESCRIBE: f"{DESCRIBE}(names=[...]) shows tools in full.",
        SEARCH: f"{SEARCH}(query=...) finds tools by words.",
    }
    found = [sentence for way, sentence in sentences.items() if way in ways]
    return " ".join(["# Not everything about the tools is shown here.", *found])


def _full(tool: ToolSignature) -> str:
    own = [line for line in tool.classes if line not in CONTENT_CLASSES]
    return "\n".join([function_line(tool), *own])


def _without_output(tool: ToolSignature) -> str:
    return "\n".join([function_line(tool), *tool.argument_classes])


def _sentence(tool: ToolSignature) -> str:
    return f"{tool.name}: {tool.doc}" if tool.doc else tool.name


def _name(tool: ToolSignature) -> str:
    return tool.name


_FORMS: Final[tuple[Callable[[ToolSignature], str], ...]] = (_name, _sentence, _without_output, _full)
_NAME, _SENTENCE, _CALLS, _FULL = range(len(_FORMS))


def _text(tool: ToolSignature, form: int) -> str:
    return _FORMS[form](tool)
