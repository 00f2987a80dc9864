"""The page of hooks: each with its signature, what its docstring promises, and an example that is run."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.support import docstrings, signatures

__all__ = ["EXAMPLES", "hook_page", "hooks"]

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples" / "hooks"

_OPENING = """\
A hook is a plain function in the module that a package's entry point names, marked with `hookimpl`. It
takes those of the hook's arguments that it needs, by name:

```python
from chalie import Limit, SideEffect, hookimpl


@hookimpl
def limit_call(call):
    if call.effect is SideEffect.DESTRUCTIVE:
        return Limit("must_ask", "nothing is deleted without a person")
```

The package says what it is by the group of that entry point; one module may hold hooks of both kinds.

```toml
# may decide: review_call, limit_call, and any other
[project.entry-points."chalie.policies"]
careful = "chalie_policy_careful"

# observes or adds: no hook that decides
[project.entry-points."chalie.plugins"]
meter = "chalie_plugin_meter"
```

Nothing of such a module is imported before a person enables the package: `chalie install` at a terminal
does, else `chalie enable PACKAGE`. A misspelt hook or argument is refused then, and the plugin named, as
is a hook wrapper on the two hooks that decide. The host calls each implementation by itself and catches
what it raises, so the failure of one is never another's; what it says is stamped with its distribution,
so it cannot speak as another. [Writing a policy](writing-a-policy.md) has the whole way from an empty
folder.
"""
#: hook -> what kind it is, for the table.
_KINDS = {"review_call": "decides", "limit_call": "decides", "register_commands": "adds"}


def hooks() -> Mapping[str, Callable[..., Any]]:
    """Return the hooks by name, in the order they are specified in."""
    from chalie import hookspecs

    return {
        name: value
        for name, value in vars(hookspecs).items()
        if inspect.isfunction(value) and hasattr(value, "chalie_spec")
    }


def hook_page(made: str) -> str:
    """Return the page.

    Args:
        made: the line that says where the page comes from.
    """
    parts = ["# Hooks\n", made, _OPENING, "| hook | kind | for |\n| --- | --- | --- |"]
    for name, hook in hooks().items():
        line = docstrings.summary(inspect.getdoc(hook) or "")
        parts.append(f"| [`{name}`](#{name}) | {_KINDS.get(name, 'observes')} | {line} |")
    for name, hook in hooks().items():
        parts.append(_section(name, hook))
    return "\n".join(parts)


def _section(name: str, hook: Callable[..., Any]) -> str:
    from chalie.hookspecs import LEAVING

    line, said = docstrings.hook_parts(inspect.getdoc(hook) or "")
    if name in LEAVING:
        line += f"\n\n**Goes with release {LEAVING[name].removed_in}:** use {LEAVING[name].instead}."
    promises = "\n".join(f"- **{title}:** {text}" for title, text in said.items())
    example = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    return f"""
## {name}

```py
{signatures.of_function(name, hook)}
```

{line}

{promises}

```python
{example.strip()}
```
"""
