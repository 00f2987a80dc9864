"""Lint: every rule over every ability, less what a package has given a reason for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final

from attrs import field, frozen

from ..catalogue.descriptor import Descriptor
from . import classes, examples, letters, naming, parameters, vocabulary, wording
from .finding import Finding, Rule, Subject, rule
from .settings import Settings

__all__ = ["RULES", "Package", "Report", "lint"]

STALE: Final = rule("exception-stale")
REASON: Final = rule("exception-reason")
RULES: Final[Mapping[str, Rule]] = MappingProxyType(
    {
        rule.id: rule
        for rule in (
            *naming.RULES,
            *parameters.RULES,
            *letters.RULES,
            *wording.RULES,
            *examples.RULES,
            *classes.RULES,
            STALE,
            REASON,
        )
    }
)
_SHORTEST_REASON: Final = 8


@frozen
class Package:
    """What is linted together, under one set of settings.

    Attributes:
        dist: the distribution; empty for a catalogue's file.
        subjects: its abilities.
        settings: its choices.
        folder: the project's folder, where its source can be edited; else None.
    """

    dist: str
    subjects: tuple[Subject, ...]
    settings: Settings = field(factory=Settings)
    folder: Path | None = None


@frozen
class Report:
    """What lint found.

    Attributes:
        findings: in the order of packages and abilities.
        abilities: how many were looked at.
        unsearched: why the examples were not asked; empty where they were.
    """

    findings: tuple[Finding, ...] = ()
    abilities: int = 0
    unsearched: str = ""

    def fails(self, *, strict: bool = False) -> bool:
        """Tell whether there is an error, or with `strict` anything at all."""
        return any(strict or finding.rule.severity == "error" for finding in self.findings)


def lint(
    packages: Sequence[Package], *, rivals: Iterable[Descriptor] = (), model: Path | None = None
) -> Report:
    """Return what is wrong with packages' abilities.

    Args:
        packages: what is looked at.
        rivals: other abilities that may win their examples, such as the installed ones.
        model: the embedding model's folder; without one the examples are not asked.
    """
    words = vocabulary.load()
    subjects = [subject for package in packages for subject in package.subjects]
    lost: dict[tuple[str, str], list[Finding]] = {}
    if model is not None:
        for finding in examples.check(subjects, rivals, model):
            lost.setdefault((finding.dist, finding.tool), []).append(finding)
    kept: list[Finding] = []
    for package in packages:
        found: list[Finding] = []
        for subject in package.subjects:
            found += naming.check(subject, words)
            found += parameters.check(subject, words, package.settings.parameters)
            found += letters.check(subject)
            found += wording.check(subject, words)
            found += classes.check(subject, words)
            found += lost.get(subject.descriptor.key, ())
        kept += _excused(package, found, searched=model is not None)
    return Report(tuple(kept), len(subjects), "" if model else "no embedding model is installed")


def _excused(package: Package, found: Sequence[Finding], *, searched: bool) -> list[Finding]:
    """Return the findings that no exception covers, and what is wrong with the exceptions."""
    exceptions = package.settings.exceptions
    used: set[str] = set()
    kept: list[Finding] = []
    for finding in found:
        keys = [
            key
            for key in (finding.key, f"{finding.key.partition(':')[0]}:{finding.rule.id}")
            if key in exceptions
        ]
        used.update(keys)
        if not keys:
            kept.append(finding)
    unasked = "" if searched else f":{examples.LOST.id}"
    for key, reason in exceptions.items():
        if key not in used and not (unasked and key.endswith(unasked)):
            kept.append(_stale(package, key))
        elif len(reason.strip()) < _SHORTEST_REASON:
            kept.append(
                _of(package, REASON, key, f"the exception {key} has no reason", f'write it: {key} = "…"')
            )
    return kept


def _stale(package: Package, key: str) -> Finding:
    name = key.partition(":")[0].partition(".")[0]
    known = any(subject.descriptor.name == name for subject in package.subjects)
    why = "nothing needs it" if known else f"no ability is called {name}"
    return _of(package, STALE, key, f"the exception {key} is stale: {why}", "remove the line")


def _of(package: Package, rule: Rule, key: str, message: str, fix: str) -> Finding:
    where = package.settings.path.name if package.settings.path else "settings"
    return Finding(rule, package.dist, key.partition(":")[0].partition(".")[0], where, message, fix, key)
