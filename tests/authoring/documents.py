"""Catalogues of a few abilities, without a home and without an index."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from chalie.catalogue import tables
from chalie.catalogue.descriptor import Descriptor
from chalie.catalogue.identity import Document, document
from chalie.catalogue.snapshot import Snapshot
from chalie.catalogue.tables import Contents, DistributionRow
from chalie.names import OWN_DIST


def document_of(items: Sequence[Descriptor]) -> Document:
    """Return the catalogue that a host with these abilities would publish."""
    own = [item for item in items if item.dist == OWN_DIST]
    brought = [item for item in items if item.dist != OWN_DIST]
    dists = sorted({item.dist for item in brought})
    rows = tuple(DistributionRow(dist, "1", "", "", "", False, "ready") for dist in dists)
    with tempfile.TemporaryDirectory() as folder:
        tables.write(Path(folder, tables.FILE), Contents(rows, tuple(brought)), {})
        snapshot = Snapshot.open(Path(folder))
        try:
            return document(snapshot, own)
        finally:
            snapshot.close()
