"""What lint looks at and what it says: subjects, rules and findings."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, Final, Literal

from attrs import frozen

from ..catalogue.descriptor import Descriptor
from ..gate.display import escaped
from ..names import is_server

__all__ = ["PAGE", "Finding", "Rule", "Severity", "Subject", "rule"]

Severity = Literal["error", "warning"]

#: the page that explains every rule; a rule's id is its anchor.
PAGE: Final = "docs/lint-rules.md"
_FOREIGN_NAME: Final = "_mcp_"


@frozen
class Rule:
    """One thing that lint looks for.

    Attributes:
        id: kebab-case, stable, the anchor on the page.
        severity: an error fails the run; a warning does where it is asked to.
        says: one line, what is required.
        why: a paragraph, the reason and the bounds of the rule.
        wrong, right: an example of each.
        fixable: whether `--fix` can repair it.
    """

    id: str
    severity: Severity
    says: str
    why: str
    wrong: str
    right: str
    fixable: bool = False

    @property
    def page(self) -> str:
        """The page and anchor that explain it."""
        return f"{PAGE}#{self.id}"


def rule(name: str) -> Rule:
    """Return a rule by its id, as `rules.toml` has it."""
    given = _rules()[name]
    return Rule(
        id=name,
        severity=given["severity"],
        says=given["says"],
        why=given["why"],
        wrong=given["wrong"],
        right=given["right"],
        fixable=given.get("fixable", False),
    )


@cache
def _rules() -> dict[str, Any]:
    return tomllib.loads((files(__package__) / "rules.toml").read_text("utf-8"))


@frozen
class Subject:
    """One ability that lint looks at.

    Attributes:
        descriptor: its facts.
        typed: whether the types of its parameters are known, and not their names alone.
        classed: whether the class of its calls is known.
    """

    descriptor: Descriptor
    typed: bool = True
    classed: bool = True

    @property
    def foreign(self) -> bool:
        """Whether it is a tool of an outside MCP server, which keeps its names."""
        item = self.descriptor
        return is_server(item.dist) or item.name.startswith(_FOREIGN_NAME)


@frozen
class Finding:
    """One thing that breaks a rule.

    Attributes:
        rule: which one.
        dist: the distribution; empty where it is not known.
        tool: the ability's name; empty for what concerns the package.
        where: the part of it: `name`, `summary`, `parameter taskId`, `example 3`, `pyproject.toml`.
        message: what is wrong, with what.
        fix: the next step.
        key: what an exception for it is called in the package's settings.
    """

    rule: Rule
    dist: str
    tool: str
    where: str
    message: str
    fix: str
    key: str

    @classmethod
    def of(
        cls, rule: Rule, subject: Subject, where: str, message: str, fix: str, *, key: str = ""
    ) -> Finding:
        """Return a finding about an ability, with nothing in it that hides or acts.

        Its exception is called `NAME:RULE` unless `key` says else.
        """
        item = subject.descriptor
        own = key or f"{item.name}:{rule.id}"
        return cls(rule, item.dist, item.name, escaped(where), escaped(message), escaped(fix), own)
