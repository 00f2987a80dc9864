"""A program for `test_many_installed.py`: builds, opens a host, searches, calls, and tells what it looked at.

Arguments: home, import folder, the tool to call, its package. Prints a JSON object: for each stage how often
each file of a distribution's metadata was opened and how often the folder was listed, and which generated
modules were imported by its end.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

stage = Counter[str]()


def main(home: Path, site: Path, name: str, dist: str) -> None:
    from chalie import Host
    from chalie.build import build
    from chalie.config import Config

    told: dict[str, Any] = {}

    def end(what: str) -> None:
        modules = sorted(each for each in sys.modules if each.startswith("chalie_ability_archive"))
        told[what] = {"looked": dict(stage), "modules": modules}
        stage.clear()

    def audited(event: str, arguments: tuple[Any, ...]) -> None:
        path = arguments[0] if arguments else None
        if isinstance(path, str | os.PathLike) and os.fspath(path) == str(site):
            stage.update([event])
        elif event == "open" and str(path).startswith(f"{site}/") and ".dist-info" in str(path):
            stage.update([str(path)])

    sys.addaudithook(audited)
    generation = build(Config.load(home), quiet_s=0.0)
    end("build")
    with Host.open(home) as host:
        assert host.generation.id == generation.id and host.upkeep.pending == ()
        end("open")
        for number in range(20):
            turn = host.turn("chat")
            turn.call("find_tools", {"query": [name, "archive it", f"I want to archive a photo {number}"]})
        assert name in turn.names, turn.names
        end("search")
        host.ledger.permissions.set("chat", dist, name, "allow", by="test")
        told["said"] = host.turn("chat", active=[name]).call(name, {"act_summary": "trying"})
        end("call")
    print(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3], sys.argv[4])
