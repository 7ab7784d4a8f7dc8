"""The built-in tools: each spec is next to its handler, and all are bound as any project binds its own."""

from __future__ import annotations

from typing import Final

from toolkit.builtin.cache import tool_output_cache, tool_output_cache_grep
from toolkit.builtin.edit import edit
from toolkit.builtin.files import list as list_directory
from toolkit.builtin.files import read_file, tree, write_file
from toolkit.builtin.git import git_status_summary
from toolkit.builtin.patch import apply_patch
from toolkit.builtin.search import glob, grep
from toolkit.builtin.session import done, task, todoread, todowrite
from toolkit.builtin.shell import bash, exec_command
from toolkit.builtin.web import webfetch
from toolkit.generated import bind

BUILTIN: Final = bind(
    edit=edit.run,
    list=list_directory.run,
    read_file=read_file.run,
    tree=tree.run,
    write_file=write_file.run,
    apply_patch=apply_patch.run,
    glob=glob.run,
    grep=grep.run,
    bash=bash.run,
    exec_command=exec_command.run,
    git_status_summary=git_status_summary.run,
    done=done.run,
    task=task.run,
    todoread=todoread.run,
    todowrite=todowrite.run,
    webfetch=webfetch.run,
    tool_output_cache=tool_output_cache.run,
    tool_output_cache_grep=tool_output_cache_grep.run,
)
