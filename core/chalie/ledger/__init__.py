"""The ledger: what people decided and what was done, in one SQLite file that many processes share."""

from .approvers import ApproverRow, Approvers
from .declined import Declined, DeclinedRow
from .enabled import Enabled, EnabledRow
from .hold import Hold
from .holds import Holds
from .inbox import Inbox, Message
from .jobs import Job, Jobs
from .ledger import Ledger
from .permissions import PermissionRow, Permissions
from .pins import Pin, PinRow, Pins
from .results import KeptResult, Results
from .trail import EVENTS, Trail, TrailRow

__all__ = [
    "EVENTS",
    "ApproverRow",
    "Approvers",
    "Declined",
    "DeclinedRow",
    "Enabled",
    "EnabledRow",
    "Hold",
    "Holds",
    "Inbox",
    "Job",
    "Jobs",
    "KeptResult",
    "Ledger",
    "Message",
    "PermissionRow",
    "Permissions",
    "Pin",
    "PinRow",
    "Pins",
    "Results",
    "Trail",
    "TrailRow",
]
