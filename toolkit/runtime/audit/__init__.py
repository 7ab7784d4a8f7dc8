"""The audit log, and how to verify it."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.runtime.audit.log import AuditHead as AuditHead
    from toolkit.runtime.audit.log import AuditLog as AuditLog
    from toolkit.runtime.audit.log import AuditReport as AuditReport
    from toolkit.runtime.audit.log import verify as verify
else:
    from toolkit.lazy_exports import lazy_exports

    __all__, __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "toolkit.runtime.audit.log": "AuditHead AuditLog AuditReport verify",
        },
    )
