"""What the contract asks of packages of playbooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .bench import Bench, Fault

if TYPE_CHECKING:
    from ..catalogue.descriptor import Playbook
    from ..host import Host

__all__ = ["found", "readable"]

_FIRST: Final = 3


def readable(bench: Bench) -> list[Fault]:
    """Return what is wrong with its files."""
    with bench.host() as host:
        faults = [
            Fault(problem.entry_point or problem.dist, problem.reason, problem.fix)
            for problem in host.snapshot.problems()
            if problem.dist == bench.dist and problem.phase in ("playbook", "metadata", "scan", "files")
        ]
        if not faults and not host.snapshot.playbooks_of(bench.dist):
            fix = "make a folder for each in the package its entry point names, with a SKILL.md, and pack it"
            faults.append(Fault(bench.dist, "it brings no playbook", fix))
    return faults


def found(bench: Bench) -> list[Fault]:
    """Return the playbooks that neither their name nor their description finds."""
    faults: list[Fault] = []
    with bench.host() as host:
        for playbook in host.snapshot.playbooks_of(bench.dist):
            for what, text in (
                ("name", playbook.name.replace("-", " ")),
                ("description", playbook.description),
            ):
                if not _finds(host, text, playbook):
                    fix = "say in `description` what it does and when to use it, in words others do not use"
                    faults.append(Fault(playbook.name, f"its {what} does not find it: {text[:80]!r}", fix))
    return faults


def _finds(host: Host, text: str, playbook: Playbook) -> bool:
    hits = host.find([text], "playbook").hits
    return playbook.key in [hit.item.key for hit in hits[:_FIRST]]
