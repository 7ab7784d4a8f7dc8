"""The boundary: what a tool may touch, and the only code that touches the system for it.

Each folder is one concern and can be audited by itself: ``policy`` decides; ``files``, ``process`` and ``network`` act;
``review`` looks at what a command left. The guard imports the standard library, ``toolkit.errors`` and small modules next
to that. What is only convenient is built on top of it and listed here all the same: ``SandboxFS`` and transactions
(``toolkit.files``), HTTP (``toolkit.web``), ``git status`` (``toolkit.git``). Everything is loaded at its first use.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from toolkit.files.sandbox_fs import SandboxFS as SandboxFS
    from toolkit.files.transaction import Drop as Drop
    from toolkit.files.transaction import FileChange as FileChange
    from toolkit.files.transaction import Put as Put
    from toolkit.files.transaction import Recovery as Recovery
    from toolkit.git import GitChange as GitChange
    from toolkit.git import GitGuard as GitGuard
    from toolkit.git import GitStatus as GitStatus
    from toolkit.guard.files.handles import DirEntry as DirEntry
    from toolkit.guard.files.handles import EntryNames as EntryNames
    from toolkit.guard.files.handles import FileInfo as FileInfo
    from toolkit.guard.files.handles import OpenFile as OpenFile
    from toolkit.guard.files.handles import SandboxDir as SandboxDir
    from toolkit.guard.files.path import SandboxPath as SandboxPath
    from toolkit.guard.files.resolve import ResolverName as ResolverName
    from toolkit.guard.files.resolve import has_openat2 as has_openat2
    from toolkit.guard.files.write import Fingerprint as Fingerprint
    from toolkit.guard.files.write import WrittenFile as WrittenFile
    from toolkit.guard.network.hosts import AddressRules as AddressRules
    from toolkit.guard.network.hosts import Host as Host
    from toolkit.guard.network.hosts import HostPattern as HostPattern
    from toolkit.guard.network.hosts import Network as Network
    from toolkit.guard.network.hosts import Url as Url
    from toolkit.guard.permission import ALL_PERMISSIONS as ALL_PERMISSIONS
    from toolkit.guard.permission import PERMISSIONS as PERMISSIONS
    from toolkit.guard.permission import Carrier as Carrier
    from toolkit.guard.permission import CarrierChoice as CarrierChoice
    from toolkit.guard.permission import CommandLimits as CommandLimits
    from toolkit.guard.permission import CommandNetwork as CommandNetwork
    from toolkit.guard.permission import EndedBy as EndedBy
    from toolkit.guard.permission import GitMode as GitMode
    from toolkit.guard.permission import Mode as Mode
    from toolkit.guard.permission import Permission as Permission
    from toolkit.guard.permission import Permissions as Permissions
    from toolkit.guard.permission import SandboxChoice as SandboxChoice
    from toolkit.guard.permission import UnenforcedRules as UnenforcedRules
    from toolkit.guard.policy.policy import SecurityPolicy as SecurityPolicy
    from toolkit.guard.policy.policy import Verdict as Verdict
    from toolkit.guard.policy.preview import Preview as Preview
    from toolkit.guard.policy.rule import HINTS as HINTS
    from toolkit.guard.policy.rule import Decision as Decision
    from toolkit.guard.policy.rule import Hint as Hint
    from toolkit.guard.policy.rule import Rule as Rule
    from toolkit.guard.process.guard import LongProcess as LongProcess
    from toolkit.guard.process.guard import ProcessGuard as ProcessGuard
    from toolkit.guard.process.guard import ProcessResult as ProcessResult
    from toolkit.runtime.context import RUNS_LATER as RUNS_LATER
    from toolkit.visible import display as display
    from toolkit.web import NetGuard as NetGuard
    from toolkit.web import Response as Response
    from toolkit.web import ServiceGuard as ServiceGuard
else:
    from toolkit.lazy_exports import lazy_exports

    __getattr__, __dir__ = lazy_exports()
