"""The rules of `budget.toml`, and those that hold without one."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any, Literal

from attrs import frozen
from chalie import Call, SideEffect
from chalie.config import home_path

__all__ = ["DEFAULT", "Rule", "read_rules"]


@frozen
class Rule:
    """At most `calls` calls in `seconds`.

    Attributes:
        permission: which one, `email` with all its actions or `email.send`; None for any.
        effect: only calls of this class; None for any.
        calls: how many, of each permission that fits.
        seconds: in how much time.
        then: `must_ask` or `deny`, for the next one.
        per: `principal` counts each one's calls apart, `all` everybody's together.
    """

    permission: str | None
    effect: SideEffect | None
    calls: int
    seconds: float
    then: Literal["must_ask", "deny"] = "must_ask"
    per: Literal["principal", "all"] = "principal"

    def fits(self, call: Call) -> bool:
        """Tell whether a call is one of those that are counted."""
        named = self.permission is None or call.permission == self.permission or call.name == self.permission
        return named and self.effect in (None, call.effect)

    @property
    def window(self) -> str:
        """The time in words."""
        minutes = self.seconds / 60
        return f"in {minutes:g} minutes" if minutes != 1 else "in a minute"


DEFAULT = (
    Rule(None, SideEffect.EXTERNAL_SEND, 20, 3600.0),
    Rule(None, SideEffect.DESTRUCTIVE, 20, 3600.0),
    Rule(None, None, 600, 600.0),
)

_KEYS = {"permission", "effect", "calls", "minutes", "then", "per"}


def read_rules(path: Path | None = None) -> tuple[Rule, ...]:
    """Return the rules of a file, or the default ones where there is none.

    Args:
        path: the file; left out, `CHALIE_BUDGET_FILE`, else `budget.toml` in the home folder.

    Raises:
        ValueError: it cannot be used as written; naming the rule and what is expected.
    """
    if path is None:
        path = Path(os.environ.get("CHALIE_BUDGET_FILE") or home_path() / "budget.toml")
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return DEFAULT
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path} is no TOML: {error}") from error
    limits = tables.pop("limit", [])
    if tables or not isinstance(limits, list):
        raise ValueError(f"{path} may hold [[limit]] tables only, not {', '.join(tables) or 'a limit'}")
    return tuple(_rule(limit, f"limit {number} of {path}") for number, limit in enumerate(limits, 1))


def _rule(given: dict[str, Any], which: str) -> Rule:
    unknown = sorted(set(given) - _KEYS)
    if unknown:
        raise ValueError(f"{which} has {', '.join(unknown)}; it may have {', '.join(sorted(_KEYS))}")
    calls, minutes = given.get("calls"), given.get("minutes")
    if not isinstance(calls, int) or isinstance(calls, bool) or calls < 0:
        raise ValueError(f"{which} needs calls, a whole number from 0")
    if not isinstance(minutes, int | float) or isinstance(minutes, bool) or not 0 < minutes <= 527_040:
        raise ValueError(f"{which} needs minutes, above 0 and up to a year's")
    then, per = given.get("then", "must_ask"), given.get("per", "principal")
    if then not in ("must_ask", "deny") or per not in ("principal", "all"):
        raise ValueError(f"{which}: then is must_ask or deny, per is principal or all")
    permission, effect = given.get("permission"), given.get("effect")
    if permission is not None and (not isinstance(permission, str) or not permission):
        raise ValueError(f"{which}: permission is a name, or name.action")
    try:
        effect = None if effect is None else SideEffect(effect)
    except ValueError as error:
        raise ValueError(f"{which}: effect is one of {', '.join(SideEffect)}") from error
    return Rule(permission, effect, calls, minutes * 60.0, then, per)
