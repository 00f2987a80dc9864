"""Long results are cut, kept, read on and handed to the next tool by their handle."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from chalie.errors import LedgerUnavailable
from chalie.result import ToolResult

from .inside import Inside, Person, Plain

CAP = 64 * 1024


class Big(Plain):
    called = "big"
    body: Any = ""

    def run(self, params: Any) -> ToolResult:
        return ToolResult.ok(self.body)


class Takes(Plain):
    called = "takes"
    properties = {
        "text": {"type": "string"},
        "list": {"type": "array", "items": {"type": "string"}},
        "tree": {"type": "object"},
    }

    def run(self, params: Any) -> ToolResult:
        return ToolResult.ok({key: _sizes(value) for key, value in params.items()})


def _sizes(value: Any) -> Any:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, list):
        return [_sizes(item) for item in value]
    return {key: _sizes(item) for key, item in value.items()}


def big(inside: Inside, monkeypatch: pytest.MonkeyPatch, body: Any) -> Any:
    monkeypatch.setattr(Big, "body", body)
    return inside.turn(inside.add(Big), inside.add(Takes))


BODIES: list[tuple[Callable[[], Any], bool]] = [
    (lambda: "word " * 1_000_000, False),
    (lambda: "x" * 5_000_000, False),
    (lambda: "é" * 2_500_000, False),
    (lambda: list(range(1_000_000)), True),
    (lambda: [{"row": number, "name": "n" * 20} for number in range(50_000)], True),
    (lambda: {"image": "iVBORw0KGgo" * 500_000}, True),
]


@pytest.mark.parametrize(("make", "is_json"), BODIES)
def test_a_body_over_the_cap_is_cut_with_its_size_and_a_handle_and_json_stays_json(
    inside: Inside, monkeypatch: pytest.MonkeyPatch, make: Callable[[], Any], is_json: bool
) -> None:
    body = make()
    turn = big(inside, monkeypatch, body)
    frame = inside.call(turn, "big")
    whole = body if isinstance(body, str) else json.dumps(body, separators=(",", ":"))
    assert len(frame.body.encode()) <= CAP
    assert frame.meta["truncated"] is True and frame.meta["size"] == len(whole.encode())
    if is_json:
        json.loads(frame.body)
    kept = inside.ledger.results.get("ada", str(frame.meta["result"]))
    assert kept is not None and kept.body == whole


def test_a_body_at_the_cap_is_whole_and_one_byte_more_is_cut(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = big(inside, monkeypatch, "x" * CAP)
    assert "truncated" not in inside.call(turn, "big").meta
    monkeypatch.setattr(Big, "body", "x" * (CAP + 1))
    assert inside.call(turn, "big").meta["truncated"] is True


def test_a_cut_result_makes_the_tool_that_reads_on_active(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Read(Plain):
        called = "read_result"
        properties = {"id": {"type": "string"}}

    turn = big(inside, monkeypatch, "x" * 100_000)
    turn.reader = inside.add(Read, dist="chalie")
    assert "read_result" not in turn.tools()
    frame = inside.call(turn, "big")
    assert "read_result" in turn.tools()
    handle = f"result:{frame.meta['result']}"
    assert json.loads(inside.call(turn, "read_result", {"id": handle}).body) == {"id": handle}


def test_a_handle_stands_for_the_whole_text_wherever_it_is_in_the_arguments(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = big(inside, monkeypatch, "x" * 2_500_000)
    handle = f"result:{inside.call(turn, 'big').meta['result']}"
    arguments = {"text": handle, "list": ["a", handle], "tree": {"deep": [{"er": handle}], handle: "key"}}
    body = json.loads(inside.call(turn, "takes", arguments).body)
    size = 2_500_000
    assert body == {"text": size, "list": [1, size], "tree": {"deep": [{"er": size}], handle: 3}}


def test_a_handle_of_kept_json_fits_a_parameter_that_takes_no_text_and_is_checked_as_what_it_is(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = ["row" * 10 for _ in range(20_000)]
    turn = big(inside, monkeypatch, rows)
    handle = f"result:{inside.call(turn, 'big').meta['result']}"
    assert json.loads(inside.call(turn, "takes", {"list": handle}).body) == {"list": [30] * 20_000}
    monkeypatch.setattr(Big, "body", [[] for number in range(1_100_000)])
    numbers = f"result:{inside.call(turn, 'big').meta['result']}"
    assert inside.call(turn, "takes", {"list": numbers}).code == "arguments-too-large"
    monkeypatch.setattr(Big, "body", list(range(20_000)))
    numbers = f"result:{inside.call(turn, 'big').meta['result']}"
    assert inside.call(turn, "takes", {"list": numbers}).code == "invalid-param"
    assert inside.call(turn, "takes", {"list": "result:nope"}).code == "result-unknown"


def test_a_handle_inside_a_longer_text_is_only_text(inside: Inside, monkeypatch: pytest.MonkeyPatch) -> None:
    turn = big(inside, monkeypatch, "")
    for text in ("see result:0123456789abcdef", "result: ok", "result:", "result:a b", "Result:abc"):
        assert json.loads(inside.call(turn, "takes", {"text": text}).body) == {"text": len(text)}


def test_what_is_approved_and_recorded_is_the_id_with_hash_and_size(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    person = Person()
    monkeypatch.setattr(Big, "body", "x" * 100_000)
    turn = inside.turn(inside.add(Big), inside.add(Takes, allow=False), approver=person)
    result_id = inside.call(turn, "big").meta["result"]
    inside.call(turn, "takes", {"text": f"result:{result_id}"})
    kept = inside.ledger.results.get("ada", str(result_id))
    assert kept is not None
    bound = f"result:{result_id} sha256:{kept.sha256} 100000 bytes"
    assert person.shown[0].arguments == {"text": bound}
    recorded = [row.arguments for row in inside.rows("call.started") if row.name == "takes"]
    assert recorded == [json.dumps({"text": bound}, separators=(",", ":"))]


def test_another_principals_handle_is_unknown_and_nothing_runs(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = big(inside, monkeypatch, "x" * 100_000)
    handle = f"result:{inside.call(turn, 'big').meta['result']}"
    other = inside.turn(*turn.active.values(), principal="eve")
    inside.loaded.clear()
    for unknown in (handle, "result:0000000000000000", "result:nope"):
        assert inside.call(other, "takes", {"list": [unknown]}).code == "result-unknown"
    assert inside.loaded == [] and inside.gate.passes == 1


def test_a_handle_that_expires_while_a_person_thinks_is_unknown(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Slow(Person):
        def ask(self, hold: Any) -> Any:
            inside.ledger.results.expire(now=10.0**12)
            return super().ask(hold)

    monkeypatch.setattr(Big, "body", "x" * 100_000)
    turn = inside.turn(inside.add(Big), inside.add(Takes, allow=False), approver=Slow())
    handle = f"result:{inside.call(turn, 'big').meta['result']}"
    assert inside.call(turn, "takes", {"text": handle}).code == "result-unknown"
    assert inside.rows()[-1].event == "call.finished"


def test_a_result_that_cannot_be_kept_is_still_shown_and_says_so(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = big(inside, monkeypatch, "x" * 100_000)

    def full(*_: object) -> str:
        raise LedgerUnavailable("disk full")

    monkeypatch.setattr(inside.ledger.results, "put", full)
    frame = inside.call(turn, "big")
    assert frame.status == "success" and frame.meta["kept"] is False and "result" not in frame.meta


@pytest.mark.parametrize(
    "result",
    [
        ToolResult.error("m" * 1_000_000, code="x"),
        ToolResult.error("m", code="x", hint="h" * 1_000_000),
        ToolResult.error("m", code="x", valid=[f"choice-{n}" for n in range(100_000)]),
        ToolResult.error("m", code="x", valid=["v" * 1_000_000] * 8),
        ToolResult.error("m", code="x", valid=["v" * 1_000_000, "short"]),
        ToolResult.ok("b", **{f"{'k' * 50}{n}": n for n in range(5_000)}),
        ToolResult.ok("b", **{f"k{n}": "v" * 4000 for n in range(500)}),
    ],
)
def test_no_part_of_a_result_can_flood_the_turn(
    inside: Inside, monkeypatch: pytest.MonkeyPatch, result: ToolResult
) -> None:
    class Floods(Plain):
        called = "floods"

        def run(self, params: Any) -> ToolResult:
            return result

    text = inside.dispatcher.call(inside.turn(inside.add(Floods)), "floods")
    assert len(text.encode()) < CAP + 16_384
    assert "short" not in result.valid or "valid: short" in text
    assert inside.call(inside.turn(inside.shelf.owners("floods")[0]), "floods").status == result.status
