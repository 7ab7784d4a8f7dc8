"""Imported functions: the tools of Python modules, under the names from their import."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from toolkit.errors import SetupError, nearest
from toolkit.runtime.functions import FunctionTool, LazyTool
from toolkit.runtime.packs import CodeTool, Pack, load_pack
from toolkit.runtime.workers import is_async


class FunctionTools:
    """Some tools of Python modules, loaded when a toolkit is built.

    :param sources: ``"module:*"`` or ``"module:REGISTRY"``.
    :param names: the name of each tool in this project -> its name in the module; other tools are left out.
    """

    def __init__(self, sources: Iterable[str], names: Mapping[str, str]) -> None:
        self.sources: Final = tuple(sources)
        self.names: Final = dict(names)

    def as_pack(self) -> Pack:
        tools = {tool.name: tool for source in self.sources for tool in load_pack(source).tools}
        for name in self.names.values():
            if name not in tools:
                raise SetupError(
                    f"the tool {name!r} no longer exists in {' or '.join(self.sources)}.{nearest(name, tools)}"
                    f" Run `toolkit import` and `toolkit generate` again"
                )
        return Pack(tools=[_rename(tools[name], own_name) for own_name, name in self.names.items()])


def _rename(tool: CodeTool, name: str) -> CodeTool:
    if tool.name == name:
        return tool
    if isinstance(tool, FunctionTool):
        return tool.replace(name=name)
    assert isinstance(tool, LazyTool)
    lazy = tool

    def make() -> FunctionTool[..., Any]:
        return lazy.load().replace(name=name)

    async def make_async() -> FunctionTool[..., Any]:
        return (await lazy.load_async()).replace(name=name)

    return LazyTool(make_async if is_async(lazy.factory) else make, name=name, permissions=lazy.permissions)
