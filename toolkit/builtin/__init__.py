"""The built-in tools: spec and handler beside each other, bound as any project binds its own."""

from __future__ import annotations

from typing import Final

from generated import bind
from toolkit.builtin.files import list as list_directory
from toolkit.builtin.files import read_file, tree
from toolkit.builtin.session import done

BUILTIN: Final = bind(
    list=list_directory.run,
    read_file=read_file.run,
    tree=tree.run,
    done=done.run,
)
