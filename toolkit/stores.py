"""What outlives a call: audit log, output cache, todos, approvals, locks, subagents, and the keys handlers find them by.

Each store is a small interface with a default in files (``FileTodoStore``, ...) and one in Redis (``RedisStores``).
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.runtime.audit.settings import AuditFile as AuditFile
    from toolkit.runtime.audit.settings import AuditSink as AuditSink
    from toolkit.runtime.audit.verification import AUDIT_BEGINNING as AUDIT_BEGINNING
    from toolkit.runtime.audit.verification import AuditHead as AuditHead
    from toolkit.runtime.audit.verification import AuditReport as AuditReport
    from toolkit.runtime.audit.verification import chain_records as chain_records
    from toolkit.runtime.audit.verification import verify_lines as verify_lines
    from toolkit.runtime.stores.approvals import ApprovalStore as ApprovalStore
    from toolkit.runtime.stores.approvals import AsyncApprovalStore as AsyncApprovalStore
    from toolkit.runtime.stores.approvals import FileApprovalStore as FileApprovalStore
    from toolkit.runtime.stores.keys import APPROVAL_STORE as APPROVAL_STORE
    from toolkit.runtime.stores.keys import OUTPUT_CACHE as OUTPUT_CACHE
    from toolkit.runtime.stores.keys import SUBAGENT_RUNNER as SUBAGENT_RUNNER
    from toolkit.runtime.stores.keys import TODO_STORE as TODO_STORE
    from toolkit.runtime.stores.keys import WRITE_LOCKS as WRITE_LOCKS
    from toolkit.runtime.stores.keys import SubagentRequest as SubagentRequest
    from toolkit.runtime.stores.keys import SubagentResult as SubagentResult
    from toolkit.runtime.stores.keys import SubagentRunner as SubagentRunner
    from toolkit.runtime.stores.locks import AsyncWriteLocks as AsyncWriteLocks
    from toolkit.runtime.stores.locks import FileWriteLocks as FileWriteLocks
    from toolkit.runtime.stores.locks import WriteLocks as WriteLocks
    from toolkit.runtime.stores.locks import hold_lock as hold_lock
    from toolkit.runtime.stores.output_files import FileOutputCache as FileOutputCache
    from toolkit.runtime.stores.outputs import AsyncOutputCache as AsyncOutputCache
    from toolkit.runtime.stores.outputs import CachedLine as CachedLine
    from toolkit.runtime.stores.outputs import CachedOutput as CachedOutput
    from toolkit.runtime.stores.outputs import CountingWriter as CountingWriter
    from toolkit.runtime.stores.outputs import LineIndex as LineIndex
    from toolkit.runtime.stores.outputs import OutputCache as OutputCache
    from toolkit.runtime.stores.outputs import OutputWriter as OutputWriter
    from toolkit.runtime.stores.outputs import not_kept as not_kept
    from toolkit.runtime.stores.redis import AsyncRedisApprovalStore as AsyncRedisApprovalStore
    from toolkit.runtime.stores.redis import AsyncRedisServer as AsyncRedisServer
    from toolkit.runtime.stores.redis import AsyncRedisStores as AsyncRedisStores
    from toolkit.runtime.stores.redis import AsyncRedisTodoStore as AsyncRedisTodoStore
    from toolkit.runtime.stores.redis import AsyncRedisWriteLocks as AsyncRedisWriteLocks
    from toolkit.runtime.stores.redis import RedisApprovalStore as RedisApprovalStore
    from toolkit.runtime.stores.redis import RedisOutputCache as RedisOutputCache
    from toolkit.runtime.stores.redis import RedisServer as RedisServer
    from toolkit.runtime.stores.redis import RedisStores as RedisStores
    from toolkit.runtime.stores.redis import RedisTodoStore as RedisTodoStore
    from toolkit.runtime.stores.redis import RedisWriteLocks as RedisWriteLocks
    from toolkit.runtime.stores.todos import AsyncTodoStore as AsyncTodoStore
    from toolkit.runtime.stores.todos import FileTodoStore as FileTodoStore
    from toolkit.runtime.stores.todos import MemoryTodoStore as MemoryTodoStore
    from toolkit.runtime.stores.todos import Todo as Todo
    from toolkit.runtime.stores.todos import TodoStore as TodoStore
    from toolkit.runtime.stores.waiting import wait_for as wait_for
else:
    from toolkit.lazy_exports import lazy_exports

    __getattr__, __dir__ = lazy_exports()
