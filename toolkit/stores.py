"""What outlives a call: the audit log, the output cache, todos, subagents, and the keys handlers find them by."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.runtime.audit.lines import AUDIT_BEGINNING as AUDIT_BEGINNING
    from toolkit.runtime.audit.lines import chain_records as chain_records
    from toolkit.runtime.audit.settings import AuditFile as AuditFile
    from toolkit.runtime.audit.sink import AuditSink as AuditSink
    from toolkit.runtime.audit.verification import AuditHead as AuditHead
    from toolkit.runtime.audit.verification import AuditReport as AuditReport
    from toolkit.runtime.audit.verification import verify_lines as verify_lines
    from toolkit.runtime.output.cache.store import FileOutputCache as FileOutputCache
    from toolkit.runtime.output.cache.store import OutputCache as OutputCache
    from toolkit.runtime.output.cache.store import OutputWriter as OutputWriter
    from toolkit.runtime.stores.keys import OUTPUT_CACHE as OUTPUT_CACHE
    from toolkit.runtime.stores.keys import SUBAGENT_RUNNER as SUBAGENT_RUNNER
    from toolkit.runtime.stores.keys import TODO_STORE as TODO_STORE
    from toolkit.runtime.stores.subagent import SubagentRequest as SubagentRequest
    from toolkit.runtime.stores.subagent import SubagentResult as SubagentResult
    from toolkit.runtime.stores.subagent import SubagentRunner as SubagentRunner
    from toolkit.runtime.stores.todos import FileTodoStore as FileTodoStore
    from toolkit.runtime.stores.todos import MemoryTodoStore as MemoryTodoStore
    from toolkit.runtime.stores.todos import Todo as Todo
    from toolkit.runtime.stores.todos import TodoStore as TodoStore
else:
    from toolkit.lazy_exports import lazy_exports

    __all__, __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "toolkit.runtime.audit.lines": "AUDIT_BEGINNING chain_records",
            "toolkit.runtime.audit.settings": "AuditFile",
            "toolkit.runtime.audit.sink": "AuditSink",
            "toolkit.runtime.audit.verification": "AuditHead AuditReport verify_lines",
            "toolkit.runtime.stores.keys": "OUTPUT_CACHE TODO_STORE SUBAGENT_RUNNER",
            "toolkit.runtime.output.cache.store": "OutputCache FileOutputCache OutputWriter",
            "toolkit.runtime.stores.todos": "Todo TodoStore FileTodoStore MemoryTodoStore",
            "toolkit.runtime.stores.subagent": "SubagentRequest SubagentResult SubagentRunner",
        },
    )
