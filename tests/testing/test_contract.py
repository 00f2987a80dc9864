"""The contract: whole packages keep it, and each of many broken ones is told what to mend."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen
from chalie.testing.bench import Bench
from chalie.testing.contract import CHECKS
from chalie.testing.project import subject

from tests.support import packages
from tests.support import wheels as building


def about(subject: str) -> list[str]:
    """Return six examples on a subject of its own."""
    return [
        f"tell me about my {subject}",
        f"I want to know more of the {subject}",
        f"look after the {subject} for me",
        f"is there anything new on {subject}",
        f"{subject}, please",
        f"help me with {subject}",
    ]


def ability(name: str, **source: Any) -> packages.Package:
    words = name.replace("_", " ")
    facts = {"examples": about(words), "summary": f"Look after {words} and report on {words}."}
    return packages.ability_package(name, **{**facts, **source})


def parameter(node: Mapping[str, object], *, name: str = "given", needed: bool = False) -> dict[str, object]:
    schema: dict[str, object] = {"type": "object", "properties": {name: node}, "additionalProperties": False}
    return {**schema, "required": [name]} if needed else schema


def policy(name: str, source: str) -> packages.Package:
    return packages.Package(
        dist=f"chalie-policy-{name}",
        files={f"chalie_policy_{name}.py": f"from chalie import Limit, Opinion, hookimpl\n\n{source}"},
        entry_points={"chalie.policies": {name: f"chalie_policy_{name}"}},
    )


def playbooks(name: str, text: str) -> packages.Package:
    return packages.Package(
        dist=f"chalie-{name}",
        files={f"{name}/__init__.py": "", f"{name}/water-the-plants/SKILL.md": text},
        entry_points={"chalie.skills": {name: name}},
    )


TEXT = {"type": "string"}
WRITE = packages.Raw("SideEffect.WRITE")


@frozen
class Broken:
    """A package with one fault, the check that finds it, and words of the message that mends it."""

    package: packages.Package
    check: str
    words: tuple[str, ...]


BROKEN = [
    Broken(
        ability(
            "orchards",
            before="import random",
            summary=packages.Raw("f'Look after orchards {random.random()}'"),
        ),
        "is-described",
        ("summary of orchards differs between two readings", "chance"),
    ),
    Broken(
        ability("Volcano-Watch", dist="chalie-ability-volcano", class_name="Volcano"),
        "is-described",
        ("Volcano-Watch is no name for an ability", "use 1 to 64 of a-z, 0-9 and _"),
    ),
    Broken(
        ability("glaciers", parameters={"type": "object", "properties": {"on": {"$ref": "#/$defs/day"}}}),
        "is-described",
        ("refers to '#/$defs/day'", "add it, for example under $defs"),
    ),
    Broken(
        ability("lighthouses", examples=["light the lighthouses"]),
        "is-described",
        ("examples() has 1", "give six to eight things people say"),
    ),
    Broken(
        ability("postcards", parameters=parameter(TEXT, name="sent to")),
        "model-apis-accept-it",
        ("the property 'sent to' has other characters", "Anthropic refuses that", "as in dueDate"),
    ),
    Broken(
        ability("bookshelves", parameters=parameter({"type": "array"})),
        "model-apis-accept-it",
        ("parameters/properties/given: an array has no items", 'say what the array holds, as in "items"'),
    ),
    Broken(
        ability("tapestries", summary="Look after tapestries. " * 60),
        "model-apis-accept-it",
        ("1380 characters are over 1024", "shorten summary()"),
    ),
    Broken(
        ability("carpets", examples=[*about("carpets")[:5], "marmalade"]),
        "examples-find-it",
        (
            "the example 'marmalade' finds marmalade (chalie-ability-marmalade) first",
            "reword it to what only",
        ),
    ),
    Broken(
        ability("marmalade", run="return {'made': True}"),
        "actions-answer",
        ("plain arguments: returned no ToolResult", "return ToolResult.ok(...) or ToolResult.error(...)"),
    ),
    Broken(
        ability(
            "aquariums",
            parameters={
                "type": "object",
                "properties": {"action": {"type": "string", "enum": ["feed", "clean"]}, "fish": TEXT},
                "required": ["action"],
            },
            facts={"actions": packages.Raw("{'feed': SideEffect.WRITE, 'clean': SideEffect.WRITE}")},
            run="return ToolResult.ok(params['fish'] if params['action'] == 'feed' else 'clean')",
        ),
        "actions-answer",
        ("action feed: raised an exception (KeyError: 'fish'", "check the argument first"),
    ),
    Broken(
        ability(
            "telescopes",
            parameters=parameter(TEXT, needed=True),
            run="return ToolResult.ok(int(params['given']) if params['given'] != 'text' else 0)",
        ),
        "hostile-arguments",
        (
            "given = ''",
            "raised an exception (ValueError: invalid literal",
            "telescopes.py:",
            "return ToolResult.error(",
        ),
    ),
    Broken(
        ability(
            "saxophones",
            before="import os",
            parameters=parameter({"type": "integer"}, needed=True),
            run="return ToolResult.ok() if params['given'] < 1000 else os._exit(3)",
        ),
        "hostile-arguments",
        ("the process ended with the call (exit status 3", "never call os._exit"),
    ),
    Broken(
        ability(
            "cathedrals",
            before="import time\nend = time.process_time() + 0.15\nwhile time.process_time() < end: pass",
        ),
        "import-is-quick",
        ("ms of processor time, over 100", "import heavy modules inside run()"),
    ),
    Broken(
        ability("umbrellas", before="from pathlib import Path\nPath('umbrellas.log').write_text('here')"),
        "import-leaves-no-mark",
        ("chalie_ability_umbrellas.py:", "changes a file: open('umbrellas.log')", "write in run()"),
    ),
    Broken(
        ability(
            "windmills",
            before="import socket\ntry: socket.create_connection(('192.0.2.1', 80))\nexcept OSError: pass",
        ),
        "import-leaves-no-mark",
        ("opens a connection: socket.", "192.0.2.1", "connect in run()"),
    ),
    Broken(
        policy("hasty", "@hookimpl\ndef review_call(call):\n    return call.arguments['text'] and None\n"),
        "hooks-answer",
        (
            "review_call: it raises TypeError",
            "chalie_policy_hasty.py:5",
            "arguments that are None (a search)",
        ),
    ),
    Broken(
        policy("plain", "@hookimpl\ndef limit_call(call):\n    return 'deny'\n"),
        "hooks-answer",
        ("limit_call: it returns 'deny', which denies the call", 'return Limit("must_ask", reason), or None'),
    ),
    Broken(
        policy("misspelt", "@hookimpl\ndef revue_call(call):\n    return None\n"),
        "hooks-answer",
        ("implements revue_call, which is no hook", "review_call", "see chalie.hookspecs"),
    ),
    Broken(
        playbooks("gardening", "---\nname: water-the-plants\n---\n# Water the plants\n"),
        "playbooks-are-read",
        ("SKILL.md", "description"),
    ),
]


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An import folder with all the broken packages, and a cache for their catalogue."""
    folder = tmp_path_factory.mktemp("broken")
    for broken in BROKEN:
        packages.install(folder / "site", broken.package)
    packages.install(folder / "site", GOOD)
    packages.install(folder / "site", HANGING)
    packages.install(folder / "site", GOOD_POLICY)
    packages.install(folder / "site", GOOD_PLAYBOOKS)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder / "site"))
        patch.delenv("CHALIE_HOME", raising=False)
        yield folder


GOOD = ability(
    "harbours",
    parameters={
        "type": "object",
        "properties": {
            "action": {"type": "string", "enum": ["open", "close"]},
            "ships": {
                "type": "array",
                "items": {"type": "integer", "minimum": 3, "maximum": 9},
                "minItems": 2,
            },
            "pilot": {"$ref": "#/$defs/person"},
            "at": {"type": "string", "format": "date-time"},
            "berth": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "code": {"type": "string", "minLength": 7, "maxLength": 9},
        },
        "required": ["action", "at"],
        "additionalProperties": False,
        "$defs": {
            "person": {
                "type": "object",
                "properties": {
                    "name": {"type": "string", "minLength": 2},
                    "mate": {"$ref": "#/$defs/person"},
                },
                "required": ["name"],
            }
        },
    },
    facts={
        "actions": packages.Raw("{'open': SideEffect.WRITE, 'close': SideEffect.DESTRUCTIVE}"),
        "action_required": {"open": ["ships"]},
    },
    run="""
    if params["action"] == "open":
        return ToolResult.ok({"ships": sum(params["ships"]), "at": params["at"][:10]})
    return ToolResult.error("the harbour is closed already", code="closed", hint="open it first")
    """,
)
HANGING = ability(
    "staircases",
    before="import threading",
    parameters=parameter({"type": "integer"}, name="count", needed=True),
    run="""
    if params["count"] > 1_000_000:
        threading.Event().wait()
    return ToolResult.ok()
    """,
)
GOOD_POLICY = policy(
    "careful",
    "@hookimpl\ndef review_call(call):\n    return Opinion('ask', f'{call.effect} it is')\n\n"
    "@hookimpl\ndef limit_call(call):\n    return Limit('must_ask', 'odd') if call.must_ask else None\n\n"
    "@hookimpl\ndef call_finished(record):\n    assert record.status\n",
)
GOOD_PLAYBOOKS = playbooks(
    "greenhouse",
    "---\nname: water-the-plants\ndescription: Waters house plants by need. Use when plants need care.\n"
    "---\n# Water the plants\n\n1. Look at the soil.\n",
)


def faults(shelf: Path, dist: str, check: str) -> list[str]:
    return [str(fault) for fault in CHECKS[check][1](Bench(subject(dist), shelf))]


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.package.dist)
def test_a_broken_package_is_told_what_is_wrong_and_what_to_edit(shelf: Path, broken: Broken) -> None:
    found = faults(shelf, broken.package.dist, broken.check)
    said = "\n".join(found)
    assert found, "the check did not notice"
    assert [word for word in broken.words if word not in said] == [], said
    assert all("\n    fix: " in fault for fault in found)


@pytest.mark.parametrize(
    ("package", "check"),
    [
        (package, check)
        for package, group in (
            (GOOD, "chalie.abilities"),
            (GOOD_POLICY, "chalie.policies"),
            (GOOD_PLAYBOOKS, "chalie.skills"),
        )
        for check, (groups, _) in CHECKS.items()
        if group in groups
    ],
    ids=lambda value: value if isinstance(value, str) else value.dist,
)
def test_a_good_package_keeps_every_part(shelf: Path, package: packages.Package, check: str) -> None:
    assert faults(shelf, package.dist, check) == []


def test_every_call_of_a_good_package_is_what_it_is_meant_to_be(shelf: Path) -> None:
    calls = Bench(subject(GOOD.dist), shelf).called()
    plain = {call.label: (call.status, call.code) for call in calls if call.kind == "plain"}
    assert plain == {
        "action open": ("success", None),
        "action close": ("error", "closed"),
        "all parameters": ("success", None),
    }
    refused = {call.label: call.code for call in calls if call.kind == "refused"}
    assert refused == {
        "open without at": "missing-params",
        "open without ships": "missing-params",
        "close without at": "missing-params",
        "an action that does not exist": "unknown-action",
    }
    hostile = [call for call in calls if call.kind == "hostile"]
    assert len(hostile) >= 60
    assert any(call.code is None for call in hostile), "some of it is let through to run()"


def test_a_call_that_hangs_is_found_and_not_waited_for_again(shelf: Path) -> None:
    bench = Bench(subject(HANGING.dist), shelf, limit_s=3.0)
    said = [str(fault) for fault in CHECKS["hostile-arguments"][1](bench)]
    assert len(said) == 1
    assert "count = 2147483648: did not finish in time" in said[0]
    assert "give what it waits for a time limit" in said[0]


def test_a_package_that_breaks_the_contract_fails_item_by_item(tmp_path: Path) -> None:
    """As an author sees it, from a project that is not even installed."""
    broken = ability("marmalade", run="return {'made': True}")
    project = tmp_path / "project"
    (project / "tests").mkdir(parents=True)
    (project / "chalie_ability_marmalade.py").write_text(str(broken.files["chalie_ability_marmalade.py"]))
    (project / "pyproject.toml").write_text(
        '[project]\nname = "chalie-ability-marmalade"\nversion = "1.0"\n'
        '[project.entry-points."chalie.abilities"]\nmarmalade = "chalie_ability_marmalade"\n'
    )
    (project / "tests" / "test_contract.py").write_text(
        "from chalie.testing.contract import contract\n\n"
        'test_contract = contract("chalie-ability-marmalade")\n'
    )
    import subprocess

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider", "-W", "ignore"],
        cwd=project,
        env=building.clean_environment(tmp_path / "home", COLUMNS="200"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert [line for line in lines if line.startswith("PASSED")] == [
        f"PASSED tests/test_contract.py::test_contract[{check}]"
        for check in (
            "is-described",
            "model-apis-accept-it",
            "examples-find-it",
            "import-is-quick",
            "import-leaves-no-mark",
        )
    ]
    at = lines.index("chalie-ability-marmalade does not keep the contract, 'actions-answer':")
    assert lines[at + 1].startswith("  - marmalade: plain arguments: returned no ToolResult (run() returned")
    assert lines[at + 2].startswith("    fix: return ToolResult.ok(...)")


def test_a_package_that_is_nowhere_is_named_at_once() -> None:
    from chalie.errors import ChalieError
    from chalie.testing.contract import contract

    with pytest.raises(ChalieError, match="chalie-ability-nowhere is not installed in") as caught:
        contract("chalie-ability-nowhere")
    assert caught.value.code == "unknown-package"
    assert caught.value.hint == "python -m pip install --editable ."
