"""The page of configuration: every option and variable that `config.py` reads, what it takes, its default."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import attrs

__all__ = ["MEANINGS", "WORDS", "configuration_page", "options", "variables"]

_OPENING = """\
Nothing has to be configured. What you do set stands in `config.toml` in the home, which Chalie reads when
a host opens and never writes; `chalie doctor` says where that is. A key or table that does not exist is
refused with the nearest that does ([`bad-config`](error-codes.md#bad-config)), so a typo is never a
silent default.

```toml
[gate]
required = ["chalie-policy-side-effects"]
ask_timeout_s = 120

[channels.phone]
policy = "chat"
pins = ["find_tools", "chalie-ability-memory:memory"]

[packages.chalie-ability-weather]
isolate = true
time_limit_s = 20
```

Beside it lies `packages.toml`, which commands write (`chalie disable NAME`). Where both set the same option,
`config.toml` wins, and a command that would be without effect is refused.
"""
_VARIABLES = """\
## Environment

| variable | is |
| --- | --- |
"""
_OTHERS = """\
Packages have variables of their own, which their pages name: `CHALIE_WORKSPACE_ROOTS` of
[chalie-ability-workspace](../plugins/chalie-ability-workspace/README.md), for one.

## What else lies in the home

| file or folder | holds |
| --- | --- |
| `ledger.sqlite` | permissions, holds, the trail, kept results, inboxes |
| `generations/<environment>/` | catalogue and indexes of one Python environment; can be built again |
| `data/<package>/` | what a package's tools keep, each for itself |
| `mcp.json` | the MCP servers whose tools are taken in: [yours](bring-your-mcp-servers.md) |
| `mcp/` | what each of them last listed, and how it was last reached |
| `config.toml`, `packages.toml` | options: yours, and what commands wrote |

The folder has mode 0700. It may be copied while nothing runs; without the `generations` folder nothing is
lost but the time to build them.
"""

#: table -> what it is about.
_TABLES: Final = {
    "catalogue": "The [catalogue](catalogue.md) that the host's own is expected to be: where it is "
    "another one, the host stays up, refuses it and shows both.",
    "channels.NAME": "A channel: where a turn happens. `chat`, `subconscious`, `external_agent` and the "
    "delegate `web_search` are there without it; another NAME makes a channel of your own "
    "(see [channels](embedding.md#channels)).",
    "gate": "How calls are decided: see [the gate](gate.md).",
    "discovery": "How tools are found: see [how tools are found](discovery.md).",
    "limits": "How much and how long.",
    "retention": "How long the record is kept. Deleting is an event on the trail.",
    "packages.NAME": "What goes for one package; NAME is its distribution's name, in any spelling.",
}

#: (table, option) -> what it means.
WORDS: Final[Mapping[tuple[str, str], str]] = {
    ("catalogue", "file"): "the file of that catalogue; a relative path is taken from the home",
    (
        "channels.NAME",
        "policy",
    ): "the policy channel whose rows apply; without it a channel of your own is a delegate",
    ("channels.NAME", "pins"): "the tools that are always there, as `name` or `package:name`",
    ("channels.NAME", "background"): "whether the model may have a call run in the background",
    ("gate", "required"): "policy packages without which nothing runs",
    ("gate", "deadline_ms"): "milliseconds for all policies of one call together; past it the call is denied",
    ("gate", "ask_timeout_s"): "seconds that a caller waits for a person's answer before the call is held",
    ("gate", "hold_days"): "days that a held call can be answered in",
    (
        "discovery",
        "model",
    ): "the embedding model: an installed package's, or a folder; `CHALIE_MODEL` goes before it",
    ("discovery", "nearest"): "how many tools one entry finds by meaning at most",
    ("discovery", "ceiling"): "the cosine distance that nothing found by meaning may exceed",
    ("limits", "result_kib"): "KiB of a result that the model is shown; the rest is kept for `read_result`",
    ("limits", "describe_s"): "seconds that reading one package's tools may take",
    ("limits", "build_wait_s"): "seconds that opening a host or a turn waits for a new catalogue",
    ("limits", "workers"): "threads that run tools that block, and that many in the background besides",
    ("limits", "call_s"): "seconds after which a call is given up, for tools that set no limit of their own",
    ("limits", "server_connect_s"): "seconds that reaching an MCP server may take",
    (
        "limits",
        "server_call_s",
    ): "seconds after which a call of an MCP server's tool is given up, where nothing else is said",
    ("retention", "trail_days"): "days that rows of the trail are kept",
    ("retention", "results_days"): "days that results which were cut are kept whole",
    ("packages.NAME", "isolate"): "whether its tools run in a process of their own",
    ("packages.NAME", "disabled"): "whether nothing of it is read or loaded",
    ("packages.NAME", "time_limit_s"): "seconds after which a call of its tools is given up",
}

#: (table, option) -> what stands for a default of None.
_UNSET: Final = {
    ("channels.NAME", "policy"): "its own, for the channels that are there; else none",
    ("channels.NAME", "pins"): "the channel's own",
    ("channels.NAME", "background"): "the channel's own",
    ("discovery", "model"): "`chalie-model-static`",
    ("discovery", "ceiling"): "the model's own",
    ("limits", "call_s"): "no limit",
    ("packages.NAME", "isolate"): "as each tool says",
    ("packages.NAME", "time_limit_s"): "as each tool says, else `limits.call_s`",
}

#: variable -> what it is.
MEANINGS: Final = {
    "CHALIE_HOME": "the home folder; else the platform's user data folder + `chalie` "
    "(`~/.local/share/chalie` on Linux, `~/Library/Application Support/chalie` on macOS). "
    "`--home` goes before it",
    "CHALIE_MODEL": "an embedding model's folder or package for this process, before `[discovery] model`",
    "CHALIE_APPROVER_TOKEN": "an approver token, for programs and scripts that answer for a person "
    "(`chalie approvers add`). It is taken out of the environment as soon as it is read",
}


def options() -> Iterator[tuple[str, str, str, str]]:
    """Yield (table, option, what it takes, its default) of every option that the host takes."""
    from chalie import config

    held = attrs.fields_dict(config.Config)
    for table in config._TABLES:
        checks = vars(config).get(f"_{table.upper()}") or vars(config)[f"_{table.upper().removesuffix('S')}"]
        annotation = str(held[table].type)
        values = vars(config).get(re.findall(r"\w+", annotation)[-1])
        defaults = {field.name: field.default for field in attrs.fields(values)} if attrs.has(values) else {}
        name = f"{table}.NAME" if annotation.startswith("Mapping[") else table
        for option, check in checks.items():
            yield name, option, _takes(check), _default(name, option, defaults.get(option))


def variables() -> list[str]:
    """Return the environment variables that `config.py` reads, in the order it does."""
    from chalie import config

    found: dict[str, None] = {}
    for node in ast.walk(ast.parse(inspect.getsource(config))):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and node.value.startswith("CHALIE_")
        ):
            found[node.value] = None
    return list(found)


def configuration_page(made: str) -> str:
    """Return the page.

    Args:
        made: the line that says where the page comes from.
    """
    parts = ["# Configuration\n", made, _OPENING]
    last = ""
    for table, option, takes, default in options():
        if table != last:
            parts.append(f"{'' if not last else chr(10)}## `[{table}]`\n\n{_TABLES.get(table, '')}\n")
            parts.append("| option | is | takes | default |\n| --- | --- | --- | --- |")
            last = table
        parts.append(f"| `{option}` | {WORDS.get((table, option), '')} | {takes} | {default} |")
    parts.append(
        f"\n{_VARIABLES}" + "\n".join(f"| `{name}` | {MEANINGS.get(name, '')} |" for name in variables())
    )
    return "\n".join([*parts, "", _OTHERS])


def _takes(check: Any) -> str:
    """Return what a check asks for, in its own words."""
    try:
        check(object())
    except Exception as expected:
        return str(expected)
    raise AssertionError(f"{check} takes anything")


def _default(table: str, option: str, value: object) -> str:
    if value is None:
        return _UNSET.get((table, option), "none")
    if value == ():
        return "`[]`"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"
