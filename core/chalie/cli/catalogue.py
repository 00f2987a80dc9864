"""`chalie catalogue`: write what is installed as files for others, and tell what changed between two."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from . import exits
from .opening import opened, working
from .output import as_json, emit, note, pairs, table

if TYPE_CHECKING:
    from ..catalogue.identity import Document
    from ..host import Host

__all__ = ["command"]

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group("catalogue")
def command() -> None:
    """Write what is installed as a catalogue's files, and compare two of them."""


@command.command("build")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--form",
    "forms",
    type=click.Choice(["json", "markdown", "html"]),
    multiple=True,
    help="Only this form; may be given more than once. Default: all.",
)
@as_json
@click.pass_context
def build(context: click.Context, folder: Path, forms: tuple[str, ...], json_: bool) -> int:
    """Write what is installed into FOLDER: catalogue.json, catalogue.md, and a site that needs no server."""
    from ..authoring.catalogue import FORMS, write

    with opened(context) as host, working("writing the catalogue"):
        found = _document(host)
        wanted = tuple(form for form in FORMS if not forms or form in forms)
        written = write(found, folder, wanted)
        problems = len([problem for problem in host.problems() if problem.quarantined])
    facts = {
        "identity": found.identity,
        "protocol": found.protocol,
        "tools": len(found.abilities),
        "written": [str(path) for path in written],
    }
    if json_:
        emit(facts)
    else:
        pairs(facts.items())
    if problems:
        note(f"{problems} package{'s' if problems > 1 else ''} left out; `chalie doctor` names them")
    return exits.OK


def _document(host: Host) -> Document:
    from ..catalogue.identity import document
    from ..pins import own_descriptors

    return document(host.snapshot, own_descriptors().values())


@command.command("diff")
@click.argument("before", type=_FILE)
@click.argument("after", type=_FILE)
@as_json
def diff(before: Path, after: Path, json_: bool) -> int:
    """Tell what changed between two catalogues' files, and whether that breaks who calls the tools.

    Exit code 1 if a change is breaking.
    """
    from ..authoring.comparison import compare
    from ..catalogue.identity import read

    old, new = read(before), read(after)
    changes = compare(old, new)
    breaking = sum(change.breaking for change in changes)
    if json_:
        emit(
            {
                "before": {"identity": old.identity, "protocol": old.protocol},
                "after": {"identity": new.identity, "protocol": new.protocol},
                "breaking": breaking,
                "compatible": len(changes) - breaking,
                "changes": [
                    {"tool": change.tool, "breaking": change.breaking, "what": change.what}
                    for change in changes
                ],
            }
        )
    elif changes:
        rows = sorted(changes, key=lambda change: not change.breaking)
        kinds = {True: "breaking", False: "compatible"}
        table(("change", "tool", "what"), [[kinds[row.breaking], row.tool, row.what] for row in rows])
        click.echo(f"\n{breaking} breaking, {len(changes) - breaking} compatible")
    else:
        click.echo("no change" if old.identity == new.identity else "no change but in the order of facts")
    return exits.NOTHING if breaking else exits.OK
