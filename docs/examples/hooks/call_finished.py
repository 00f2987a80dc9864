"""One line of the log for each call that ended."""

import logging

from chalie import CallRecord, hookimpl

log = logging.getLogger("chalie_plugin_meter")


@hookimpl
def call_finished(record: CallRecord) -> None:
    log.info("%s: %s, %d ms", record.permission, record.code or "ok", record.duration_us // 1000)
