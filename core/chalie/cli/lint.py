"""`chalie lint`: what the names, texts, parameters and classes of tools get wrong, and how to mend it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..config import normal_dist
from ..errors import ChalieError, ConfigError
from . import exits, lookup
from .completion import packages
from .opening import opened, working
from .output import as_json, emit, note, pairs

if TYPE_CHECKING:
    from ..authoring.finding import Finding, Rule
    from ..authoring.fixes import Repair
    from ..authoring.lint import Package, Report
    from ..host import Host

__all__ = ["command"]


@click.command("lint")
@click.argument("what", metavar="[PACKAGE|PATH]", required=False, shell_complete=packages)
@click.option(
    "--settings",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Take [tool.chalie.lint] from another pyproject.toml.",
)
@click.option("--strict", is_flag=True, help="Fail for warnings too.")
@click.option("--fix", is_flag=True, help="Repair in the project's folder what can be repaired safely.")
@click.option("--explain", metavar="RULE", help="Print what a rule is about, and nothing else.")
@as_json
@click.pass_context
def command(
    context: click.Context,
    what: str | None,
    settings: Path | None,
    strict: bool,
    fix: bool,
    explain: str | None,
    json_: bool,
) -> int:
    """Check the names, texts, parameters and classes of tools against the rules of a catalogue.

    Looks at every installed package, at one PACKAGE, at the project in a folder PATH, or at a catalogue's
    JSON file PATH. Exit code 1 if there is an error, or with --strict anything at all.
    """
    if explain is not None:
        return _explained(explain, json_)
    from ..authoring.lint import lint

    path = None if what is None or not Path(what).exists() else Path(what)
    if fix and (path is None or not path.is_dir()):
        raise click.UsageError("--fix edits source: name the project's folder, as in chalie lint . --fix")
    repairs: list[Repair] = []
    with opened(context) as host, working("looking at the tools"):
        found = _packages(host, what, path, settings)
        rivals, model = [item for _, item in host.snapshot.abilities()], _model(host)
        report = lint(found, rivals=rivals if path is None or path.is_dir() else (), model=model)
        if fix and path is not None:
            from ..authoring.fixes import repair

            repairs = repair(path, report.findings)
            if repairs:
                found = _packages(host, what, path, settings)
                report = lint(found, rivals=rivals, model=model)
    _print(report, repairs, json_)
    return exits.NOTHING if report.fails(strict=strict) else exits.OK


def _packages(host: Host, what: str | None, path: Path | None, settings: Path | None) -> list[Package]:
    from ..authoring import sources

    if path is not None and path.is_dir():
        return [sources.project(path, limit_s=host.config.limits.describe_s, settings=settings)]
    if path is not None:
        return [sources.catalogue_file(path, settings)]
    if what is None:
        dists = [row.name for row in host.snapshot.distributions() if row.state == "ready"]
        return sources.installed(host.snapshot, dists, settings)
    dist = normal_dist(what)
    if "/" in what or what.endswith((".json", ".toml")):
        raise ConfigError(f"there is no file or folder {what}")
    if lookup.known_package(host, dist) is None:
        raise lookup.absent_package(host, dist)
    return sources.installed(host.snapshot, [dist], settings)


def _model(host: Host) -> Path | None:
    """Return the embedding model's folder; None where there is none to ask the examples with."""
    from ..discovery.embedding import model_folder

    try:
        return model_folder(host.config.discovery.model, host.snapshot.entry_points("chalie.models"))
    except ChalieError:
        return None


def _print(report: Report, repairs: list[Repair], json_: bool) -> None:
    counts = Counter(finding.rule.severity for finding in report.findings)
    if json_:
        emit(
            {
                "findings": [_row(finding) for finding in report.findings],
                "tools": report.abilities,
                "errors": counts["error"],
                "warnings": counts["warning"],
                "fixed": [{"path": str(r.path), "rules": r.rules, "lines": r.lines} for r in repairs],
                "not_asked": report.unsearched or None,
            }
        )
        return
    for repaired in repairs:
        many = "lines" if repaired.lines > 1 else "line"
        click.echo(f"fixed {', '.join(repaired.rules)} in {repaired.path} ({repaired.lines} {many})")
    for finding in report.findings:
        click.echo()
        pairs(
            [
                (finding.rule.severity, f"{finding.rule.id}: {finding.message}"),
                ("fix", finding.fix),
                ("page", finding.rule.page),
            ]
        )
    if report.findings:
        click.echo()
    many = "tools" if report.abilities != 1 else "tool"
    said = [f"{counts[kind]} {kind}{'s' if counts[kind] > 1 else ''}" for kind in counts]
    click.echo(f"{', '.join(said) or 'nothing to mend'} in {report.abilities} {many}")
    if report.unsearched:
        note(f"the examples were not asked: {report.unsearched}")


def _row(finding: Finding) -> dict[str, Any]:
    return {
        "rule": finding.rule.id,
        "severity": finding.rule.severity,
        "package": finding.dist,
        "tool": finding.tool,
        "where": finding.where,
        "message": finding.message,
        "fix": finding.fix,
        "page": finding.rule.page,
        "exception": finding.key,
    }


def _explained(name: str, json_: bool) -> int:
    from ..authoring.lint import RULES

    rule: Rule | None = RULES.get(name)
    if rule is None:
        near = lookup.nearest(name, RULES)
        advice = f"did you mean {near}?" if near else f"the rules are {', '.join(RULES)}"
        raise click.UsageError(f"there is no rule {name!r}; {advice}")
    facts = {"rule": rule.id, "severity": rule.severity, "says": rule.says, "why": rule.why}
    facts |= {"wrong": rule.wrong, "right": rule.right, "page": rule.page}
    if json_:
        emit(facts | {"fixable": rule.fixable})
    else:
        pairs(facts.items())
    return exits.OK
