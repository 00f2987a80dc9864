"""`chalie demo`: the main job from end to end, with a scripted model in place of a real one."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from attrs import frozen

from ..calls import Answer, AnswerKind
from ..errors import ChalieError
from ..gate.display import escaped
from . import exits

if TYPE_CHECKING:
    from ..calls import HoldView
    from ..host import Host
    from ..turn import Turn

__all__ = ["ScriptedModel", "command", "converse"]

_NEEDED = ("chalie-ability-weather", "chalie-ability-memory")


@frozen
class Step:
    """What the scripted model does next: a call of a tool, or (without one) something it says.

    Attributes:
        shows: what the answer has to hold; a step whose answer does not has failed.
    """

    tool: str | None
    arguments: Mapping[str, Any]
    says: str = ""
    shows: str = ""


@frozen
class Exchange:
    """One message of the person and the model's steps to answer it."""

    person: str
    steps: tuple[Step, ...]


FIRST = (
    Exchange(
        "Is there a way to check the weather in another city?",
        (
            Step(
                "find_tools",
                {"query": ["is there a way to check the weather in another city"]},
                shows='"name":"weather"',
            ),
            Step(None, {}, "Yes, I have a weather tool now. Which city?"),
        ),
    ),
    Exchange(
        "Valletta. I am flying there on Friday, remember that.",
        (
            Step("find_tools", {"query": ["weather"]}, shows='"name":"weather"'),
            Step(
                "weather",
                {"location": "Valletta", "days": 1, "act_summary": "Look up Valletta's weather"},
                shows="Valletta",
            ),
            Step("memory", {"action": "store", "text": "Ada is flying to Valletta on Friday."}),
            Step(None, {}, "It is clear and 24 °C there, and I have noted your flight."),
        ),
    ),
)
SECOND = (
    Exchange(
        "When am I flying?",
        (
            Step("memory", {"action": "recall", "query": "flight to Valletta"}, shows="on Friday"),
            Step(None, {}, "On Friday, to Valletta."),
        ),
    ),
)


class ScriptedModel:
    """Answers as a model would: it sees the tools of the turn and can call only those.

    Args:
        steps: what it does, in order.
    """

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = iter(steps)

    def reply(self, tools: Sequence[Mapping[str, Any]]) -> Step:
        """Return the next step.

        Raises:
            ChalieError: it wants a tool that the turn does not offer, so search did not find it.
        """
        step = next(self._steps)
        offered = {tool["name"] for tool in tools}
        if step.tool is not None and step.tool not in offered:
            raise ChalieError(
                f"the model wants {step.tool} and is offered {', '.join(sorted(offered))}", code="not-active"
            )
        return step


def converse(turn: Turn, model: ScriptedModel) -> Iterator[tuple[Step, str]]:
    """Run one exchange: offer the tools, make the model's call, hand back its result, until it only speaks.

    Yields:
        The step and the envelope its call gave; an empty text for the closing words.
    """
    while True:
        step = model.reply(turn.tools("anthropic"))
        if step.tool is None:
            yield step, ""
            return
        yield step, turn.call(step.tool, step.arguments)


class _Person:
    """Plays the person at the screen: shows what is asked, and says yes once."""

    def ask(self, hold: HoldView) -> Answer:
        arguments = json.dumps(dict(hold.arguments), ensure_ascii=False)
        _say("gate", f"{hold.permission} ({hold.effect.value}) wants to run with {arguments}")
        _say("person", "once")
        return Answer(AnswerKind.ONCE, by="demo")


@click.command("demo")
@click.option("--keep", is_flag=True, help="Keep the temporary home and say where it is.")
@click.pass_context
def command(context: click.Context, keep: bool) -> int:
    """Run the main job in a temporary home, with a scripted model and a local weather service.

    A tool is found by meaning and then by name, called through the gate, a note is kept over a restart, and
    the record is read back. Nothing reaches the network. Exit code 5 if any step does not do what it should;
    the last lines name it.
    """
    from .demo_service import serving

    with _temporary_home(keep) as home, serving() as address, _environment("CHALIE_WEATHER_URL", address):
        if not _ready(home):
            return exits.NOTHING
        failed = _play(home, FIRST)
        _say("demo", "the host is closed and opened again")
        failed += _play(home, SECOND)
        calls, expected = _read_back(home), _calls_of((*FIRST, *SECOND))
    if calls < expected:
        failed.append(f"the record holds {calls} of {expected} calls")
    if failed:
        for line in failed:
            _say("demo", f"failed: {line}")
        return exits.FAILED
    _say("demo", f"done: {calls} calls, each gated and recorded")
    return exits.OK


def _ready(home: Path) -> bool:
    """Read what is installed and tell whether the demo's packages are there."""
    from ..host import Host

    with Host.open(home) as host:
        host.upkeep.refresh(None)
        counts = host.snapshot.counts()
        missing = [dist for dist in _NEEDED if host.snapshot.state(dist) != "ready"]
    _say("demo", f"{counts['abilities']} tools and {counts['playbooks']} playbooks are installed")
    if missing:
        _say("demo", f"the demo needs {' and '.join(missing)}: chalie install {' '.join(missing)}")
    return not missing


def _calls_of(exchanges: Sequence[Exchange]) -> int:
    return sum(step.tool is not None for exchange in exchanges for step in exchange.steps)


def _play(home: Path, exchanges: Sequence[Exchange]) -> list[str]:
    """Open the host, play some exchanges and return a line for each step that did not do what it should."""
    from ..host import Host

    failed: list[str] = []
    with Host.open(home, approver=_Person()) as host:
        for exchange in exchanges:
            failed += _exchange(host, exchange)
    return failed


def _exchange(host: Host, exchange: Exchange) -> list[str]:
    failed: list[str] = []
    _say("person", exchange.person)
    turn = host.turn("chat", principal="ada", conversation="demo")
    try:
        for step, envelope in converse(turn, ScriptedModel(exchange.steps)):
            if step.tool is None:
                _say("model", step.says)
                continue
            _say("model", f"calls {step.tool} {json.dumps(dict(step.arguments), ensure_ascii=False)}")
            for line in envelope.splitlines():
                click.echo(f"          {escaped(line)}")
            failed += wrong(step, envelope)
    except ChalieError as error:  # a search before did not find what the next step calls
        failed.append(error.message)
    return failed


def wrong(step: Step, envelope: str) -> list[str]:
    """Return what is wrong with an answer: an error, a lost rung of search, or not what it has to show."""
    from ..envelope import parse

    frame = parse(envelope)
    called = f"{step.tool} {json.dumps(dict(step.arguments), ensure_ascii=False)}"
    if frame.status != "success":
        return [f"{called} answered {frame.code}: {frame.body}"]
    lines = []
    if "degraded" in frame.meta:
        lines.append(f"{called} searched without {frame.meta['degraded']}; `chalie doctor` tells why")
    if step.shows not in frame.body:
        lines.append(f"{called} should have answered with {step.shows}")
    return lines


def _read_back(home: Path) -> int:
    from ..host import Host

    with Host.open(home) as host:
        rows = host.ledger.trail.query(event="call.finished")
    _say("trail", "what the record holds:")
    for row in reversed(rows):
        click.echo(f"          {row.permission}: {row.status}, the gate said {row.setting}")
    return len(rows)


def _say(who: str, text: str) -> None:
    click.echo(f"{who.rjust(8)}  {text}")


@contextmanager
def _temporary_home(keep: bool) -> Iterator[Path]:
    if keep:
        home = Path(tempfile.mkdtemp(prefix="chalie-demo-"))
        _say("demo", f"the home is {home}")
        yield home
        return
    with tempfile.TemporaryDirectory(prefix="chalie-demo-") as folder:
        yield Path(folder)


@contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
