"""The audit log: records of calls, the sinks they go to, and how to verify them."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.runtime.audit.log import AuditLog as AuditLog
    from toolkit.runtime.audit.settings import AuditFile as AuditFile
    from toolkit.runtime.audit.settings import AuditSink as AuditSink
    from toolkit.runtime.audit.verification import AUDIT_BEGINNING as AUDIT_BEGINNING
    from toolkit.runtime.audit.verification import AuditHead as AuditHead
    from toolkit.runtime.audit.verification import AuditReport as AuditReport
    from toolkit.runtime.audit.verification import chain_records as chain_records
    from toolkit.runtime.audit.verification import verify as verify
    from toolkit.runtime.audit.verification import verify_lines as verify_lines
else:
    from toolkit.lazy_exports import lazy_exports

    __getattr__, __dir__ = lazy_exports()
