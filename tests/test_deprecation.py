"""What goes is said on the line of the author who uses it, with the release of its removal."""

from __future__ import annotations

import importlib
import warnings
from pathlib import Path
from typing import Any

import chalie
import pytest
from chalie import ability, hookspecs
from chalie.catalogue import interfaces
from chalie.catalogue.admission import attempt
from chalie.catalogue.descriptor import EntryPoint
from chalie.errors import ChalieDeprecationWarning, Leaving
from packaging.version import Version

from .support import packages

WHEN = Leaving("0.9", "what comes instead")
SAID = "will be removed in chalie 0.9; use what comes instead"


def imported(site: Path, name: str, source: str) -> list[tuple[str, int, str]]:
    """Import a module and return the warnings it meets, as (file, line, text)."""
    (site / f"{name}.py").write_text(source)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        importlib.import_module(name)
    return [
        (Path(each.filename).name, each.lineno, str(each.message))
        for each in caught
        if each.category is ChalieDeprecationWarning
    ]


def test_a_public_name_that_goes_is_named_where_it_is_used(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chalie, "_LEAVING", {"Limit": tuple(WHEN)})
    monkeypatch.delitem(vars(chalie), "Limit", raising=False)
    found = imported(site, "uses_limit", "import chalie\n\n\nlimit = chalie.Limit\n")
    assert found == [("uses_limit.py", 4, f"chalie.Limit {SAID}")]
    found = imported(site, "imports_limit", "import json\n\nfrom chalie import Limit, Opinion\n")
    assert set(found) == {("imports_limit.py", 3, f"chalie.Limit {SAID}")}
    with pytest.warns(ChalieDeprecationWarning):
        assert chalie.Limit("deny", "it still works").kind == "deny"


def test_a_class_fact_that_goes_is_named_where_the_class_stands(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ability, "_LEAVING", {"latency": WHEN})
    source = packages.ability_source("old", facts={"latency": "high"})
    line = source.splitlines().index("class Old(Ability):") + 1
    assert imported(site, "old_ability", source) == [
        ("old_ability.py", line, f"latency of an ability {SAID}")
    ]
    assert imported(site, "new_ability", packages.ability_source("new")) == []


def test_a_hook_that_goes_is_named_where_it_is_implemented(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hookspecs, "LEAVING", {"limit_call": WHEN})
    source = "from chalie import hookimpl\n\n\n@hookimpl\ndef limit_call(call):\n    return None\n"
    (site / "old_policy.py").write_text(source)
    with pytest.warns(ChalieDeprecationWarning, match=f"the hook limit_call {SAID}") as caught:
        reason, found = attempt(EntryPoint("old-policy", "chalie.policies", "old", "old_policy"))
    assert reason is None and len(found) == 1, "it still works"
    assert [(Path(each.filename).name, each.lineno) for each in caught] == [("old_policy.py", 4)]


def leaving() -> list[tuple[str, str]]:
    """Return everything that goes, with the release that will not have it."""
    tables: list[dict[str, Any]] = [
        {name: Leaving(*when) for name, when in chalie._LEAVING.items()},
        dict(ability._LEAVING),
        dict(hookspecs.LEAVING),
        dict(interfaces.LEAVING),
    ]
    return [(name, when.removed_in) for table in tables for name, when in table.items()]


def late(found: list[tuple[str, str]], version: str) -> list[str]:
    return [name for name, removed_in in found if Version(removed_in) <= Version(version)]


def test_what_was_to_be_gone_by_now_is_gone() -> None:
    assert late(leaving(), chalie.__version__) == []


def test_what_is_late_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ability, "_LEAVING", {"latency": WHEN})
    assert late(leaving(), "0.8.3") == []
    assert late(leaving(), "0.9") == ["latency"]
