"""`chalie index`: compare everything installed with the catalogue, in full, and publish what differs."""

from __future__ import annotations

import click

from . import exits
from .opening import built, opened
from .output import as_json, emit, note

__all__ = ["command"]


@click.command("index")
@click.option("--rebuild", is_flag=True, help="Read every package again, as if none had been read before.")
@click.option("--installed", is_flag=True, hidden=True, help="An installer has just run to its end.")
@as_json
@click.pass_context
def command(context: click.Context, rebuild: bool, installed: bool, json_: bool) -> int:
    """Compare every installed file with the catalogue and rebuild what differs.

    Exit code 1 if something installed could not be read; `chalie doctor` says what and why.
    """
    built(context, full=True, rebuild=rebuild, finished=installed)
    with opened(context) as host:
        counts = host.snapshot.counts()
        generation = host.generation.id
        pending = list(host.upkeep.pending)
    if json_:
        emit({"generation": generation, **counts, "reading": pending})
    else:
        click.echo(
            f"generation {generation}: {counts['abilities']} tools and {counts['playbooks']} playbooks "
            f"from {counts['distributions']} packages"
        )
        if counts["problems"]:
            note(f"{counts['problems']} problems; `chalie doctor` names them")
        if pending:
            note(f"still being written or read: {', '.join(pending)}")
    return exits.NOTHING if counts["problems"] else exits.OK
