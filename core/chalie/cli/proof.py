"""Who is at the command line: the owner at a terminal, or somebody with an approver token."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..host import Host

__all__ = ["proven"]


def proven(host: Host) -> str:
    """Return who decides here, as it is written on the trail (`terminal:ada`, `token:phone`).

    Raises:
        NotAuthorised: neither the home's owner at a terminal nor an approver token.
    """
    return host.authority.prove(host.config.approver_token)
