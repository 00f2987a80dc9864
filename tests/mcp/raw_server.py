"""A server by hand, without any SDK, that misbehaves as it is told, as by `{"crash": "tools/call"}`.

It speaks the older protocol. What it received is appended to the file `log`, one message a line.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

TOLD: dict[str, Any] = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}}}
TOOLS = TOLD.get("tools", [{"name": "say", "description": "Say a text.", "inputSchema": SCHEMA}])
WRITING = threading.Lock()


def write(message: dict[str, Any]) -> None:
    with WRITING:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def log(message: Any) -> None:
    if "log" in TOLD:
        with Path(TOLD["log"]).open("a", encoding="utf-8") as file:
            file.write(json.dumps(message) + "\n")


def listing(params: dict[str, Any]) -> dict[str, Any]:
    pages = TOLD.get("pages")
    if pages is None:
        return {"tools": TOOLS}
    number = (
        0
        if "cursor" not in params
        else next(at for at, (_, cursor) in enumerate(pages, 1) if cursor == params["cursor"])
    )
    tools, cursor = pages[min(number, len(pages) - 1)]
    return {"tools": tools} | ({} if cursor is None else {"nextCursor": cursor})


def call(number: Any, params: dict[str, Any]) -> None:
    name, arguments = params["name"], params.get("arguments", {})
    if name == "change":
        TOOLS.append({"name": arguments["text"], "description": "New.", "inputSchema": SCHEMA})
        write({"method": "notifications/tools/list_changed"})
        time.sleep(float(TOLD.get("after_change", 0)))
    if name == "wait":
        time.sleep(float(arguments["text"]))
    answer = TOLD.get("answers", {}).get(name)
    if name == "big":
        answer = {"content": [{"type": "text", "text": "x" * int(arguments["text"])}]}
    write({"id": number, "result": answer or {"content": [{"type": "text", "text": json.dumps(arguments)}]}})


def answer(message: dict[str, Any]) -> None:
    method, number, params = message["method"], message.get("id"), message.get("params") or {}
    log(message)
    if TOLD.get("crash") == method:
        sys.stderr.write("starting\nboom: out of luck with s3cret-value\n")
        sys.stderr.flush()
        os._exit(3)
    if number is None or TOLD.get("hang") == method:
        return
    if method == "server/discover" and TOLD.get("hangs_up"):
        os._exit(0)
    if method in TOLD.get("errors", {}):
        write({"id": number, "error": TOLD["errors"][method]})
    elif method == "initialize":
        info = {"name": "raw", "version": "0.1"}
        capabilities = {"tools": {"listChanged": True}}
        write(
            {
                "id": number,
                "result": {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info},
            }
        )
    elif method == "tools/list":
        write({"id": number, "result": listing(params)})
    elif method == "tools/call":
        threading.Thread(target=call, args=(number, params), daemon=True).start()
    elif method != TOLD.get("hang"):
        write({"id": number, "error": {"code": -32601, "message": f"no method {method}"}})


def cling() -> None:
    """Stay, whatever is asked, with a child in the group and one outside; write down who they are."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sleep = [sys.executable, "-c", "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)"]
    near = subprocess.Popen(sleep, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    far = subprocess.Popen(sleep, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True)
    Path(TOLD["clings"]).write_text(f"{os.getpid()} {near.pid} {far.pid}")


def flood() -> None:
    while True:
        write(
            {"method": TOLD["floods"], "params": {}, **({"id": "f"} if "/create" in TOLD["floods"] else {})}
        )


def main() -> None:
    if "clings" in TOLD:
        cling()
    for _ in range(TOLD.get("garbage", 0)):
        print("starting up, please wait ...", flush=True)
    while TOLD.get("endless"):
        print("y" * 1000, flush=True)
    if "line" in TOLD:
        sys.stdout.write("x" * TOLD["line"])
    time.sleep(TOLD.get("slow", 0))
    if "floods" in TOLD:
        threading.Thread(target=flood, daemon=True).start()
    for line in sys.stdin:
        message = json.loads(line)
        if "method" in message:  # else an answer to what it asked itself
            answer(message)
    while "clings" in TOLD:
        time.sleep(1)


if __name__ == "__main__":
    main()
