"""What the shell offers after TAB: names from the catalogue as it is, without a build and without a home."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from ..catalogue.snapshot import Snapshot
    from ..config import Config

__all__ = [
    "arguments",
    "channels",
    "holds",
    "open_holds",
    "packages",
    "permissions",
    "playbooks",
    "tools",
    "tools_and_packages",
]

Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


@contextlib.contextmanager
def _installed(context: click.Context) -> Iterator[tuple[Config, Snapshot] | None]:
    """Yield what is configured and installed, or None where there is no home yet."""
    from ..catalogue.generations import Generations
    from ..config import Config, home_path

    home = context.find_root().params.get("home") or home_path()
    if not Path(home).is_dir():
        yield None
        return
    config = Config.load(Path(home))
    generation = Generations(config.generations_path).current()
    if generation is None:
        yield None
        return
    try:
        yield config, generation.snapshot
    finally:
        generation.close()


def _completer(
    words: Callable[[click.Context, Config, Snapshot], Iterator[tuple[str, str]]],
) -> Completer:
    def complete(context: click.Context, _: click.Parameter, begun: str) -> list[CompletionItem]:
        # whatever is wrong with the home is no business of a key press
        with contextlib.suppress(Exception), _installed(context) as found:
            if found is not None:
                offered = dict(words(context, *found))
                return [
                    CompletionItem(word, help=said or None)
                    for word, said in sorted(offered.items())
                    if word.startswith(begun)
                ]
        return []

    return complete


def _tools(_: click.Context, __: Config, snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    for _number, item in snapshot.abilities():
        yield snapshot.exposed(item), item.summary


def _packages(_: click.Context, config: Config, snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    for row in snapshot.distributions():
        if row.state != "missing":
            yield row.name, row.state
    for name, options in config.packages.items():
        if options.disabled:
            yield name, "disabled"


def _both(context: click.Context, config: Config, snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    yield from _packages(context, config, snapshot)
    yield from _tools(context, config, snapshot)


def _channels(_: click.Context, config: Config, __: Snapshot) -> Iterator[tuple[str, str]]:
    from ..channels import channels as known

    for channel in known(config).values():
        if not channel.delegate:
            yield channel.name, "a person is there" if channel.has_person else "no person is there"


def _playbooks(_: click.Context, __: Config, snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    for _number, item in snapshot.playbooks():
        yield item.name, item.description


def _permissions(_: click.Context, __: Config, snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    for _number, item in snapshot.abilities():
        yield item.name, item.summary
        for permission, effect in item.permissions():
            yield permission, effect.value


def _arguments(context: click.Context, _: Config, snapshot: Snapshot) -> Iterator[tuple[str, str]]:
    """Yield `KEY=` for each parameter of the tool that stands before."""
    name = context.params.get("name") or ""
    given = {str(word).partition("=")[0] for word in context.params.get("arguments") or ()}
    for item in snapshot.resolve(name) or snapshot.named(name):
        for key, schema in item.parameters.get("properties", {}).items():
            if key not in given:
                yield f"{key}=", str(schema.get("description", "")) if isinstance(schema, dict) else ""


def _holds(_: click.Context, config: Config, __: Snapshot) -> Iterator[tuple[str, str]]:
    yield from _waiting(config, ())


def _open_holds(_: click.Context, config: Config, __: Snapshot) -> Iterator[tuple[str, str]]:
    from ..ledger.hold import OPEN

    yield from _waiting(config, OPEN)


def _waiting(config: Config, states: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    from ..ledger import Ledger

    if config.ledger_path.is_file():
        with Ledger.open(config.ledger_path) as ledger:
            for hold in ledger.holds.list(states=states):
                yield hold.id, f"{hold.permission}: {hold.state}"


tools = _completer(_tools)
holds = _completer(_holds)
open_holds = _completer(_open_holds)
packages = _completer(_packages)
tools_and_packages = _completer(_both)
channels = _completer(_channels)
playbooks = _completer(_playbooks)
permissions = _completer(_permissions)
arguments = _completer(_arguments)
