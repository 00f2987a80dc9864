"""The two rows of a call on the trail, and what is made of its end."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .. import schema
from ..calls import CallRecord
from ..envelope import render
from ..errors import LedgerUnavailable
from ..gate.hiding import hidden, leaves
from ..ledger.trail import WHO, Who
from ..result import ToolResult
from .flight import Flight
from .refusals import Ended, not_begun
from .results import Results
from .run import failed

if TYPE_CHECKING:
    from ..catalogue.descriptor import Descriptor
    from ..gate.holds import Holds
    from ..ledger import Trail

__all__ = ["Recorder"]


class Recorder:
    """Writes what calls did, masked, and tells those who watch.

    Args:
        trail: the ledger's.
        results: cuts and keeps what is too long.
        observe: told of each finished call; may raise without effect.
        holds: told how the calls ended that a person approved.
    """

    def __init__(
        self, trail: Trail, results: Results, observe: Callable[[CallRecord], None], holds: Holds
    ) -> None:
        self._trail = trail
        self._holds = holds
        self._results = results
        self._observe = observe
        self._secrets: dict[str, frozenset[tuple[str, ...]]] = {}

    def mask(self, flight: Flight, arguments: dict[str, Any], descriptor: Descriptor) -> None:
        """Note what may be shown of a call's arguments, and what must be taken out of any text about it.

        Args:
            flight: the call.
            arguments: handles bound; nothing else may change them before the call is recorded.
            descriptor: of the ability.
        """
        paths = self._secrets.get(descriptor.hash)
        if paths is None:
            paths = self._secrets[descriptor.hash] = schema.secret_paths(descriptor.parameters)
        flight.masked = arguments
        if paths:
            flight.masked = schema.mask(arguments, paths)
            flight.secrets = tuple(set(leaves(arguments, flight.masked)))

    def hide(self, flight: Flight, whole: dict[str, Any], descriptor: Descriptor) -> None:
        """Note as secret, too, what the handles in secret arguments stand for."""
        paths = self._secrets.get(descriptor.hash)
        if paths:
            flight.secrets = tuple({*flight.secrets, *leaves(whole, schema.mask(whole, paths))})

    def begin(self, flight: Flight) -> Ended | None:
        """Write that a call is about to run; return its end where it was cancelled meanwhile.

        Raises:
            Overtaken: what the gate decided by was changed; it must be asked again.
            LedgerUnavailable: it cannot be written; the call must not run.
        """
        with flight.lock:
            if flight.token.cancelled:
                return not_begun(flight.name)
            who = _who(flight)
            self._trail.append_call(
                "call.started", who, arguments=flight.masked, by=flight.answered_by, given=flight.given
            )
            flight.who = who
            flight.started = True
        return None

    def finish(self, flight: Flight, ended: Ended) -> str | None:
        """Record how a call ended and return its envelope; None where that was done before."""
        with flight.lock:
            if flight.ended:
                return None
            flight.ended = True
            text, ended = self._rendered(flight, ended)
            result = ended.result
            duration = (time.perf_counter_ns() - flight.begun) // 1000
            recorded = self._append_outcome(flight, ended, duration, text)
        if not recorded and flight.started:
            # It ran, and its intent is on the trail; that the outcome is not is said with the result.
            text = render(flight.called[:128], result, meta_extra=(("recorded", False),))
        if result.rich is not None:
            flight.state.rich[flight.ordinal] = result.rich
        self._note(flight, result, duration)
        return text

    def start_hold(self, flight: Flight) -> Ended | None:
        """Write that an approved call runs now; return its end where it must not.

        Raises:
            LedgerUnavailable: it cannot be written; the call must not run.
        """
        if flight.hold is None:
            return None
        with flight.lock:
            if flight.ended or flight.token.cancelled or not self._holds.start(flight.hold):
                return not_begun(flight.name)
            flight.hold_started = True
        return None

    def _append_outcome(self, flight: Flight, ended: Ended, duration: int, text: str) -> bool:
        event = "call.finished" if flight.started else "call.refused"
        who = flight.who or _who(flight)
        arguments = None if flight.started else flight.masked
        status, code, detail = ended.result.status, ended.result.code, _detail(flight, ended)
        try:
            if flight.hold is not None and flight.hold_started:
                more = {"status": status, "code": code, "arguments": arguments, "detail": detail}
                columns = {**dict(zip(WHO, who, strict=True)), **more, "by": flight.answered_by}
                self._holds.finish(
                    flight.hold,
                    _state(code),
                    code=code,
                    outcome=lambda connection: self._trail.append_within(
                        connection, event, duration_us=duration, **columns
                    ),
                    text=text if flight.deliver else None,
                )
                return True
            if flight.hold is not None:
                self._holds.unstarted(flight.hold, detail or ended.result.message)
            self._trail.append_call(event, who, status, code, arguments, detail, duration, flight.answered_by)
        except LedgerUnavailable:
            return False
        return True

    def _rendered(self, flight: Flight, ended: Ended) -> tuple[str, Ended]:
        """Return the envelope, and the end it shows: whatever cannot be shown is the ability's failure."""
        called = flight.called[:128]
        try:
            result, facts = self._results.shown(flight.state.principal, ended.result)
            if "result" in facts and flight.state.reader is not None:
                flight.state.activate(flight.state.reader)
            text = render(called, result, meta_extra=facts.items()) if facts else render(called, result)
        except BaseException as error:  # objects of the ability are looked at here, and may do anything
            ended = failed(flight.name, error)
            return render(called, ended.result), ended
        return text, ended if result is ended.result else Ended(result, ended.detail)

    def _note(self, flight: Flight, result: ToolResult, duration: int) -> None:
        state, call = flight.state, flight.call
        record = CallRecord(
            flight.id,
            flight.ordinal,
            flight.dist,
            flight.name,
            call.permission if call is not None else flight.name,
            state.channel.name,
            state.principal,
            state.conversation,
            result.status,
            result.code,
            flight.setting,
            duration,
            flight.healed,
        )
        state.records.append(record)
        try:
            self._observe(record)
        except Exception:  # an observer's mistake costs nobody the call
            pass


def _state(code: str | None) -> str:
    """Return the state of a hold whose call ended so: of some ends nobody knows what they left behind."""
    if code is None:
        return "done"
    return "interrupted" if code in ("timed-out", "cancelled", "worker-died") else "failed"


def _who(flight: Flight) -> Who:
    """Return what every row of a call says."""
    state, call = flight.state, flight.call
    return (
        flight.id,
        flight.ordinal,
        state.channel.name,
        state.principal,
        state.conversation,
        flight.dist or None,
        flight.name,
        call.permission if call is not None else None,
        call.effect._value_ if call is not None else None,  # past the enum's slow property
        flight.setting,
    )


def _detail(flight: Flight, ended: Ended) -> str | None:
    """Return what the trail is told beside the code, with every secret argument taken out of it."""
    detail = ended.detail
    if detail is None:
        if ended.result.status == "success":
            return "; ".join(flight.healed) or None
        detail = ended.result.message
    return hidden(detail, flight.secrets) if flight.secrets else detail
