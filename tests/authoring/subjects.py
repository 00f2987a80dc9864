"""Abilities to lint, made from the few facts that a test is about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chalie.authoring.finding import Subject
from chalie.authoring.lint import Package, Report, lint
from chalie.authoring.settings import Settings
from chalie.calls import SideEffect
from chalie.catalogue.descriptor import Descriptor


def subject(name: str, summary: str, **facts: Any) -> Subject:
    """Return an ability of these facts; what is left out gives no finding."""
    descriptor = Descriptor(
        dist=facts.get("dist", "chalie-ability-planted"),
        dist_version="1",
        target="",
        name=name,
        summary=summary,
        examples=tuple(facts.get("examples", ())),
        search_tooltip=facts.get("tooltip", "A tool"),
        parameters=facts.get("parameters", {"type": "object", "properties": {}}),
        namespace=facts.get("namespace", name.partition("_")[0]),
        version="1",
        actions={action: SideEffect(effect) for action, effect in facts.get("actions", {}).items()},
        side_effect=SideEffect(facts.get("side_effect", "write")),
    )
    return Subject(descriptor.sealed())


def linted(*subjects: Subject, settings: Mapping[str, Any] | None = None, **more: Any) -> Report:
    """Return what lint says of abilities under these settings."""
    dist = subjects[0].descriptor.dist
    return lint([Package(dist, subjects, Settings(**(settings or {})))], **more)


def rules(report: Report) -> list[str]:
    """Return the ids of the rules that were broken, each once."""
    return sorted({finding.rule.id for finding in report.findings})
