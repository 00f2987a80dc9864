"""The reference against the code: nothing is missing from it, and its examples do what they say."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support import api_page, code_page, configuration_page, hook_page, packages

DOCS = Path(__file__).resolve().parents[1] / "docs"
HEADING = re.compile(r"^(#+) (.+)$", re.MULTILINE)


def sections(file: str, level: int) -> dict[str, str]:
    """Return heading -> text below it, for the headings of one level."""
    text = (DOCS / file).read_text(encoding="utf-8")
    parts = re.split(rf"^{'#' * level} (.+)$", text, flags=re.MULTILINE)
    return {title.strip("`"): body for title, body in zip(parts[1::2], parts[2::2], strict=True)}


# --- hooks --------------------------------------------------------------------------------------------


def test_every_hook_has_a_heading_its_signature_its_four_promises_and_an_example() -> None:
    from chalie import hookspecs

    found = sections("hooks.md", 2)
    named = {name for name in hookspecs.__all__ if name.islower() and name not in ("hookimpl", "hookspec")}
    assert set(found) == set(hook_page.hooks()) == named
    for name, text in found.items():
        assert f"def {name}(" in text
        for promise in ("When", "May return", "Conflicts", "Failure"):
            assert f"- **{promise}:** " in text, f"{name} does not say {promise}"
        example = (hook_page.EXAMPLES / f"{name}.py").read_text(encoding="utf-8").strip()
        assert f"```python\n{example}\n```" in text


@contextmanager
def host_with(hook: str, site: Path, home: Path) -> Iterator[object]:
    """Open a host with a hook's example enabled and trusted, and the tools `looker` and `wiper` installed."""
    from chalie.testing.homes import open_host

    for name, effect in (("looker", "READ"), ("wiper", "DESTRUCTIVE"), ("sender", "EXTERNAL_SEND")):
        facts = {"side_effect": packages.Raw(f"SideEffect.{effect}")}
        packages.install(site, packages.ability_package(name, facts=facts))
    dist = f"chalie-shown-{hook.replace('_', '-')}"
    group = "chalie.policies" if hook in ("review_call", "limit_call") else "chalie.plugins"
    module = dist.replace("-", "_")
    example = (hook_page.EXAMPLES / f"{hook}.py").read_text(encoding="utf-8")
    packages.install(site, packages.Package(dist, {f"{module}.py": example}, {group: {"shown": module}}))
    cache = home.parent / "cache"
    cache.mkdir()
    with open_host(home, cache, enabled=dist) as host:
        assert host.plugins.authors(hook) == (dist,), host.plugins.problems
        yield host


def decided(host: object, name: str) -> str:
    turn = host.turn("chat", principal="ada", active=(name,))  # type: ignore[attr-defined]
    call = host.dispatcher.examine(turn.state, name, {"text": "x"})  # type: ignore[attr-defined]
    decision = host.gate.decide(call, turn.channel)  # type: ignore[attr-defined]
    return f"{decision.setting}{', each time' if decision.must_ask else ''}"


def test_the_example_of_review_call_allows_reading_in_the_week_and_asks_at_the_weekend(
    site: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import datetime

    class Day(datetime.date):
        weekday_now = 0

        @classmethod
        def today(cls) -> datetime.date:
            return datetime.date(2026, 5, 4 + cls.weekday_now)  # the fourth is a Monday

    monkeypatch.setattr(datetime, "date", Day)
    with host_with("review_call", site, home) as host:
        assert (decided(host, "looker"), decided(host, "wiper")) == ("allow", "ask")
        Day.weekday_now = 5
        assert decided(host, "looker") == "ask"


def test_the_example_of_limit_call_denies_deleting_and_has_a_person_see_what_is_sent(
    site: Path, home: Path
) -> None:
    with host_with("limit_call", site, home) as host:
        found = [decided(host, name) for name in ("looker", "wiper", "sender")]
    assert found == ["ask", "deny", "ask, each time"]


def test_the_example_of_call_finished_logs_each_call(
    site: Path, home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="chalie_plugin_meter")
    with host_with("call_finished", site, home) as host:
        host.turn("chat", principal="ada").call("find_tools", {"query": ["looker"]})
        host.turn("chat", principal="ada", active=("wiper",)).call("wiper", {})
    said = [record.getMessage() for record in caplog.records if record.name == "chalie_plugin_meter"]
    assert [line.partition(",")[0] for line in said] == ["find_tools: ok", "wiper: approval-pending"]


def test_the_example_of_hold_changed_says_what_waits_and_what_became_of_it(
    site: Path, home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="chalie_plugin_bell")
    with host_with("hold_changed", site, home) as host:
        turn = host.turn("chat", principal="ada", conversation="c", active=("wiper",))
        turn.call("wiper", {})
        hold = turn.waiting()[0]
        host.answer(hold.id, "decline", token=host.approver_token)
    said = [record.getMessage() for record in caplog.records if record.name == "chalie_plugin_bell"]
    assert said[0] == f"wiper waits for you: chalie approve {hold.id}"
    assert said[1].startswith(f"{hold.id} is declined (token:")


def test_the_example_of_generation_published_tells_new_from_changed_and_gone(
    site: Path, home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="chalie_plugin_news")
    with host_with("generation_published", site, home) as host:
        packages.install(site, packages.ability_package("fresh"))
        host.upkeep.refresh()
    said = [record.getMessage() for record in caplog.records if record.name == "chalie_plugin_news"]
    assert said == ["new chalie-ability-fresh:fresh"]


def test_the_example_of_register_commands_counts_what_was_called(
    site: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from chalie.cli.main import main

    with host_with("register_commands", site, home) as host:
        for _ in range(2):
            host.turn("chat", principal="ada").call("find_tools", {"query": ["looker"]})
    capsys.readouterr()
    assert main(["busiest"]) == 0
    assert capsys.readouterr().out.split() == ["2", "find_tools"]


# --- codes, options, names ----------------------------------------------------------------------------


def test_every_error_code_has_a_section_that_says_what_to_do() -> None:
    from chalie.errors import CODES

    assert list(sections("error-codes.md", 2)) == list(CODES)
    assert set(code_page.ADVICE) == set(CODES), "tests/support/code_page.py says what to do about each code"


def test_every_option_and_variable_has_a_meaning() -> None:
    options = {(table, option) for table, option, _, _ in configuration_page.options()}
    assert set(configuration_page.WORDS) == options, (
        "tests/support/configuration_page.py says what each means"
    )
    assert set(configuration_page.MEANINGS) == set(configuration_page.variables())
    text = (DOCS / "configuration.md").read_text(encoding="utf-8")
    for table, option in options:
        assert f"## `[{table}]`" in text and f"| `{option}` |" in text


def test_the_defaults_on_the_page_are_those_of_a_home_without_a_file(home: Path) -> None:
    """Read back from the page, since a default in words could be anybody's."""
    from chalie.config import Config

    config = Config.load(home)
    shown = {
        (table, row[0].strip(" `")): row[3].strip()
        for table, text in sections("configuration.md", 2).items()
        for row in (line.strip("|").split(" | ") for line in text.splitlines())
        if len(row) == 4 and row[0].strip().startswith("`")
    }
    for (table, option), default in shown.items():
        name = table.strip("[]")
        if name.endswith(".NAME") or not default.startswith("`") or option == "model":
            continue
        value = getattr(getattr(config, name), option)
        assert default.strip(" `|") in (f"{value}", f"{value:g}" if isinstance(value, float) else "", "[]")


def test_every_public_name_has_a_section_and_no_other_does() -> None:
    import chalie

    own = [name for title in api_page.PARTS for name in api_page.public_names(title)]
    of_chalie = [
        name
        for title, (_, module, _) in api_page.PARTS.items()
        if module == "chalie"
        for name in api_page.public_names(title)
    ]
    assert sorted([*of_chalie, "__version__"]) == sorted(chalie.__all__)
    assert list(sections("python-names.md", 3)) == own


# --- the site -----------------------------------------------------------------------------------------


def test_every_page_stands_once_in_the_contents_of_the_site() -> None:
    text = (DOCS / "index.md").read_text(encoding="utf-8")
    trees = re.findall(r"^```\{toctree\}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    listed = [
        line for tree in trees for line in tree.splitlines() if line and not line.startswith((":", "_"))
    ]
    pages = [page.stem for page in DOCS.glob("*.md") if page.stem != "index"]
    assert sorted(listed) == sorted(pages), "docs/index.md lists every page of docs/, each once"


def test_the_site_finds_every_page_that_lives_elsewhere() -> None:
    import runpy

    conf = runpy.run_path(str(DOCS / "conf.py"))
    root = DOCS.parent
    found = conf["elsewhere"]()
    assert {f"plugins/{path.parent.name}/README.md" for path in root.glob("plugins/*/README.md")} <= set(
        found
    )
    assert (
        conf["sited"]("[a](../CONTRIBUTING.md#security)", "docs")
        == "[a](/_gathered/contributing.md#security)"
    )
    assert conf["sited"]("[a](../../docs/gate.md)", "plugins/x") == "[a](/gate.md)"
    assert conf["sited"]("[a](LICENSE)", "") == "a"
    assert conf["sited"]("[a](https://x.org/y)", "") == "[a](https://x.org/y)"


def test_a_link_of_the_site_that_leads_nowhere_is_named_and_so_is_what_would_be_fetched(
    tmp_path: Path,
) -> None:
    import runpy

    pages = {
        "a.html": '<a href="b.html#there"></a><a href="b.html#gone"></a><a href="c.html"></a>',
        "b.html": '<p id="there"></p><a href="https://example.org"></a><img src="https://example.org/x.png">',
    }
    for name, text in pages.items():
        (tmp_path / name).write_text(text)
    broken = runpy.run_path(str(DOCS / "check_site.py"))["broken"]
    assert broken(tmp_path) == [
        "a.html links to b.html#gone: there is no such place on that page",
        "a.html links to c.html, which is not there",
        "b.html fetches https://example.org/x.png from the network",
    ]
