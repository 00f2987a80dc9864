"""The memory ability: what it keeps, finds, and takes back."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from chalie.envelope import render
from chalie_ability_memory.ability import Memory
from chalie_ability_memory.matching import by_words
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

Make = Callable[..., Callable[..., Any]]


@pytest.fixture
def memory(make_memory: Make) -> Callable[..., Any]:
    return make_memory()


def found(result: Any) -> list[str]:
    assert result.status == "success", result
    return [item["text"] for item in result.body["memories"]]


def test_what_is_stored_is_recalled_by_its_words(memory: Callable[..., Any]) -> None:
    stored = memory("store", text="Grace is allergic to nuts")
    memory("store", text="The plumber is called Jansen")
    assert stored.meta == {"action": "store", "new": True}
    result = memory("recall", query="allergic")
    assert found(result) == ["Grace is allergic to nuts"]
    assert result.body["memories"][0]["id"] == stored.body["id"]
    assert result.meta == {"action": "recall", "count": 1, "more": 0}


def test_it_is_recalled_by_meaning_without_a_word_in_common(memory: Callable[..., Any]) -> None:
    memory("store", text="doctor Borg")
    memory("store", text="tea with milk")
    assert found(memory("recall", query="physician")) == ["doctor Borg"]
    assert found(memory("recall", query="beverage")) == ["tea with milk"]


def test_words_and_meaning_together_come_before_either(memory: Callable[..., Any]) -> None:
    memory("store", text="dog named Rex")
    memory("store", text="dog walks puppy")
    memory("store", text="bicycle repair")
    assert found(memory("recall", query="puppy"))[0] == "dog walks puppy"
    assert "bicycle repair" not in found(memory("recall", query="puppy"))


def test_recall_without_query_or_location_answers_exactly_as_documented(memory: Callable[..., Any]) -> None:
    for params in ({}, {"query": " "}, {"query": None, "location": ""}):
        assert render("memory", memory("recall", **params)) == (
            "[memory(status=error, code=no-query-or-location, action=recall)]\n"
            "recall requires either a query or a location.\n"
            "hint: pass query= to search by topic, or location= to filter by place.\n"
            "valid: query | location\n"
            "[end:memory]"
        )


def test_a_location_filters_and_its_parts_are_enough(memory: Callable[..., Any]) -> None:
    memory("store", text="The bakery closes at noon", location="Valletta, Malta")
    memory("store", text="The bakery opens early", location="Lisbon")
    memory("store", text="Bakeries are nice")
    assert found(memory("recall", location="malta")) == ["The bakery closes at noon"]
    assert found(memory("recall", location="Lisbon", query="bakery")) == ["The bakery opens early"]
    assert found(memory("recall", location="Oslo")) == []
    assert memory("recall", location="Lisbon").body["memories"][0]["location"] == "Lisbon"


def test_recall_by_place_alone_gives_the_newest_first_and_counts_the_rest(memory: Callable[..., Any]) -> None:
    for number in range(4):
        memory("store", text=f"fact {number}", location="Gozo")
    result = memory("recall", location="Gozo", limit=3)
    assert found(result) == ["fact 3", "fact 2", "fact 1"]
    assert result.meta["more"] == 1


def test_nothing_found_is_an_answer_and_no_error(memory: Callable[..., Any]) -> None:
    result = memory("recall", query="anything")
    assert (result.body, result.meta["count"]) == ({"memories": []}, 0)


def test_one_principal_never_sees_or_forgets_what_is_anothers(make_memory: Make) -> None:
    ada, bob = make_memory("ada"), make_memory("bob")
    id = ada("store", text="the safe is behind the picture").body["id"]
    assert found(bob("recall", query="safe")) == []
    assert bob("forget", id=id).code == "unknown-memory"
    assert bob("forget", query="safe").code == "unknown-memory"
    assert bob("store", text="the safe is behind the picture").meta["new"] is True
    assert found(ada("recall", query="safe")) == ["the safe is behind the picture"]


def test_the_same_fact_is_kept_once(memory: Callable[..., Any]) -> None:
    first = memory("store", text="Ada likes tea")
    again = memory("store", text="  ada likes TEA ")
    assert (again.body, again.meta["new"]) == (first.body, False)
    assert memory("store", text="Ada likes tea", location="Malta").meta["new"] is True


def test_a_blank_text_is_not_stored(memory: Callable[..., Any]) -> None:
    assert memory("store", text=" \n ").code == "missing-params"
    assert "text" in Memory.action_required["store"]


def test_it_is_forgotten_by_id(memory: Callable[..., Any]) -> None:
    stored = memory("store", text="the old number is 555").body
    assert memory("forget", id=stored["id"]).body == {"forgotten": stored}
    assert found(memory("recall", query="number")) == []
    assert memory("forget", id=stored["id"]).code == "unknown-memory"


def test_it_is_forgotten_by_query_where_only_one_has_all_the_words(memory: Callable[..., Any]) -> None:
    memory("store", text="the old phone number is 555")
    memory("store", text="the new phone number is 777")
    assert memory("forget", query="the old phone number").body["forgotten"]["text"].endswith("555")
    assert found(memory("recall", query="phone number")) == ["the new phone number is 777"]


def test_an_ambiguous_query_forgets_nothing_and_lists_the_candidates(memory: Callable[..., Any]) -> None:
    ids = [memory("store", text=f"phone number {number}").body["id"] for number in (555, 777)]
    result = memory("forget", query="phone number")
    assert (result.code, result.meta["candidates"]) == ("ambiguous-memory", 2)
    assert sorted(result.valid) == sorted([f"{ids[0]}: phone number 555", f"{ids[1]}: phone number 777"])
    assert "ask the user" in result.hint
    assert len(found(memory("recall", query="phone"))) == 2


@pytest.mark.parametrize("query", ["physician", "doctor Zammit", "doctors"])
def test_what_only_resembles_the_query_is_never_forgotten(memory: Callable[..., Any], query: str) -> None:
    id = memory("store", text="doctor Borg").body["id"]
    result = memory("forget", query=query)
    assert result.code == "uncertain-memory"
    assert result.valid == (f"{id}: doctor Borg",)
    assert found(memory("recall", query="doctor")) == ["doctor Borg"]


def test_words_that_say_nothing_forget_nothing(memory: Callable[..., Any]) -> None:
    memory("store", text="what is my name")
    for query in ("the", "what is my", "...", "is"):
        assert memory("forget", query=query).status == "error"
    assert memory("forget").code == "no-id-or-query"
    assert len(found(memory("recall", query="name"))) == 1


def test_a_place_with_one_memory_forgets_it_and_one_with_two_asks(memory: Callable[..., Any]) -> None:
    for text, place in (("a", "Gozo"), ("b", "Gozo"), ("c", "Lisbon")):
        memory("store", text=text, location=place)
    assert memory("forget", location="Gozo").code == "ambiguous-memory"
    assert memory("forget", location="Lisbon").body["forgotten"]["text"] == "c"
    assert memory("forget", location="Oslo").code == "unknown-memory"


def test_many_candidates_are_listed_short(memory: Callable[..., Any]) -> None:
    for number in range(30):
        memory("store", text=f"meeting note {number} " + "x" * 300)
    result = memory("forget", query="meeting note")
    assert (len(result.valid), result.meta["candidates"]) == (10, 30)
    assert all(len(line) < 130 for line in result.valid)


def test_what_is_forgotten_is_gone_from_the_files(memory: Callable[..., Any], tmp_path: Path) -> None:
    secret = "zanzibar-" * 20
    id = memory("store", text=secret).body["id"]
    with contextlib.closing(sqlite3.connect(tmp_path / "memory.sqlite")) as another:
        another.execute("SELECT count(*) FROM memories").fetchall()
        memory("forget", id=id)
        assert all(secret.encode() not in file.read_bytes() for file in tmp_path.iterdir())
    assert all(secret.encode() not in file.read_bytes() for file in tmp_path.iterdir())


def test_the_file_is_readable_by_the_account_alone(memory: Callable[..., Any], tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        memory("store", text="private")
    finally:
        os.umask(old)
    assert {stat.S_IMODE(file.stat().st_mode) for file in tmp_path.iterdir()} == {0o600}


def test_vectors_of_another_model_are_made_anew_and_never_compared(
    make_memory: Make, other_model: Callable[..., Any], tmp_path: Path
) -> None:
    make_memory()("store", text="doctor Borg")
    calls: list[Sequence[str]] = []

    def second(texts: Sequence[str]) -> list[list[float]]:
        calls.append(tuple(texts))
        return list(other_model("another", 32)(texts))

    memory = make_memory(embed=second)
    assert found(memory("recall", query="physician")) == ["doctor Borg"]
    assert calls[1:] == [("doctor Borg",)]
    assert found(memory("recall", query="physician")) == ["doctor Borg"]
    assert len(calls) == 3, "embedded again although its vector is of this model"
    with sqlite3.connect(tmp_path / "memory.sqlite") as connection:
        assert connection.execute("SELECT length(vector) FROM memories").fetchall() == [(32 * 4,)]


def test_a_model_of_the_same_size_is_told_apart(make_memory: Make, other_model: Callable[..., Any]) -> None:
    make_memory()("store", text="doctor Borg")
    assert found(make_memory(embed=other_model("another"))("recall", query="physician")) == ["doctor Borg"]


@pytest.mark.parametrize(
    "embed",
    [
        lambda texts: 1 / 0,
        lambda texts: [[float("nan")] * 8 for _ in texts],
        lambda texts: [[0.0] * 8 for _ in texts],
        lambda texts: [],
        lambda texts: [[1.0, 0.0]] * (len(texts) - 1) + [[1.0]],
    ],
    ids=["raises", "not-a-number", "zero", "none", "other-length"],
)
def test_without_usable_vectors_words_still_find(make_memory: Make, embed: Any) -> None:
    memory = make_memory(embed=embed)
    assert memory("store", text="doctor Borg").status == "success"
    result = memory("recall", query="doctor")
    assert found(result) == ["doctor Borg"]
    assert 0.5 <= result.body["memories"][0]["match"] <= 1.5
    assert found(make_memory()("recall", query="physician")) == ["doctor Borg"]


def test_a_recall_whose_meaning_failed_says_so(make_memory: Make) -> None:
    result = make_memory(embed=lambda texts: 1 / 0)("recall", query="doctor")
    assert result.meta["degraded"] == "meaning"


@pytest.mark.parametrize(
    "text", ["lone \ud800 half", "null \x00 byte", "🙂 and 漢字", "'; DROP TABLE memories;--"]
)
def test_any_text_is_kept(memory: Callable[..., Any], text: str) -> None:
    assert memory("store", text=text).status == "success"
    assert len(found(memory("recall", query=text))) == 1


def test_unspaced_scripts_are_found_by_a_part(memory: Callable[..., Any]) -> None:
    memory("store", text="我妹妹对坚果过敏")
    assert found(memory("recall", query="坚果")) == ["我妹妹对坚果过敏"]


@pytest.mark.parametrize("content", [b"no database at all" * 100, b"SQLite format 3\x00" + b"\xff" * 500])
@pytest.mark.parametrize("action", ["store", "recall", "forget"])
def test_a_damaged_file_is_told_and_never_overwritten(
    memory: Callable[..., Any], tmp_path: Path, content: bytes, action: str
) -> None:
    (tmp_path / "memory.sqlite").write_bytes(content)
    result = memory(action, text="x", query="x")
    assert result.code == "memory-unusable"
    assert str(tmp_path / "memory.sqlite") in result.message
    assert (tmp_path / "memory.sqlite").read_bytes() == content


def test_a_file_of_a_newer_version_is_left_alone(memory: Callable[..., Any], tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "memory.sqlite") as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    result = memory("recall", query="x")
    assert result.code == "memory-unusable"
    assert "newer chalie-ability-memory" in result.message


def test_a_full_memory_says_what_to_do(memory: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    from chalie_ability_memory import store

    monkeypatch.setattr(store, "_MOST", 2)
    for text in "ab":
        memory("store", text=text)
    assert memory("store", text="c").code == "memory-full"
    assert memory("store", text="a").meta["new"] is False


WRITER = """
import sys
from pathlib import Path
sys.path[:0] = {paths!r}
from chalie_ability_memory.store import Store
store = Store(Path({file!r}), "ada")
for number in range({count}):
    store.add(f"fact {{number}} of {{sys.argv[1]}}", "", "", b"")
"""


def test_processes_that_store_at_once_lose_nothing(memory: Callable[..., Any], tmp_path: Path) -> None:
    paths = [str(Path(__file__).parents[1] / "src"), *filter(None, sys.path)]
    script = WRITER.format(paths=paths, file=str(tmp_path / "memory.sqlite"), count=25)
    writers = [subprocess.Popen([sys.executable, "-c", script, str(number)]) for number in range(4)]
    assert [writer.wait() for writer in writers] == [0, 0, 0, 0]
    result = memory("recall", query="fact", limit=50)
    assert result.meta["count"] + result.meta["more"] == 100


def test_it_survives_the_process_that_stored_it(memory: Callable[..., Any], tmp_path: Path) -> None:
    paths = [str(Path(__file__).parents[1] / "src"), *filter(None, sys.path)]
    script = WRITER.format(paths=paths, file=str(tmp_path / "memory.sqlite"), count=1)
    script += "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    assert subprocess.run([sys.executable, "-c", script, "before"], check=False).returncode == -9
    assert found(memory("recall", query="fact")) == ["fact 0 of before"]


def test_its_facts_are_accepted_by_the_host() -> None:
    from chalie.ability import facts

    described = facts(Memory(), dist="chalie-ability-memory", dist_version="0.1.0", target="x:Memory")
    assert described["name"] == "memory"
    assert len(described["examples"]) == 8
    assert {key: str(value) for key, value in described["actions"].items()} == {
        "store": "write",
        "recall": "read",
        "forget": "destructive",
    }


def test_describing_it_does_not_import_numpy() -> None:
    source = str(Path(__file__).parents[1] / "src")
    script = (
        f"import sys; sys.path.append({source!r}); from chalie_ability_memory.ability import Memory; "
        "m = Memory(); "
        "m.name(), m.summary(), m.examples(), m.search_tooltip(), m.parameters(); "
        "print('numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.parametrize(
    ("query", "text", "share"),
    [
        ("walk", "walking in the park", 1.0),
        ("walking park", "I walk", 0.5),
        ("nuts", "allergic to nut", 1.0),
        ("car", "careful", 0.0),
        ("What's the Wi-Fi", "wi-fi in the hall", 1.0),
        ("the", "the cat", 1.0),
        ("and", "the cat", 0.0),
        ("", "anything", 0.0),
        ("ÄRZTE", "ärzte", 1.0),
    ],
)
def test_words_are_compared_folded_and_with_their_endings(query: str, text: str, share: float) -> None:
    assert by_words(query, text) == share


def test_a_memory_is_offered_for_its_meaning_only_above_the_models_noise(make_memory: Make) -> None:
    def crowded(texts: Sequence[str]) -> list[list[float]]:
        """A model that puts everything near everything, and what is about cats a little nearer."""
        return [[1.0, 0.1 * (index % 3), 0.6 * ("cat" in text)] for index, text in enumerate(texts)]

    memory = make_memory(embed=crowded)
    memory("store", text="Tom is a cat")
    memory("store", text="the roof leaks")
    assert found(memory("recall", query="catlike things")) == ["Tom is a cat"]


def test_a_model_without_words_for_the_probes_still_finds_by_meaning(make_memory: Make) -> None:
    def narrow(texts: Sequence[str]) -> list[list[float]]:
        return [[1.0 * ("violin" in text), 1.0 * ("katt" in text or "kissa" in text)] for text in texts]

    memory = make_memory(embed=narrow)
    memory("store", text="min katt heter Tom")
    assert found(memory("recall", query="kissa")) == ["min katt heter Tom"]


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(query=st.text(max_size=40), text=st.text(max_size=80))
def test_the_share_of_words_is_a_share_for_any_text(query: str, text: str) -> None:
    assert 0.0 <= by_words(query, text) <= 1.0
    assert by_words(text, text) in (0.0, 1.0)
