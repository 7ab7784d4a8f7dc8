"""Asking a person before a call runs: the request, the answers an approver can return, and calls that wait for one."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.runtime.approvals import ApprovalPending as ApprovalPending
    from toolkit.runtime.approvals import Suspend as Suspend
    from toolkit.runtime.approvals import SuspendedCall as SuspendedCall
    from toolkit.runtime.call.approval import ApprovalRequest as ApprovalRequest
    from toolkit.runtime.call.approval import Approve as Approve
    from toolkit.runtime.call.approval import Deny as Deny
    from toolkit.runtime.call.approval import Edit as Edit
    from toolkit.runtime.call.approval import Respond as Respond
else:
    from toolkit.lazy_exports import lazy_exports

    __all__, __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "toolkit.runtime.call.approval": "ApprovalRequest Approve Deny Edit Respond",
            "toolkit.runtime.approvals": "ApprovalPending Suspend SuspendedCall",
        },
    )
