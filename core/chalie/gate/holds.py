"""Holds: opening one for a call, and the answers that people give it, from wherever they are."""

from __future__ import annotations

import hashlib
import hmac
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from attrs import evolve

from .. import schema
from ..calls import Answer, AnswerKind, Call, Channel, Decision, HoldChange, HoldView, Setting
from ..errors import ChalieError
from ..ledger import Ledger
from ..ledger.declined import DeclinedRow
from ..ledger.hold import OPEN, Hold
from ..ledger.pins import Pin
from . import notices
from .hiding import hidden, leaves

__all__ = ["KEEP_S", "Holds"]

#: seconds that a hold can be answered in, where nothing else is configured.
KEEP_S: Final = 7 * 86_400.0
#: characters of what the model says of its own call that are kept.
_SAYS: Final = 2000


_YES: Final = (Setting.ALLOW.value, Setting.INTERNAL.value)
#: the answers that allow more than the call they are given to.
_STANDING: Final = (AnswerKind.ALWAYS, AnswerKind.UNTIL)


def _unwatched(change: HoldChange) -> None:
    return None


class Holds:
    """The holds of one process.

    Args:
        ledger: where they are.
        environment: key of the Python environment that this process is of.
        keep_s: seconds that a hold can be answered in.
        clock: the time in seconds since 1970.
        facts: gives an ability as it is now, to be pinned where a person allows it, or None where it is not
            there; left out where nothing is pinned.
        changed: told of every change that this process makes; may raise without effect.
    """

    def __init__(
        self,
        ledger: Ledger,
        *,
        environment: str = "",
        keep_s: float = KEEP_S,
        clock: Callable[[], float] = time.time,
        facts: Callable[[str, str], Pin | None] | None = None,
        changed: Callable[[HoldChange], None] = _unwatched,
    ) -> None:
        self._ledger = ledger
        self._store = ledger.holds
        self.environment = environment
        self._keep_s = keep_s
        self._clock = clock
        self._facts = facts
        self._changed = changed
        self._lock = threading.Lock()
        self._waited: set[str] = set()

    # for the gate

    def scope(self, call: Call, turn: str) -> str:
        """Return within what a decline is remembered: the conversation, or the turn where there is none."""
        return f"turn:{turn}" if call.conversation is None else f"conversation:{call.conversation}"

    def digest(self, call: Call, secret: bool) -> str:
        """Return what tells one call from another: package, name and canonical arguments.

        Args:
            secret: keyed with the home's own key, since a short secret could be found by trying.
        """
        text = schema.canonical([call.dist, call.name, dict(call.arguments or {})])
        if secret:
            return hmac.new(self._store.secrets.key(), text, hashlib.sha256).hexdigest()
        return hashlib.sha256(text).hexdigest()

    def declined(self, call: Call, view: HoldView, turn: str) -> DeclinedRow | None:
        """Return the decline that this very call had before in its conversation, or None."""
        digest = self.digest(call, _has_secrets(call, view))
        return self._ledger.declined.get(call.principal, self.scope(call, turn), digest)

    def open(self, call: Call, channel: Channel, view: HoldView, decision: Decision, turn: str) -> Hold:
        """Return the hold of a call, stored: a new one, or that of the same call which already waits.

        Args:
            call: healed and validated, with all its arguments.
            channel: where it was made.
            view: made from it, with secrets masked and the call's id.
            decision: why it is asked.
            turn: the turn's id.

        Raises:
            LedgerUnavailable: it cannot be stored.
            ValueError: its arguments are no JSON values.
        """
        secret = _has_secrets(call, view)
        arguments = dict(call.arguments or {})
        # the model's words and the policies' reasons may repeat a secret
        secrets = tuple(set(leaves(arguments, dict(view.arguments)))) if secret else ()
        now = self._clock()
        hold = Hold(
            id="",
            call_id=view.id,
            state="pending",
            environment=self.environment,
            dist=call.dist,
            name=call.name,
            descriptor_hash=call.descriptor_hash,
            files_hash=call.files_hash,
            permission=call.permission,
            effect=call.effect.value,
            arguments=view.arguments,
            digest=self.digest(call, secret),
            secret=None,
            channel=channel.name,
            policy=channel.policy,
            principal=call.principal,
            conversation=call.conversation,
            scope=self.scope(call, turn),
            model_says=hidden(view.model_says[:_SAYS], secrets),
            reasons=tuple(hidden(reason, secrets) for reason in _reasons(decision)),
            must_ask=decision.must_ask,
            opened_at=now,
            expires_at=now + self._keep_s,
        )
        with self._lock:
            known = self._store.alike(hold)
            if known is not None and known.id not in self._waited:
                return known
        opened = self._store.open(hold, schema.canonical(arguments) if secret else None)
        self._tell(opened, None, "pending", None)
        return opened

    @contextmanager
    def waiting(self, hold: Hold) -> Iterator[None]:
        """Keep a hold for the caller that waits for its answer, while it does."""
        with self._lock:
            self._waited.add(hold.id)
        try:
            if hold.told:
                self._store.tell(hold, False)
            yield
        finally:
            with self._lock:
                self._waited.discard(hold.id)

    def is_waited_for(self, hold_id: str) -> bool:
        """Tell whether a caller in this process waits for a hold and runs it once it is approved."""
        with self._lock:
            return hold_id in self._waited

    def state(self, hold: Hold) -> str | None:
        """Return a hold's state now."""
        return self._store.state(hold.id)

    def current(self, hold: Hold) -> Hold:
        """Return a hold as it is now."""
        return self._store.get(hold.id) or evolve(
            hold, state="void", detail="it is not in the ledger any more"
        )

    def leave(self, hold: Hold) -> Hold:
        """Say that the caller waits no longer, and return the hold as it is after that."""
        self._store.tell(hold)
        return self.current(hold)

    def spend(self, hold_id: str) -> Hold | None:
        """Take an approved hold on, to run it once; None where somebody else did."""
        spent = self._store.spend(hold_id)
        if spent is not None:
            self._tell(spent, "approved", "spent", spent.decided_by)
        return spent

    def start(self, hold: Hold) -> bool:
        """Say that a spent hold runs now; it must not run where this returns False."""
        started = self._store.start(hold.id)
        if started:
            self._tell(hold, "spent", "started", hold.decided_by)
        return started

    def unstarted(self, hold: Hold, reason: str) -> None:
        """Give a spent hold back: it was not run and may be approved again."""
        if self._store.unstarted(hold, reason):
            self._tell(hold, "spent", "not-started", None)

    def finish(
        self,
        hold: Hold,
        state: str,
        *,
        code: str | None = None,
        outcome: Callable[[sqlite3.Connection], None] | None = None,
        text: str | None = None,
    ) -> None:
        """Record how the run of a hold ended, together with the call's own row."""
        if self._store.finish(hold, state, code=code, outcome=outcome, text=text):
            self._tell(hold, "started", state, None)

    def void(self, hold: Hold, reason: str) -> Hold:
        """End a hold that fits nothing any more: what was approved is not what is there."""
        if self._store.finish(hold, "void", detail=reason, text=notices.void(hold, reason)):
            self._tell(hold, hold.state, "void", None)
        return self.current(hold)

    # for people

    def get(self, hold_id: str, *, principal: str | None = None) -> Hold:
        """Return one hold.

        Args:
            hold_id: its id, or a beginning of it that no other hold has.
            principal: who asks, where that is not the owner: only an own hold is found.

        Raises:
            ChalieError: `hold-unknown`.
        """
        hold = self._store.get(hold_id)
        if hold is None or principal not in (None, hold.principal):
            raise ChalieError(
                f"there is no hold {hold_id!r}", code="hold-unknown", hint="see: chalie holds --all"
            )
        return hold

    def list(self, *, principal: str | None = None, ended: bool = False) -> tuple[Hold, ...]:
        """Return what waits for a person, oldest first.

        Args:
            principal: only this one's holds; all of the home where left out.
            ended: also those that have ended.
        """
        self.expire()
        states = () if ended else (*OPEN, "approved", "spent", "started")
        return self._store.list(states=states, principal=principal)

    def answer(self, hold: Hold, answer: Answer, *, spend: bool = False) -> Hold | None:
        """Record a person's answer; None where the hold was answered, ended or expired before.

        "always" and "until" write the row of the permission, and pin the ability as it was asked about; where
        `refuse_standing` refuses them they are a yes for once. A decline refuses the same call in that
        conversation.

        Args:
            answer: whose author has been proven.
            spend: this process goes on to run it.
        """
        kind = answer.kind
        if kind in _STANDING and self._unfit(hold) is not None:
            kind = AnswerKind.ONCE
        no = kind in (AnswerKind.DECLINE, AnswerKind.DECLINE_ALWAYS)
        changed = self._store.answered(
            hold,
            kind.value,
            answer.by,
            spend=spend,
            within=None if kind in (AnswerKind.ONCE, AnswerKind.DECLINE) else self._row(hold, kind, answer),
            text=notices.declined(hold) if no else None,
        )
        if changed is None:
            return None
        if no:
            self._tell(hold, hold.state, "declined", answer.by)
        else:
            self._tell(hold, hold.state, "approved", answer.by)
            if spend:
                self._tell(hold, "approved", "spent", answer.by)
        return changed

    def answered(self, hold: Hold, answer: Answer) -> Hold:
        """Record the answer of a person who was not waited for.

        Raises:
            ChalieError: `already-decided`, saying how; `not-allowed`, as `refuse_standing`.
        """
        self.expire()
        self.refuse_standing(self.current(hold), answer.kind)
        changed = self.answer(hold, answer)
        if changed is None:
            raise notices.already(self.current(hold))
        return changed

    def refuse_standing(self, hold: Hold, kind: AnswerKind) -> None:
        """Refuse a yes to more than the call of an open hold, where this can be no such yes.

        Raises:
            ChalieError: `not-allowed`, where it must be asked each time, or the ability is not any more what
                was asked about.
        """
        unfit = self._unfit(hold) if kind in _STANDING and hold.state in OPEN else None
        if unfit is not None:
            raise ChalieError(unfit, code="not-allowed", hint=f"approve it once: chalie approve {hold.id}")

    def clear(self, hold: Hold, *, by: str) -> bool:
        """Let a declined call be asked again; return whether it was refused until now."""
        return self._ledger.declined.clear(hold.id, by=by)

    # looking over

    def expire(self) -> int:
        """End the holds whose time is over; return how many."""
        count = 0
        for hold in self._store.overdue():
            text = notices.expired(hold)
            if self._store.finish(hold, "expired", detail="nobody answered in time", text=text):
                self._tell(hold, hold.state, "expired", None)
                count += 1
        return count

    def recover(self, busy: Iterable[str] = ()) -> int:
        """Say of the holds whose process ended what is known; return how many.

        What was spent and not started has not run, and may be approved again. What was started may have
        taken effect or not.

        Args:
            busy: the holds that this process is running.
        """
        count = 0
        for hold in self._store.abandoned(busy):
            if hold.state == "spent":
                self.unstarted(hold, "its process ended before it was run")
            else:
                self.finish(hold, "interrupted", code="cancelled", text=notices.interrupted(hold))
            count += 1
        self.expire()
        self._store.sweep()
        return count

    def _unfit(self, hold: Hold) -> str | None:
        """Return why a hold cannot be answered for more than its own call, or None."""
        if hold.must_ask:
            return (
                f"{hold.permission} has to be asked about each time: {'; '.join(hold.reasons) or 'a limit'}"
            )
        if self._facts is None:
            return None
        now = self._facts(hold.dist, hold.name)
        if now is not None and now.descriptor_hash == hold.descriptor_hash:
            return None
        how = "not there" if now is None else "described differently"
        return f"{hold.name} is {how} now, so that nothing can be allowed of it beyond what was asked"

    def _row(self, hold: Hold, kind: AnswerKind, answer: Answer) -> Callable[[sqlite3.Connection], None]:
        # pinned with the files of the moment it was asked: what came after that nobody has said yes to
        now = None if self._facts is None else self._facts(hold.dist, hold.name)
        pins = () if now is None else (evolve(now, files_hash=hold.files_hash),)

        def write(connection: sqlite3.Connection) -> None:
            self._ledger.permissions.set_within(
                connection,
                hold.policy,
                hold.dist,
                hold.permission,
                Setting.DENY if kind is AnswerKind.DECLINE_ALWAYS else Setting.ALLOW,
                by=answer.by,
                until=answer.until if kind is AnswerKind.UNTIL else None,
                pins=pins,
            )

        return write

    def _tell(self, hold: Hold, before: str | None, after: str, by: str | None) -> None:
        try:
            self._changed(
                HoldChange(hold.id, before, after, by, hold.permission, hold.principal, hold.conversation)
            )
        except Exception:  # an observer's mistake costs nobody the call
            pass


def _reasons(decision: Decision) -> tuple[str, ...]:
    # a row that allows is no reason to ask, where a limit has it asked all the same
    counted = [verdict for verdict in decision.verdicts if verdict.counted and verdict.value not in _YES]
    return tuple(
        line for verdict in counted for line in (verdict.reason.split("\n") if verdict.reason else ())
    )


def _has_secrets(call: Call, view: HoldView) -> bool:
    arguments: Mapping[str, object] = call.arguments or {}
    return dict(view.arguments) != dict(arguments)
