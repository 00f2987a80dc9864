"""Says what a running program has just learnt or lost."""

import logging
from collections.abc import Sequence

from chalie import hookimpl

log = logging.getLogger("chalie_plugin_news")


@hookimpl
def generation_published(added: Sequence[str], removed: Sequence[str]) -> None:
    changed = set(added) & set(removed)
    for tool in sorted({*added, *removed}):
        log.info("%s %s", "changed" if tool in changed else "new" if tool in added else "gone", tool)
