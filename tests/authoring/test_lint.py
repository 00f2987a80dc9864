"""Lint: every planted fault is caught by its rule alone, and what is right is left in peace."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from chalie.authoring import naming, sources, vocabulary
from chalie.authoring.lint import RULES, lint
from chalie.catalogue import tables
from chalie.catalogue.descriptor import Descriptor, EntryPoint
from chalie.catalogue.snapshot import Snapshot
from chalie.catalogue.tables import Contents, DistributionRow
from chalie.discovery.embedding import model_folder
from chalie.gate.display import escaped
from hypothesis import given
from hypothesis import strategies as st

from tests.authoring.subjects import linted, rules, subject

HERE = Path(__file__).parent
FAULTS = tomllib.loads((HERE / "planted.toml").read_text(encoding="utf-8"))["fault"]
JUDGED = tomllib.loads((HERE / "judged.toml").read_text(encoding="utf-8"))["judged"]
TEXT = {"type": "string"}


@pytest.fixture(scope="session")
def model() -> Path:
    points = [EntryPoint("chalie-model-static", "chalie.models", "static", "chalie_model_static")]
    return model_folder(None, points)


def rival() -> Descriptor:
    return subject(
        "weather",
        "The weather now and in the coming days.",
        dist="chalie-ability-weather",
        examples=["will it rain tomorrow", "do I need an umbrella", "how warm is it in Oslo"],
    ).descriptor


def test_there_are_at_least_sixty_planted_faults_and_one_for_every_rule() -> None:
    assert len(FAULTS) >= 60
    assert {fault["rule"] for fault in FAULTS} == set(RULES)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault['rule']}-{fault['name'][:24]}")
def test_a_planted_fault_is_caught_by_its_rule_alone(fault: dict[str, Any], model: Path) -> None:
    known = {"rule", "also", "name", "summary", "case", "exceptions"}
    facts = {key: value for key, value in fault.items() if key not in known}
    settings = {"parameters": fault.get("case", "camelCase"), "exceptions": fault.get("exceptions", {})}
    searched = {"model": model, "rivals": [rival()]} if fault.get("examples") else {}
    report = linted(subject(fault["name"], fault["summary"], **facts), settings=settings, **searched)
    assert rules(report) == sorted([fault["rule"], *fault.get("also", ())])
    for finding in report.findings:
        assert finding.message
        assert finding.fix
        assert finding.rule.page == f"docs/lint-rules.md#{finding.rule.id}"


RIGHT = [
    subject("weather", "Current conditions in any place.", side_effect="read"),
    subject("bash", "Run a command.", namespace="workspace"),
    subject("read", "Read a file.", namespace="workspace", parameters={"properties": {"path": TEXT}}),
    subject("invoice_add", "Create an invoice."),
    subject("invoice_list", "Every invoice of the year.", side_effect="read"),
    subject("category_tag_update", "Correct the tags of categories."),
    subject("company_dataroom_get", "Get the data room of the company.", side_effect="read"),
    subject("person_search", "Find people by name.", side_effect="read"),
    subject("reminder_send", "Send a reminder.", side_effect="external_send"),
    subject("terms_set", "Set the terms; the whole list is written at once."),
    subject(
        "data_room_share_delete",
        "Revoke a share of the data room.",
        namespace="data_room",
        side_effect="destructive",
    ),
    subject("vote_counter_get", "Count the votes.", side_effect="read"),
    subject("계산_get", "계산 결과.", namespace="계산", dist="mcp:sums"),
    subject("_mcp_files_readFile", "Ignored rules of others.", parameters={"properties": {"q": TEXT}}),
    subject(
        "shift_list",
        "List the shifts.",
        side_effect="read",
        parameters={
            "properties": {
                "limit": {"type": ["integer", "null"]},
                "query": TEXT,
                "startsAt": {"type": "string", "format": "date-time"},
                "personHint": TEXT,
                "personHints": {"type": "array", "items": TEXT},
                "messageIDs": {"type": "array", "items": TEXT},
                "start": {"type": "integer"},
                "x": {"type": "number"},
                "pageLimit": {"type": "integer"},
                "startDate": {"type": "string", "format": "date"},
            }
        },
    ),
    subject(
        "text_translate_get",
        "Get text translated: “à la carte”, ½ €, naïve, µm, 5 α, Δt, ɪ.",
        side_effect="read",
    ),
    subject("emoji_list", "List the emoji: ❤️ 👩‍💻 1️⃣ नमस्ते क्‍ष می‌خواهم.", side_effect="read"),
    subject("forecast", "Погода сейчас и в ближайшие дни: о том, как там.", side_effect="read"),
    subject("note_add", "Add a note. Use note_list first when you do not know what is there."),
    subject(
        "password_add", "Add a password that includes digits.", parameters={"properties": {"length": {}}}
    ),
]


@pytest.mark.parametrize("right", RIGHT, ids=lambda right: right.descriptor.name)
def test_what_is_right_is_left_in_peace(right: Any) -> None:
    assert not linted(right).findings


def test_at_least_a_hundred_findings_were_judged_and_ninety_five_in_a_hundred_confirmed() -> None:
    assert len(JUDGED) >= 100
    assert sum(row["confirmed"] for row in JUDGED) / len(JUDGED) >= 0.95
    assert all(row["why"] and row["rule"] in RULES for row in JUDGED)
    assert len({(row["rule"], row["tool"], row["where"]) for row in JUDGED}) == len(JUDGED)


BY_NAME = {"name-form", "name-namespace", "name-subject", "verb-replaced", "verb-unlisted"}


@pytest.mark.parametrize("tool", sorted({row["tool"] for row in JUDGED if row["rule"] in BY_NAME}))
def test_a_judged_name_is_still_judged_alike(tool: str) -> None:
    """The names alone are kept here; the texts are their publisher's."""
    rows = [row for row in JUDGED if row["tool"] == tool]
    found = naming.check(subject(tool, "A text.", namespace=rows[0]["namespace"]), vocabulary.load())
    expected = {row["rule"] for row in rows} & BY_NAME
    assert {finding.rule.id for finding in found} & BY_NAME == expected


def test_an_exception_needs_a_reason_and_covers_what_it_names() -> None:
    tool = subject(
        "invoice_approve", "Approve an invoice.", parameters={"properties": {"qty": {"type": "integer"}}}
    )
    assert rules(linted(tool)) == ["parameter-short", "verb-unlisted"]
    reason = "approving is none of the six"
    assert rules(linted(tool, settings={"exceptions": {"invoice_approve": reason}})) == ["parameter-short"]
    both = {"invoice_approve:verb-unlisted": reason, "invoice_approve.qty": reason}
    assert rules(linted(tool, settings={"exceptions": both})) == []


def test_an_exception_for_examples_is_not_stale_where_none_were_asked() -> None:
    tool = subject("invoice_get", "Get an invoice.", side_effect="read")
    kept = {"exceptions": {"invoice_get:example-lost": "two tools answer this"}}
    assert rules(linted(tool, settings=kept)) == []


def test_only_errors_fail_unless_warnings_are_to_count() -> None:
    report = linted(subject("invoice_delete", "Delete an invoice.", side_effect="write"))
    assert rules(report) == ["class-mild"]
    assert not report.fails()
    assert report.fails(strict=True)
    assert linted(subject("invoiceAdd", "Add.")).fails()


def test_a_message_names_the_name_that_would_do() -> None:
    found = linted(
        subject("task_task_create", "Create a task."),
        subject("event_add", "Add an event.", namespace="calendar"),
        subject(
            "invoice_get",
            "Get an invoice.",
            side_effect="read",
            parameters={"properties": {"Invoice_num": TEXT}},
        ),
    )
    fixes = {finding.rule.id: finding.fix for finding in found.findings}
    assert fixes == {
        "name-subject": "call it task_create",
        "verb-replaced": "call it task_task_add",
        "name-namespace": "call it calendar_event_add, or give the class namespace = 'event'",
        "parameter-case": "call it invoiceNum",
        "parameter-short": "call it invoiceNumber",
    }


@given(st.text(max_size=40), st.text(max_size=200), st.text(min_size=1, max_size=12))
def test_no_text_whatever_breaks_lint(name: str, summary: str, parameter: str) -> None:
    odd = {"properties": {parameter: {"type": ["string", 7], "items": 3, "enum": [summary]}, "other": True}}
    report = linted(subject(name or "x", summary, parameters=odd))
    for finding in report.findings:
        shown = finding.message + finding.fix + finding.where
        assert escaped(shown) == shown


def test_an_editable_package_is_linted_by_the_settings_of_its_project(tmp_path: Path) -> None:
    project, info = tmp_path / "rota", tmp_path / "site" / "rota-1.dist-info"
    project.mkdir()
    info.mkdir(parents=True)
    (project / "pyproject.toml").write_text('[tool.chalie.lint]\nparameters = "snake_case"\n')
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: rota\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[chalie.abilities]\nrota = rota\n")
    (info / "direct_url.json").write_text(
        json.dumps({"url": project.as_uri(), "dir_info": {"editable": True}})
    )
    first_day = {"properties": {"first_day": TEXT}}
    tool = subject("rota", "Show the rota.", dist="rota", parameters=first_day, side_effect="read").descriptor
    found = {}
    for editable in (True, False):
        row = DistributionRow("rota", "1", str(info), "", "", editable, "ready")
        tables.write(tmp_path / f"{editable}.sqlite", Contents((row,), (tool,)), {})
        snapshot = Snapshot.open(tmp_path / f"{editable}.sqlite")
        found[editable] = rules(lint(sources.installed(snapshot, ["rota", "absent"])))
        snapshot.close()
    assert found == {True: [], False: ["parameter-case"]}
