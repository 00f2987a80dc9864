"""`chalie busiest`: which tools were called most."""

from collections import Counter
from collections.abc import Mapping

import click
from chalie import Host, hookimpl


@hookimpl
def register_commands() -> Mapping[str, click.Command]:
    return {"busiest": busiest}


@click.command()
@click.option("--limit", default=5, show_default=True, help="How many tools.")
@click.pass_context
def busiest(context: click.Context, limit: int) -> None:
    """Show the tools that were called most."""
    with Host.open(context.find_root().obj) as host:
        rows = host.ledger.trail.query(event="call.finished", limit=10_000)
    for name, count in Counter(row.name for row in rows).most_common(limit):
        click.echo(f"{count:>6}  {name}")
