"""Homes for tests: each its own, with a catalogue that is built once for each import path."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..calls import Approver
    from ..host import Host

__all__ = ["catalogued", "open_host"]


def catalogued(cache: Path) -> Path:
    """Return a home that has read everything installed; it is built on the first call for an import path.

    Args:
        cache: a folder that the tests of one run share.
    """
    from filelock import FileLock

    from ..build import build
    from ..config import Config, environment_key

    home = cache / f"chalie-{environment_key()}"
    home.mkdir(mode=0o700, exist_ok=True)
    with FileLock(cache / f"{home.name}.lock"):
        # Whoever asks ran the installer to its end: young files are no reason to wait.
        build(Config.load(home), quiet_s=0.0)
    return home


@contextmanager
def open_host(
    home: Path, cache: Path, *, approver: Approver | None = None, enabled: str | None = None
) -> Iterator[Host]:
    """Open a host on a fresh home for the length of the block.

    Args:
        home: the folder; made here.
        cache: a folder that the tests of one run share.
        approver: who can be asked.
        enabled: a distribution whose policies and plugins are loaded, with its allow counted.
    """
    from ..host import Host

    known = catalogued(cache)
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    shutil.copytree(known / "generations", home / "generations", dirs_exist_ok=True)
    if enabled is not None:
        _enable(home, enabled)
    with Host.open(home, approver=approver) as host:
        if host.upkeep.pending:
            host.upkeep.refresh()
        if host.approver_token is None:
            from ..ledger.approvers import OWN_APPROVER

            host.approver_token = host.ledger.approvers.add(OWN_APPROVER)
        yield host


def _enable(home: Path, dist: str) -> None:
    from ..build import generations_of
    from ..config import Config, environment_key
    from ..ledger import Ledger

    config = Config.load(home)
    generation = generations_of(config).current()
    row = None if generation is None else generation.snapshot.distribution(dist)
    if row is None:
        return
    environment = environment_key()
    with Ledger.open(config.ledger_path) as ledger:
        ledger.enabled.set(dist, row.files_hash, environment, by="test")
        ledger.enabled.trust(dist, row.files_hash, True, by="test")
