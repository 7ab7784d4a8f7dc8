"""The built-in tools: each spec is next to its handler, and all are bound as any project binds its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from toolkit.generated import bind

if TYPE_CHECKING:
    from toolkit.builtin.files import edit, read_file, tree, write_file
    from toolkit.builtin.files import list as list_directory
    from toolkit.builtin.patch import apply_patch
    from toolkit.builtin.search import glob, grep
    from toolkit.builtin.session import (
        describe_tools,
        done,
        search_tools,
        task,
        todoread,
        todowrite,
        tool_output_cache,
        tool_output_cache_grep,
    )
    from toolkit.builtin.shell import bash, exec_command, git_status_summary, run_program
    from toolkit.builtin.web import webfetch
else:
    # The same modules, each imported at the first use of its tool.
    from toolkit.runtime.packs import LazyModule

    tool_output_cache = LazyModule("toolkit.builtin.session.tool_output_cache")
    tool_output_cache_grep = LazyModule("toolkit.builtin.session.tool_output_cache_grep")
    describe_tools = LazyModule("toolkit.builtin.session.describe_tools")
    search_tools = LazyModule("toolkit.builtin.session.search_tools")
    edit = LazyModule("toolkit.builtin.files.edit", has_preview=True)
    list_directory = LazyModule("toolkit.builtin.files.list")
    read_file = LazyModule("toolkit.builtin.files.read_file")
    tree = LazyModule("toolkit.builtin.files.tree")
    write_file = LazyModule("toolkit.builtin.files.write_file", has_preview=True)
    git_status_summary = LazyModule("toolkit.builtin.shell.git_status_summary")
    apply_patch = LazyModule("toolkit.builtin.patch.apply_patch", has_preview=True)
    run_program = LazyModule("toolkit.builtin.shell.run_program", has_preview=True)
    glob = LazyModule("toolkit.builtin.search.glob")
    grep = LazyModule("toolkit.builtin.search.grep")
    done = LazyModule("toolkit.builtin.session.done")
    task = LazyModule("toolkit.builtin.session.task")
    todoread = LazyModule("toolkit.builtin.session.todoread")
    todowrite = LazyModule("toolkit.builtin.session.todowrite")
    bash = LazyModule("toolkit.builtin.shell.bash")
    exec_command = LazyModule("toolkit.builtin.shell.exec_command")
    webfetch = LazyModule("toolkit.builtin.web.webfetch")

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
    run_program=run_program.run,
    git_status_summary=git_status_summary.run,
    done=done.run,
    task=task.run,
    todoread=todoread.run,
    todowrite=todowrite.run,
    webfetch=webfetch.run,
    tool_output_cache=tool_output_cache.run,
    tool_output_cache_grep=tool_output_cache_grep.run,
    describe_tools=describe_tools.run,
    search_tools=search_tools.run,
)
