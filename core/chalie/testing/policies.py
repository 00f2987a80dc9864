"""What the contract asks of policies and plugins."""

from __future__ import annotations

import itertools
import traceback
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from ..calls import Call, CallRecord, HoldChange, Limit, Opinion, SideEffect
from .bench import Bench, Fault

if TYPE_CHECKING:
    from ..host import Host

__all__ = ["answering"]

#: hook -> what it may return besides None.
_ANSWERS: Final[dict[str, type]] = {"review_call": Opinion, "limit_call": Limit}
_ARGUMENTS: Final[tuple[dict[str, Any] | None, ...]] = (
    None,
    {},
    {"text": "hello", "count": 1},
    {"": None, "deep": [[[{}]]], "long": "x" * 10_000, "odd": "\u202e\x00\ud800"},
)


def answering(bench: Bench) -> list[Fault]:
    """Return why it is not loaded, and what its hooks raise or wrongly return."""
    with bench.host(enabled=True) as host:
        if bench.dist not in host.plugins.loaded:
            problems = [one for one in host.problems() if one.dist == bench.dist]
            return [
                Fault(one.entry_point or one.dist, one.reason, _mending(one.reason)) for one in problems
            ] or [Fault(bench.dist, "it is not loaded", "chalie doctor")]
        faults: dict[tuple[str, str], Fault] = {}
        for hook, arguments in _asked():
            for author, value in host.plugins.each(hook, **arguments):
                fault = _fault(hook, value) if author == bench.dist else None
                if fault is not None:
                    faults.setdefault((fault.where, fault.what), fault)
        return [*faults.values(), *_commands(host, bench)]


def _mending(reason: str) -> str:
    if "import" in reason:
        return "let the module be imported without what may be missing"
    return "see chalie.hookspecs for the hooks, their arguments and what they may return"


def _asked() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield calls of every hook but the one for commands: each class, with and without arguments."""
    for effect, arguments, conversation, odd in itertools.product(
        SideEffect, _ARGUMENTS, ("talk", None), (False, True)
    ):
        call = Call(
            dist="chalie-ability-post",
            name="post",
            permission="post.send" if odd else "post",
            effect=effect,
            arguments=arguments,
            channel="external_agent" if odd else "chat",
            principal="ada",
            conversation=conversation,
            descriptor_hash="0" * 64,
            requires_approval=odd,
            must_ask=odd,
            destination=conversation if odd else None,
            trusted=not odd,
            asked_because="it says so" if odd else "",
        )
        yield "review_call", {"call": call}
        yield "limit_call", {"call": call}
    facts: dict[str, Any] = {
        "call_id": "c1",
        "ordinal": 1,
        "dist": "chalie-ability-post",
        "name": "post",
        "permission": "post",
        "channel": "chat",
        "principal": "ada",
        "conversation": None,
        "duration_us": 1,
    }
    for status, code, setting in (
        ("success", None, "allow"),
        ("error", "unknown-tool", None),
        ("error", "declined", "ask"),
    ):
        record = CallRecord(status=status, code=code, setting=setting, **facts)  # type: ignore[arg-type]
        yield "call_finished", {"record": record}
    yield "hold_changed", {"change": HoldChange("h1", None, "pending", None, "post", "ada", None)}
    yield "hold_changed", {"change": HoldChange("h1", "pending", "approved", "ada", "post", "ada", "talk")}
    for added, removed in ((("chalie-ability-post:post",), ()), ((), ("chalie-ability-post:post",))):
        yield "generation_published", {"generation_id": "g1", "added": added, "removed": removed}


def _fault(hook: str, value: object) -> Fault | None:
    if isinstance(value, BaseException):
        place = traceback.extract_tb(value.__traceback__)[-1:]
        where = f" at {place[0].filename}:{place[0].lineno}" if place else ""
        what = f"it raises {type(value).__name__}: {' '.join(str(value).split())[:200]}{where}"
        fix = (
            "a hook that raises denies the call: handle every class, and arguments that are None (a search)"
            if hook in _ANSWERS
            else "an observer is told of every end of a call: handle each"
        )
        return Fault(hook, what, fix)
    wanted = _ANSWERS.get(hook)
    if wanted is not None and value is not None and not isinstance(value, wanted):
        what = f"it returns {value!r:.60}, which denies the call"
        example = 'Opinion("ask", reason)' if wanted is Opinion else 'Limit("must_ask", reason)'
        return Fault(hook, what, f"return {example}, or None for nothing to say")
    return None


def _commands(host: Host, bench: Bench) -> list[Fault]:
    import click

    if bench.dist not in host.plugins.authors("register_commands"):
        return []
    for author, value in host.plugins.each("register_commands"):
        if author != bench.dist or value is None:
            continue
        good = isinstance(value, dict) and all(isinstance(one, click.Command) for one in value.values())
        if not good:
            what = f"it gives {value!r:.60}"
            return [Fault("register_commands", what, 'return {"name": a click.Command}, or None')]
    return []
