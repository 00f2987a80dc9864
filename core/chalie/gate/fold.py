"""The fold: from what everybody said of a call to one decision. Pure, and the same for every road.

1. The setting is the person's row, if there is one; else the host's internal table; else the policies'
   opinions, `ask` before `allow`; else `ask`.
2. Limits and failures narrow it, and the strictest wins. Nothing in this step can widen.
3. Where nobody can be asked, `ask` becomes `deny`.

No step depends on the order in which policies were installed or asked.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable
from operator import attrgetter
from typing import Final

from attrs import evolve

from ..calls import Decision, Setting, Verdict
from ..ledger.permissions import PermissionRow
from .permissions import row_decision, row_verdict

__all__ = ["fold"]

#: the order in which verdicts are listed, whoever was asked first.
_order: Final = attrgetter("value", "author", "kind", "reason", "counted")

_INTERNAL: Final = Verdict(
    author="host",
    kind="internal",
    value=Setting.INTERNAL.value,
    reason="it is one of the host's own tools",
    source="the host's internal table",
)
_SILENCE: Final = Verdict(
    author="host", kind="default", value=Setting.ASK.value, reason="nobody has said anything about it"
)
_NOBODY: Final = Verdict(
    author="host", kind="channel", value=Setting.DENY.value, reason="nobody can be asked on this channel"
)
#: what follows where nobody has said anything: on a channel without a person, and on one with.
_SILENT: Final = (
    Decision(Setting.DENY, False, (_SILENCE, _NOBODY)),
    Decision(Setting.ASK, False, (_SILENCE,)),
)


def fold(
    row: PermissionRow | None,
    internal: bool,
    opinions: Collection[Verdict],
    limits: Collection[Verdict],
    has_person: bool,
) -> Decision:
    """Return the decision on a call.

    Args:
        row: the person's row that covers the call and is in force, or None.
        internal: whether the call's (distribution, name) is in the host's internal table.
        opinions: verdicts whose value is `allow` or `ask`; those that do not count stay in the list only.
        limits: verdicts of limits (`deny`, `must_ask`) and of failures (`deny`).
        has_person: whether somebody can be asked on the channel.
    """
    if not (opinions or limits):  # as it is on most calls: what is decided then has been made before
        if row is not None and (has_person or row.setting is not Setting.ASK):
            return row_decision(row)
        if row is None and not internal:
            return _SILENT[has_person]
    if row is None:
        return _kept(internal, tuple(opinions), tuple(limits), has_person)
    return _folded(row, internal, opinions, limits, has_person)


@functools.lru_cache(maxsize=512)
def _kept(
    internal: bool, opinions: tuple[Verdict, ...], limits: tuple[Verdict, ...], has_person: bool
) -> Decision:
    """Fold once what policies say of most calls alike."""
    return _folded(None, internal, opinions, limits, has_person)


def _folded(
    row: PermissionRow | None,
    internal: bool,
    opinions: Collection[Verdict],
    limits: Collection[Verdict],
    has_person: bool,
) -> Decision:
    verdicts: list[Verdict] = []
    setting = _setting(row, internal, opinions, verdicts)
    setting, must_ask = _narrowed(setting, limits, verdicts)
    if setting is Setting.ASK and not has_person:
        setting = Setting.DENY
        verdicts.append(_NOBODY)
    return Decision(setting, must_ask and setting is Setting.ASK, tuple(verdicts))


def _setting(
    row: PermissionRow | None, internal: bool, opinions: Iterable[Verdict], verdicts: list[Verdict]
) -> Setting:
    """Do step 1; of what was said, only what made the setting keeps counting."""
    heard = sorted(opinions, key=_order) if opinions else []
    if row is not None:
        verdicts.append(row_verdict(row))
        verdicts += [_unheard(verdict) for verdict in heard]
        return row.setting
    if internal:
        verdicts.append(_INTERNAL)
        verdicts += [_unheard(verdict) for verdict in heard]
        return Setting.ALLOW
    counted = {verdict.value for verdict in heard if verdict.counted}
    if not counted:
        verdicts += heard
        verdicts.append(_SILENCE)
        return Setting.ASK
    setting = Setting.ASK if Setting.ASK.value in counted else Setting.ALLOW
    rest = [verdict for verdict in heard if verdict.value != setting.value]
    verdicts += [_unheard(verdict) for verdict in rest]
    verdicts += [verdict for verdict in heard if verdict.value == setting.value]
    return setting


def _narrowed(setting: Setting, limits: Iterable[Verdict], verdicts: list[Verdict]) -> tuple[Setting, bool]:
    """Do step 2; a limit that finds the setting narrower already is listed and does not count."""
    if not limits:
        return setting, False
    said = sorted(limits, key=_order)
    denials = [verdict for verdict in said if verdict.value != "must_ask"]
    must_ask = [verdict for verdict in said if verdict.value == "must_ask"]
    if denials:
        denied_already = setting is Setting.DENY
        verdicts += [_unheard(verdict) for verdict in must_ask]
        verdicts += [_unheard(verdict) if denied_already else verdict for verdict in denials]
        return Setting.DENY, False
    if setting is Setting.DENY:
        verdicts += [_unheard(verdict) for verdict in must_ask]
        return setting, False
    verdicts += must_ask
    return Setting.ASK if must_ask else setting, bool(must_ask)


def _unheard(verdict: Verdict) -> Verdict:
    return evolve(verdict, counted=False) if verdict.counted else verdict
