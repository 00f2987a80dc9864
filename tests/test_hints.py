"""What a hint means: the identifier, the title, one containing title; anything else is an error, no guess."""

from __future__ import annotations

import unicodedata

import attrs
import pytest
from chalie import ToolResult, envelope
from chalie.errors import CODES
from chalie.hints import MOST, normal, resolve
from hypothesis import given
from hypothesis import strategies as st


@attrs.frozen
class Task:
    id: str
    title: str


REPORT = Task("t1", "Quarterly report")
DRAFT = Task("t2", "Quarterly report, draft")
LUNCH = Task("t3", "Lunch with Zoë")
TASKS = (REPORT, DRAFT, LUNCH)


def refused(found: object, code: str) -> ToolResult:
    assert isinstance(found, ToolResult)
    assert (found.status, found.code) == ("error", code)
    assert code in CODES
    return found


@pytest.mark.parametrize(
    ("hint", "meant"),
    [
        ("t2", DRAFT),
        (" t2\n", DRAFT),
        ("Quarterly report", REPORT),
        ("quarterly  REPORT", REPORT),
        ("draft", DRAFT),
        ("with Zoe\u0308", LUNCH),
        ("ＬＵＮＣＨ", LUNCH),
        ("Lunch\u200b with", LUNCH),
    ],
)
def test_a_hint_that_names_one_record_gives_that_record(hint: str, meant: Task) -> None:
    assert resolve(hint, TASKS) is meant


def test_an_identifier_comes_before_a_title() -> None:
    other = Task("t9", "t1")
    assert resolve("t1", [other, REPORT]) is REPORT


def test_a_title_as_it_is_written_comes_before_one_in_other_capitals() -> None:
    loud = Task("t8", "QUARTERLY REPORT")
    assert resolve("QUARTERLY REPORT", [REPORT, loud]) is loud
    error = refused(resolve("Quarterly Report", [REPORT, loud]), "ambiguous-hint")
    assert error.valid == ("Quarterly report", "QUARTERLY REPORT")


def test_several_containing_titles_are_named_and_none_is_chosen() -> None:
    error = refused(resolve("report,", [*TASKS, Task("t4", "Report, final")], thing="task"), "ambiguous-hint")
    assert error.message == ("'report,' fits 2 tasks: Quarterly report, draft (t2), Report, final (t4)")
    assert error.valid == ("Quarterly report, draft", "Report, final")
    assert error.hint is not None
    assert "ask the person" in error.hint


def test_records_of_one_title_are_told_apart_by_their_identifiers() -> None:
    twins = [Task("a", "Kim"), Task("b", "Kim")]
    assert refused(resolve("Kim", twins), "ambiguous-hint").valid == ("a", "b")


def test_at_most_eight_candidates_are_named() -> None:
    many = [Task(f"id{number}", f"Note {number} of many") for number in range(30)]
    error = refused(resolve("note", many, thing="entry"), "ambiguous-hint")
    assert len(error.valid) == MOST == 8
    assert "fits 30 entries" in error.message
    assert error.message.endswith("and 22 more")


@pytest.mark.parametrize("hint", ["dinner", "", "  ", "\u200b"])
def test_a_hint_that_fits_nothing_is_not_found(hint: str) -> None:
    error = refused(resolve(hint, TASKS, thing="task", listed_by="task_list"), "hint-not-found")
    assert error.valid == ()
    assert error.hint == "see what there is with task_list, and pass an identifier or a title of those"


def test_an_empty_title_is_contained_in_no_hint_and_fits_none() -> None:
    refused(resolve("anything", [Task("x", "")]), "hint-not-found")


def test_records_may_be_mappings_or_name_their_facts_themselves() -> None:
    rows = [{"id": 7, "name": "Ada"}, {"id": 8, "name": "Grace"}]
    assert resolve("7", rows) is rows[0]
    pairs = [("p1", "Ada"), ("p2", "Grace")]
    found = resolve("grace", pairs, identifier=lambda pair: pair[0], title=lambda pair: pair[1])
    assert found == ("p2", "Grace")


def test_a_record_without_a_title_says_what_to_pass() -> None:
    with pytest.raises(TypeError, match="a int has no id: pass identifier="):
        resolve("x", [1])
    with pytest.raises(TypeError, match="a dict has no title or name: pass title="):
        resolve("x", [{"id": "1"}])
    with pytest.raises(TypeError, match="a hint is text, not int"):
        resolve(1, TASKS)  # type: ignore[arg-type]


words = st.text(alphabet=st.sampled_from(list("abAB é\u0301Ⅷﬁß \u200b\u3000-")), max_size=6)
records = st.lists(st.builds(Task, st.text(alphabet="xyz1", min_size=1, max_size=2), words), max_size=12)


@given(words | st.text(max_size=8), records)
def test_a_record_is_given_only_where_no_other_has_as_good_a_claim(hint: str, some: list[Task]) -> None:
    found = resolve(hint, some)
    if isinstance(found, ToolResult):
        assert found.code in ("ambiguous-hint", "hint-not-found")
        return
    others = [each for each in some if each is not found]
    claims = [
        lambda task: task.id == hint.strip(),
        lambda task: task.title.strip() == hint.strip(),
        lambda task: normal(task.title) == normal(hint),
        lambda task: normal(hint) in normal(task.title),
    ]
    first = next(claim for claim in claims if claim(found))
    before = claims[: claims.index(first)]
    assert not any(claim(task) for claim in [*before, first] for task in others)


@given(words, records)
def test_every_valid_value_resolves_to_one_of_the_candidates(hint: str, some: list[Task]) -> None:
    found = resolve(hint, some)
    if isinstance(found, ToolResult) and found.code == "ambiguous-hint":
        assert len(found.valid) <= MOST
        meant = [resolve(value, some) for value in found.valid]
        assert all(isinstance(each, Task) for each in meant)
        assert len({id(each) for each in meant}) == len(meant)


@given(words, records, st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"]))
def test_the_unicode_form_of_a_hint_changes_nothing_that_is_not_written_exactly(
    hint: str, some: list[Task], form: str
) -> None:
    exact = any(hint.strip() in (task.id, task.title.strip()) for task in some)
    turned = unicodedata.normalize(form, hint)  # type: ignore[arg-type]
    if not exact and not any(turned.strip() in (task.id, task.title.strip()) for task in some):
        one, other = resolve(hint, some), resolve(turned, some)
        assert (one is other) or (isinstance(one, ToolResult) and isinstance(other, ToolResult))


@given(st.text(max_size=30))
def test_the_normal_form_of_a_normal_form_is_itself(text: str) -> None:
    assert normal(normal(text)) == normal(text)


@given(
    st.text(max_size=40), st.lists(st.builds(Task, st.text(max_size=8), st.text(max_size=200)), max_size=9)
)
def test_whatever_titles_hold_the_answer_fits_into_an_envelope(hint: str, some: list[Task]) -> None:
    found = resolve(hint, some)
    if isinstance(found, ToolResult):
        frame = envelope.parse(envelope.render("task_update", found))
        assert frame.code == found.code
        assert list(frame.valid) == list(found.valid)
