"""Whether an isolated package is still what was described; in this process it is never imported."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..catalogue.descriptor import Descriptor
from ..errors import ChalieError, NotReady

if TYPE_CHECKING:
    from ..catalogue.snapshot import Snapshot

__all__ = ["installed_stamp"]


def installed_stamp(descriptor: Descriptor, snapshot: Snapshot) -> str:
    """Return what tells one state of a package's files from another, having compared disk and catalogue.

    A worker process is of one such state: under another one it is replaced, so that an upgrade needs no
    restart of the host.

    Raises:
        NotReady: the files on disk are not those the descriptor was read from.
        ChalieError: `quarantined`, where the package is set aside.
    """
    from ..catalogue import installed

    row = snapshot.distribution(descriptor.dist)
    if row is not None and row.state == "quarantined":
        raise ChalieError(
            f"{row.name} is set aside: {row.reason}",
            code="quarantined",
            hint="`chalie doctor` tells how to fix it",
        )
    if row is None or row.state != "ready":
        raise NotReady(f"{descriptor.dist} is not ready", hint="wait a moment and call it again")
    found = installed.read(Path(row.path))
    if isinstance(found, installed.Distribution):
        now = found.footprint()
        if now.stamp == row.stamp or (found.version == row.version and now.files_hash() == row.files_hash):
            return row.files_hash
    raise NotReady(
        f"{row.name} changed since it was read",
        hint="it is being read again; wait a moment and call it again",
    )
