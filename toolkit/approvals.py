"""Asking a person before a call runs: the request, the answers an approver can return, and calls that wait for one."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.runtime.approvals import ApprovalPending as ApprovalPending
    from toolkit.runtime.approvals import ApprovalRequest as ApprovalRequest
    from toolkit.runtime.approvals import Approve as Approve
    from toolkit.runtime.approvals import Deny as Deny
    from toolkit.runtime.approvals import Edit as Edit
    from toolkit.runtime.approvals import Respond as Respond
    from toolkit.runtime.approvals import Suspend as Suspend
    from toolkit.runtime.approvals import SuspendedCall as SuspendedCall
else:
    from toolkit.lazy_exports import lazy_exports

    __all__, __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "toolkit.runtime.approvals": """ApprovalRequest Approve Deny Edit Respond ApprovalPending Suspend
                SuspendedCall""",
        },
    )
