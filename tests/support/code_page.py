"""The page of error codes: a section for each, with what it means and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["ADVICE", "code_page"]

_OPENING = """\
A code stands in the first line of an error's envelope (`code=`), on the trail and behind a failed command.
Its meaning never changes. An ability's own errors carry codes of its own besides these.

```text
[weather(status=error, code=missing-params)]
weather requires location
hint: pass location=
valid: location
[end:weather]
```
"""

#: code -> what its reader does next: the model where a call ended with it, else a person.
ADVICE: Final[Mapping[str, str]] = {
    "unknown-tool": "The message names the nearest tools where there are any. The model describes to "
    "`find_tools` what it needs; a person looks at `chalie list`.",
    "not-active": "A tool can be called once it is pinned or was found in this turn. The model searches "
    "for it by name, then calls it. In Python, `host.turn(active=...)` has it there from the "
    "start.",
    "ambiguous-name": "Call it as `<package>__<tool>`; the message lists who owns the name. `chalie show "
    "NAME` shows them side by side.",
    "not-ready": "Old code never runs under a new description. Restart the program after an upgrade; "
    "where the message says that the package is still being read, the next turn will have "
    "it. A server that lists another tool of that name now is searched again.",
    "quarantined": "`chalie doctor` says what is wrong with the package, in which file, and the line that "
    "repairs it. Everything else works meanwhile.",
    "unknown-action": "Pass one of the values listed as `action=`. Where the values are your own tool's: its "
    "`actions` and the `enum` in its `parameters()` should say the same.",
    "missing-params": "The hint names the parameters to pass. An author says which they are in "
    "`required`, or for one action in `action_required`.",
    "invalid-param": "The message says which parameter and what fits; quotes, case and JSON text have been "
    "repaired before that. A tool may say it of its own arguments by raising "
    "`ArgumentRefused`.",
    "ambiguous-param": "The call held, say, both `city` and `location`, and one is an alias of the "
    "other. Pass one.",
    "arguments-too-large": "Pass less, or hand over a kept result as `result:<id>` in place of its text.",
    "ambiguous-hint": "Pass one of the values under `valid:`. [Hints](hints.md) are never guessed.",
    "hint-not-found": "List the records with the tool that the hint names, and pass an identifier or a title "
    "from there.",
    "background-not-offered": "Call it again without `async`. `[channels.NAME] background` lets a "
    "channel offer it.",
    "timed-out": "Whether it took effect is not known: look before calling it again. The limit is the tool's "
    "`time_limit_s`, the package's, or `[limits] call_s`.",
    "cancelled": "The program or the person gave the call up. It may have taken effect before it stopped; "
    "what it returned is not delivered.",
    "unhandled-exception": "The model is told no more than this. `chalie trail --tool NAME` has the "
    "exception's type, its message and the lines it came from. An author catches "
    "what can be expected and returns `ToolResult.error`.",
    "non-canonical-result": "`run` returned something else than a `ToolResult`. It has to be "
    "`ToolResult.ok(...)` or `ToolResult.error(...)` on every path; the trail "
    "says what it was.",
    "worker-died": "An isolated tool's process ended, by a crash or by `os._exit`. Whether the call took "
    "effect is not known; the next one gets a new process. The trail says how it ended.",
    "busy": "Calls that ignore their end hold every worker. Try later; `[limits] workers` sets how "
    "many there are, and `isolate = true` for the package lets stuck ones be ended.",
    "not-connected": "Nothing was sent, so nothing happened there. The message says what the server answered "
    "or did not; `chalie doctor` says what to start, set or sign in to.",
    "connection-lost": "Whether it took effect is not known: look before calling it again. The connection is "
    "made anew for the next call.",
    "server-error": "The text is the server's own word, which nobody has checked. Read it as data.",
    "result-mismatch": "The text is there all the same. Tell who makes the server: its tool declares an "
    "output schema that its own result does not fit.",
    "needs-input": "Call it with the missing value among the arguments, or do this in the server's own "
    "client.",
    "permission-denied": "A row, a limit or a missing person said no. `chalie explain TOOL KEY=VALUE` "
    "shows who, and the hint has the line that would allow it, where one would.",
    "not-allowed": "It is not for this turn, principal or program to do: a token for other permissions, "
    "another environment's hold. The message says which.",
    "approval-pending": "The call is stored and waits; the model goes on with something else. A person "
    "answers with `chalie approve ID` or `chalie decline ID`, and the result comes "
    "to the conversation.",
    "declined": "The same call is refused from then on in that conversation. `chalie decline ID --undo` "
    "lets it be asked again.",
    "not-authorised": "Do it at a terminal as the owner of the home, or with an approver token: `chalie "
    "approvers add LABEL`, then `CHALIE_APPROVER_TOKEN=...`.",
    "hold-unknown": "`chalie holds` lists what waits, `chalie holds --all` what did.",
    "already-decided": "The message says who answered and how it ended. Nothing was run a second time.",
    "result-unknown": "Results are kept for some days (`[retention] results_days`), for the principal that "
    "they were made for. Call the tool again.",
    "cannot-record": "Nothing runs without its row. Look at the disk and at `chalie doctor`.",
    "index-unreadable": "The other rungs of the search go on, and a new index is being built. Where it comes "
    "back, the disk is at fault; `chalie index --rebuild` builds everything again.",
    "extra-missing": 'The message has the line that installs it, as `python -m pip install "chalie[mcp]"`.',
    "unknown-package": "`chalie list` shows what is there. Most often it is another Python: `chalie doctor` "
    "says which one this is.",
    "unknown-server": "The servers are those of `mcp.json` in the home.",
    "unknown-playbook": "`chalie skills` lists them.",
    "bad-config": "The message names the file, the key and what belongs there: "
    "[configuration](configuration.md).",
    "bad-file": "The message names the file and the place in it, and what belongs there.",
    "bad-name": "The rule is in the message, and all of them in [names](writing-an-ability.md#names).",
    "bad-schema": "The message names the place in the schema. It has to be an object's, complete in itself "
    "(no reference to another document), and of a size that can be checked.",
    "describe-failed": "The message names the class, the fact and the line. `chalie doctor` says it again.",
    "ledger-unavailable": "The message names the file and the reason: no rights, no room, a damaged "
    "file, or one that a newer Chalie wrote.",
}


def code_page(made: str) -> str:
    """Return the page.

    Args:
        made: the line that says where the page comes from.
    """
    from chalie.cli import exits
    from chalie.errors import CODES

    parts = ["# Error codes\n", made, _OPENING, "| code | tells its reader |\n| --- | --- |"]
    parts += [f"| [`{code}`](#{code}) | {meaning} |" for code, meaning in CODES.items()]
    for code, meaning in CODES.items():
        parts.append(f"\n## {code}\n\n{meaning[0].upper()}{meaning[1:]}.\n")
        if code in ADVICE:
            parts.append(f"{ADVICE[code]}\n")
        parts.append(f"`chalie` ends with exit code {exits.of(code)}.")
    return "\n".join([*parts, ""])
