"""The ledger: what people decided and what was done, in one SQLite file that many processes share."""

from .approvers import ApproverRow, Approvers
from .enabled import Enabled, EnabledRow
from .inbox import Inbox, Message
from .jobs import Job, Jobs
from .ledger import Ledger
from .permissions import PermissionRow, Permissions
from .results import KeptResult, Results
from .trail import EVENTS, Trail, TrailRow

__all__ = [
    "EVENTS",
    "ApproverRow",
    "Approvers",
    "Enabled",
    "EnabledRow",
    "Inbox",
    "Job",
    "Jobs",
    "KeptResult",
    "Ledger",
    "Message",
    "PermissionRow",
    "Permissions",
    "Results",
    "Trail",
    "TrailRow",
]
