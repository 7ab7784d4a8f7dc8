"""Subclasses of a toolkit: what they add is typed, and `invoke` may be replaced by a method that takes any name."""

from typing import Any, reveal_type

from toolkit.generated import AsyncToolkit, Toolkit


class Extended(Toolkit):
    def size_of(self, path: str) -> int:
        reveal_type(self.invoke("read_file", {"path": path}).content)  # revealed: ReadFileOutput
        self.invoke("read_file", {"paht": path})  # error
        return self.invoke("read_file", {"path": path}).content.size


class Replaced(Toolkit):
    def invoke(self, name: Any, args: Any) -> Any:
        return super().invoke(name, args)


class AsyncReplaced(AsyncToolkit):
    async def invoke(self, name: Any, args: Any) -> Any:
        return await super().invoke(name, args)


class ReplacedForOtherNames(Toolkit):
    def invoke(self, name: int, args: Any) -> Any:  # error
        return args
