"""The command group: commands are imported when they are run, failures become one line and a code."""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import click

from .. import __version__
from ..errors import ChalieError
from ..gate.display import escaped
from . import exits

__all__ = ["COMMANDS", "Program", "program", "run", "unwritten"]

#: command -> its one line in `chalie --help`. The file `cli/<command>.py` holds a click command `command`.
COMMANDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "list": "List the installed tools and packages.",
        "show": "Show everything about one tool or package.",
        "find": "Find tools by name or by meaning, as the model would.",
        "call": "Call one tool through the gate and print its envelope.",
        "install": "Install packages with pip or uv, enable them and read their tools.",
        "uninstall": "Uninstall packages with pip or uv.",
        "enable": "Let a package's tools, policies and plugins be loaded.",
        "disable": "Keep a package installed, but never load or read it.",
        "index": "Compare everything installed with the catalogue and rebuild what differs.",
        "doctor": "Name everything that is wrong, each with the line that repairs it.",
        "skills": "List the installed playbooks, or show one.",
        "holds": "List the calls that wait for a person, or show one.",
        "approve": "Say yes to a call that waits; it is run once.",
        "decline": "Say no to a call that waits.",
        "explain": "Explain what the gate says of a call, and who said it.",
        "trust": "Let the allow of a policy package count, or what a server says of its tools.",
        "distrust": "Let it count no longer.",
        "permissions": "List, set, remove and check what tools may do.",
        "approvers": "List, add and remove approver tokens.",
        "mcp": "Use the tools of MCP servers, and serve this host's to other agents.",
        "tokens": "List, add and revoke the tokens of clients at the HTTP door.",
        "trail": "Show what was called, decided and changed.",
        "evaluate": "Measure how well search finds the right tool for a file of questions.",
        "new": "Make a new package for an ability, a policy or a skill.",
        "catalogue": "Write what is installed as files for others, and compare two of them.",
        "lint": "Check tools' names, texts, parameters and classes, and say how to mend them.",
        "demo": "Run the main job in a temporary home with a scripted model.",
    }
)


class Program(click.Group):
    """The group of all commands, those of enabled plugins among them."""

    def list_commands(self, context: click.Context) -> list[str]:
        """Return the host's commands in their order, then the plugins'."""
        return [*COMMANDS, *sorted(self._plugins(context))]

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """Import and return one command."""
        if name in COMMANDS:
            module = importlib.import_module(f".{name}", __package__)
            command = module.command
            assert isinstance(command, click.Command)
            return command
        return self._plugins(context).get(name)

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or say which one was probably meant."""
        from .lookup import nearest

        begun = context.resilient_parsing or not args or args[0].startswith("-")
        if not begun and self.get_command(context, args[0]) is None:
            near = nearest(args[0], self.list_commands(context))
            advice = f"did you mean {near}?" if near else "see `chalie --help`"
            raise click.UsageError(f"there is no command {args[0]!r}; {advice}", context)
        return super().resolve_command(context, args)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing any of the host's own."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))
        plugins = self._plugins(context)
        if plugins:
            with formatter.section("Commands of plugins"):
                formatter.write_dl([(name, plugins[name].get_short_help_str()) for name in sorted(plugins)])

    def _plugins(self, context: click.Context) -> Mapping[str, click.Command]:
        """Return the commands of enabled plugins; a home that cannot be opened has none to offer."""
        from .opening import plugin_commands

        kept: Mapping[str, click.Command] | None = context.meta.get(__name__)
        if kept is None:
            kept = context.meta[__name__] = plugin_commands(context)
        return kept


@click.command(cls=Program, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--home",
    type=click.Path(file_okay=False, path_type=Path),
    help="The home folder. Default: $CHALIE_HOME, else the platform's user data folder + chalie.",
)
@click.version_option(__version__, "-V", "--version", message="%(prog)s %(version)s")
@click.pass_context
def program(context: click.Context, home: Path | None) -> None:
    """Host the tools of AI agents: find them, call them through the gate, keep control of what they may do.

    Every reading command takes --json. Exit codes: 0 done, 1 nothing found, 2 usage, 3 home or configuration,
    4 refused, 5 the tool failed, 6 the installer failed.
    """
    context.obj = home


def run(words: list[str]) -> int:
    """Run one command line and return its exit code."""
    _with_streams()
    try:
        answer: Any = program.main(args=words, prog_name="chalie", standalone_mode=False)
        sys.stdout.flush()
    except ChalieError as error:
        report(error)
        return exits.of(error.code)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return exits.INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has gone (`chalie trail | head`); Python must not complain at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return exits.OK
    except OSError as error:
        return unwritten(error)
    return answer if isinstance(answer, int) else exits.OK


def _with_streams() -> None:
    """Put nothing in the place of a stream that is closed, before a file of the home gets its number."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:  # the lowest free one
        os.set_inheritable(number, True)
    os.close(number)
    sys.stdout = sys.stdout or open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115


def unwritten(error: OSError) -> int:
    """Say that the output could not be written (a full disk, a closed one) and forget what is left of it.

    Raises:
        OSError: it was something else.
    """
    if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EBADF) or error.filename is not None:
        raise error
    with contextlib.suppress(OSError, ValueError):  # Python writes out what is left when it ends
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    click.echo(f"chalie: the output could not be written: {error.strerror}", err=True)
    return exits.UNWRITTEN


def report(error: ChalieError) -> None:
    """Print an expected failure: one line, and the next step below it."""
    click.echo(f"chalie: {escaped(error.message)} [{error.code}]", err=True)
    if error.hint:
        click.echo(f"  hint: {escaped(error.hint)}", err=True)
