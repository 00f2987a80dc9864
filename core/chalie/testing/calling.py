"""The process that makes the contract's calls: `python -m chalie.testing.calling`.

A task in JSON comes in on standard input, lines of JSON go out on what was standard output: before each call
what it is, after it how it ended. So a call that ends the process is known by the line before.
"""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ..catalogue.descriptor import Descriptor
    from ..host import Host

__all__ = ["TIME_LIMIT_S", "keep_offline", "main"]

#: seconds that one call may take before it counts as one that hangs.
TIME_LIMIT_S: Final = 10.0
_OUTGOING: Final = frozenset({"socket.connect", "socket.sendto", "socket.sendmsg"})
_LOOK_UPS: Final = frozenset({"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"})
_HERE: Final = ("127.", "::1", "localhost")


def keep_offline() -> None:
    """Let this process reach nothing but this machine from now on; there is no way back."""

    def audited(event: str, arguments: tuple[Any, ...]) -> None:
        if event in _OUTGOING:
            address = arguments[-1]
            if isinstance(address, tuple) and not str(address[0]).startswith(_HERE):
                raise OSError(errno.ENETUNREACH, "the network is off while the contract is checked")
        elif event in _LOOK_UPS and arguments[0] and not _text(arguments[0]).startswith(_HERE):
            import socket

            raise socket.gaierror(socket.EAI_AGAIN, "the network is off while the contract is checked")

    sys.addaudithook(audited)


def _text(host: object) -> str:
    return host.decode("latin-1") if isinstance(host, bytes) else str(host)


def main() -> None:
    """Make the calls of one package."""
    task = json.loads(sys.stdin.buffer.read())
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a tool prints must not come between the lines
    sys.path[:] = task["paths"]
    keep_offline()

    def tell(**line: Any) -> None:
        out.write(json.dumps(line).encode() + b"\n")
        out.flush()

    from ..host import Host
    from .approver import ScriptedApprover

    home = Path(task["home"])
    limit_s = float(task["limit_s"])
    home.joinpath("config.toml").write_text(f"[limits]\ncall_s = {limit_s}\n", encoding="utf-8")
    with Host.open(home, approver=ScriptedApprover()) as host:
        for ability in host.snapshot.of(task["dist"]):
            _try(host, ability, limit_s, tell)
    tell(done=True)
    out.flush()
    os._exit(0)  # a thread that hangs in a call must not hold up the end


def _try(host: Host, ability: Descriptor, limit_s: float, tell: Callable[..., None]) -> None:
    from .arguments import attempts

    for permission, _ in ability.permissions():
        host.ledger.permissions.set("chat", ability.dist, permission, "allow", by="contract")
    for number, attempt in enumerate(attempts(ability)):
        tell(ability=ability.name, kind=attempt.kind, label=attempt.label)
        ended = _ended(host, ability, number, attempt.arguments)
        tell(**ended)
        if ended["code"] == "timed-out" and ended["seconds"] >= limit_s:
            return  # its thread is still at it, and one such call is enough to be told of


def _ended(host: Host, ability: Descriptor, number: int, arguments: Any) -> Mapping[str, Any]:
    from ..envelope import parse

    exposed = host.snapshot.exposed(ability)
    # each in a conversation of its own: what one call left there is not the next one's affair
    turn = host.turn("chat", conversation=f"{ability.name}-{number}", active=[exposed])
    text = turn.call(exposed, arguments)
    try:
        frame = parse(text)
    except ValueError as error:
        return {"code": None, "status": "broken", "detail": str(error), "seconds": 0.0}
    record = turn.records[-1]
    rows = host.ledger.trail.query(event="call.finished", call_id=record.call_id)
    ended = {"code": frame.code, "status": frame.status, "seconds": record.duration_us / 1e6}
    return {**ended, "detail": next(_details(rows), "")}


def _details(rows: Any) -> Iterator[str]:
    yield from (row.detail for row in rows if row.detail)


if __name__ == "__main__":
    main()
