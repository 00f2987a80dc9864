"""The pages of the documentation that are made from the code: run this file to write them."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
_MADE = "<!-- made by tests/support/pages.py; change the code, then run it -->\n"

_COMMAND_LINE = """\
`chalie [--home FOLDER] COMMAND`. Every reading command takes `--json` and then prints nothing but JSON on
standard output. What is meant for people beside the answer goes to standard error, as does a failure: one
line with its [error code](error-codes.md), and a hint.

Shell completion: `eval "$(_CHALIE_COMPLETE=bash_source chalie)"` in `~/.bashrc`, the same with `zsh_source`
in `~/.zshrc`, or `_CHALIE_COMPLETE=fish_source chalie | source` in fish's configuration.
"""
_EVENTS = """\
The trail holds these, in the order they happened: `chalie trail`, or `host.ledger.trail.query()`. Rows are
only ever added; retention deletes old ones by age and says so in a row of its own. Arguments that a tool's
schema marks as secret (`writeOnly`, `format: password`) are masked before they are written.

A call that may run leaves two rows: `call.started` before it runs and `call.finished` after, tied by the
call's id. After a crash the first stands alone: the call began, and how it ended is not known.
"""


_BYPASSES = """\
Ways past a gate that were reported for tools like these, and variants of them. Each is a test that goes down
the whole road: dispatcher, gate, a person, and the tools of `chalie-ability-workspace` in a folder beside
which nothing may change. They stand in `tests/gate/bypass/`, a file for each kind; to add one, add a line.
"""
_EXPECTED = {
    "allow": "runs unasked",
    "ask": "a person is asked",
    "always": "asked whatever rows allow",
    "refused": "refused even after a yes",
}
_KINDS = {
    "command": "lines for `bash` that look harmless, or like something else",
    "path": "links, `..`, other spellings, places that others run or obey",
    "argument": "arguments that change what a call means",
    "name": "names that look like another tool's",
    "timing": "what changes between the question and the run",
}


def bypasses() -> str:
    """Return the page that counts the corpus of bypasses."""
    from tests.gate.bypass_corpus import counts

    found = counts()
    rows = [
        (f"`{kind}`", what, *(found[kind, expect] for expect in _EXPECTED), _of(found, kind))
        for kind, what in _KINDS.items()
    ]
    sums = (sum(count for (_, each), count in found.items() if each == expect) for expect in _EXPECTED)
    rows.append(("all", "", *sums, sum(found.values())))
    table = _table(("kind", "what it tries", *_EXPECTED.values(), "cases"), rows)
    return "\n".join(["# Bypasses that are tests\n", _MADE, _BYPASSES, table])


def _of(found: Mapping[tuple[str, str], int], kind: str) -> int:
    return sum(count for (each, _), count in found.items() if each == kind)


def command_line() -> str:
    """Return the page of commands, options and exit codes."""
    from chalie.cli.exits import EXITS
    from chalie.cli.program import COMMANDS

    parts = ["# Command line\n", _MADE, _COMMAND_LINE, "## Exit codes\n"]
    parts.append(_table(("code", "means"), EXITS.items()))
    parts.append("## Commands\n")
    parts.append(
        _table(("command", "does"), ((f"[`{name}`](#{name})", line) for name, line in COMMANDS.items()))
    )
    for name in COMMANDS:
        command = importlib.import_module(f"chalie.cli.{name}").command
        parts += [f"### {name}\n", *_described(command, f"chalie {name}")]
    return "\n".join(parts)


def _described(command: click.Command, path: str) -> list[str]:
    """Return a command's usage, text and options; click's own formatting differs between its versions."""
    arguments = [_argument(each) for each in command.params if isinstance(each, click.Argument)]
    options = [each for each in command.params if isinstance(each, click.Option) and not each.hidden]
    words = [path, *(["[OPTIONS]"] if options else []), *arguments]
    if isinstance(command, click.Group):
        words.append("[COMMAND]")
    parts = [f"`{' '.join(words)}`\n", f"{inspect.cleandoc(command.help or '')}\n"]
    if options:
        parts.append(_table(("option", ""), (_option(each) for each in options)))
    if isinstance(command, click.Group):
        for name, child in command.commands.items():
            parts += _described(child, f"{path} {name}")
    return parts


def _argument(argument: click.Argument) -> str:
    name = argument.metavar or str(argument.name).upper()
    return name if argument.required or argument.metavar else f"[{name}]"


def _option(option: click.Option) -> tuple[str, str]:
    takes = "" if option.is_flag else f" {option.metavar or option.type.name.upper()}"
    default = f" Default: {option.default}." if option.show_default else ""
    return f"`{', '.join(option.opts)}{takes}`", f"{option.help or ''}{default}".replace("|", "\\|")


def events() -> str:
    """Return the page of events."""
    from chalie.ledger.trail import EVENTS

    table = _table(("event", "says"), ((f"`{event}`", meaning) for event, meaning in EVENTS.items()))
    return "\n".join(["# Events\n", _MADE, _EVENTS, table])


_LINT = """\
`chalie lint` names a rule in every finding. An error fails the run, a warning does with `--strict`. What is
right against a rule gets an exception with its reason: [naming](naming.md#exceptions) says how.
"""


def lint_rules() -> str:
    """Return the page of lint's rules."""
    from chalie.authoring.lint import RULES

    parts = ["# Rules of lint\n", _MADE, _LINT]
    rows = ((f"[`{rule.id}`](#{rule.id})", rule.severity, rule.says) for rule in RULES.values())
    parts.append(_table(("rule", "severity", "says"), rows))
    for rule in RULES.values():
        mended = " `--fix` repairs it where that is safe." if rule.fixable else ""
        parts += [f"## {rule.id}\n", f"{rule.says} ({rule.severity})\n", f"{rule.why}{mended}\n"]
        parts += [f"- wrong: {rule.wrong}", f"- right: {rule.right}\n"]
    return "\n".join(parts)


def _table(columns: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    heads = list(columns)
    lines = [heads, ["---"] * len(heads), *([str(cell) for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def pages() -> Mapping[str, str]:
    """Return file name -> text of every page that is made from the code."""
    from tests.support.api_page import api_page
    from tests.support.code_page import code_page
    from tests.support.configuration_page import configuration_page
    from tests.support.hook_page import hook_page

    return {
        "bypasses.md": bypasses(),
        "command-line.md": command_line(),
        "configuration.md": configuration_page(_MADE),
        "error-codes.md": code_page(_MADE),
        "events.md": events(),
        "hooks.md": hook_page(_MADE),
        "lint-rules.md": lint_rules(),
        "python-names.md": api_page(_MADE),
    }


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    for file, text in pages().items():
        (DOCS / file).write_text(text, encoding="utf-8")
        sys.stdout.write(f"{DOCS / file}\n")
