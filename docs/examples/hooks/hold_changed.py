"""Says that a call waits, wherever the program's log goes."""

import logging

from chalie import HoldChange, hookimpl

log = logging.getLogger("chalie_plugin_bell")


@hookimpl
def hold_changed(change: HoldChange) -> None:
    if change.after == "pending":
        log.warning("%s waits for you: chalie approve %s", change.permission, change.id)
    else:
        log.info("%s is %s (%s)", change.id, change.after, change.by or "the host")
