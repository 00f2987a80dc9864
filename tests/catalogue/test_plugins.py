"""Policies and plugins: each brought in, refused and called on its own."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest
from chalie.calls import Call, Limit, SideEffect
from chalie.catalogue.descriptor import EntryPoint
from chalie.catalogue.plugins import PLUGINS, POLICIES, PluginLoader, Plugins

CALL = Call("acme", "mail", "mail.send", SideEffect.EXTERNAL_SEND, {"to": "x"}, "chat", "ada", None, "00")
GOOD = """
    from chalie import Limit, hookimpl

    @hookimpl
    def limit_call(call):
        return Limit("deny", __name__)
"""


@pytest.fixture(autouse=True)
def forget_modules(site: Path) -> Iterator[None]:
    yield
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None) or "").startswith(str(site)):
            del sys.modules[name]


def put(site: Path, dist: str, source: str, *, group: str = POLICIES, module: str = "") -> EntryPoint:
    """Write a module as an installed package would have it, and return the line that names it."""
    module = module or dist.replace("-", "_")
    (site / f"{module}.py").write_text(dedent(source), encoding="utf-8")
    return EntryPoint(dist, group, module, module)


def reasons(plugins: Plugins) -> dict[str, str]:
    return {problem.dist: problem.reason for problem in plugins.problems}


def limits(plugins: Plugins) -> dict[str, object]:
    return dict(plugins.each("limit_call", call=CALL))


def test_an_enabled_policy_is_loaded_and_asked(site: Path) -> None:
    plugins = PluginLoader([put(site, "acme-guard", GOOD)]).load()
    assert plugins.problems == ()
    assert plugins.loaded == {"acme-guard"}
    assert plugins.authors("limit_call") == ("acme-guard",)
    assert limits(plugins) == {"acme-guard": Limit("deny", "acme_guard")}


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import acme_gone", "ModuleNotFoundError: No module named 'acme_gone'"),
        ("def broken(:", "its import raised SyntaxError"),
        ("raise RuntimeError('no\\nluck')", "its import raised RuntimeError: no luck"),
        ("raise SystemExit(3)", "its import raised SystemExit: 3"),
        ("raise KeyboardInterrupt", "its import raised KeyboardInterrupt"),
        ("import os; os._exit(7)", "ended the process with exit status 7"),
        ("import os; os._exit(0)", "ended the process with exit status 0"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "crashed the process: SIGSEGV"),
        ("import threading; threading.Event().wait()", "took more than 0.5 s"),
        ("class Odd(Exception):\n    def __str__(self): raise SystemExit\nraise Odd", "its import"),
    ],
)
def test_a_module_that_fails_costs_only_itself_and_is_named(site: Path, source: str, reason: str) -> None:
    entries = [put(site, "a-first", GOOD), put(site, "b-bad", source), put(site, "c-last", GOOD)]
    plugins = PluginLoader(entries, limit_s=0.5).load()
    assert plugins.loaded == {"a-first", "c-last"}
    assert set(limits(plugins)) == {"a-first", "c-last"}
    (problem,) = plugins.problems
    assert (problem.dist, problem.phase) == ("b-bad", "plugin")
    assert problem.entry_point == "chalie.policies: b_bad = b_bad"
    assert reason in problem.reason
    assert "chalie disable b-bad" in problem.fix
    assert "b_bad" not in sys.modules


def test_what_a_dying_module_said_last_is_part_of_the_reason(site: Path) -> None:
    source = "import os, sys; print('out of licences', file=sys.stderr, flush=True); os._exit(1)"
    plugins = PluginLoader([put(site, "b-bad", source)]).load()
    assert reasons(plugins) == {"b-bad": "its import ended the process with exit status 1 (out of licences)"}


def hook(definition: str) -> str:
    return f"from chalie import Limit, hookimpl\n{dedent(definition)}"


@pytest.mark.parametrize(
    ("source", "group", "reason"),
    [
        (
            "@hookimpl\ndef limit_cal(call): ...",
            POLICIES,
            "limit_cal, which is no hook of this host; did its",
        ),
        ("@hookimpl\ndef zzz(call): ...", POLICIES, "implements zzz, which is no hook of this host"),
        ("@hookimpl\ndef limit_call(call, mood): ...", POLICIES, "mood"),
        ("@hookimpl(wrapper=True)\ndef limit_call(call):\n    return (yield)", POLICIES, "is a wrapper"),
        ("@hookimpl(hookwrapper=True)\ndef review_call(call):\n    yield", POLICIES, "is a wrapper"),
        ("@hookimpl(wrapper=True)\ndef call_finished(record):\n    return (yield)", PLUGINS, "is a wrapper"),
        ("@hookimpl\nasync def limit_call(call): ...", POLICIES, "limit_call is `async def`"),
        ("@hookimpl\ndef limit_call(call):\n    yield", POLICIES, "is a generator function"),
        ("def limit_call(call): ...", POLICIES, "limit_call is not marked with @chalie.hookimpl"),
        ("def helper(call): ...", POLICIES, "implements no hook of the host"),
        ("@hookimpl\ndef limit_call(call): ...", PLUGINS, "declare the module under chalie.policies"),
    ],
)
def test_a_module_that_breaks_a_rule_is_refused_by_name(
    site: Path, source: str, group: str, reason: str
) -> None:
    entries = [put(site, "a-first", GOOD), put(site, "b-bad", hook(source), group=group)]
    plugins = PluginLoader(entries).load()
    assert reason in reasons(plugins)["b-bad"]
    assert set(limits(plugins)) == {"a-first"}


def test_a_hook_of_a_later_host_may_be_marked_optional(site: Path) -> None:
    source = hook("@hookimpl(optionalhook=True)\ndef dream(): ...\n@hookimpl\ndef call_finished(record): ...")
    assert PluginLoader([put(site, "acme", source, group=PLUGINS)]).load().problems == ()


def test_an_object_of_a_module_may_be_named_and_a_class_may_not(site: Path) -> None:
    source = hook(
        """
        class Guard:
            @hookimpl
            def limit_call(self, call): return Limit("deny", "from an object")
        guard = Guard()
        """
    )
    put(site, "acme", source)
    by_object = PluginLoader([EntryPoint("acme", POLICIES, "x", "acme:guard")]).load()
    assert limits(by_object) == {"acme": Limit("deny", "from an object")}
    by_class = PluginLoader([EntryPoint("acme", POLICIES, "x", "acme:Guard")]).load()
    assert "is a class" in reasons(by_class)["acme"]


def test_an_implementation_takes_only_the_arguments_it_names(site: Path) -> None:
    source = hook("seen = []\n@hookimpl\ndef generation_published(added): seen.append(added)")
    plugins = PluginLoader([put(site, "acme", source, group=PLUGINS)]).load()
    answers = list(plugins.each("generation_published", generation_id="7", added=("a:b",), removed=()))
    assert answers == [("acme", None)]
    assert sys.modules["acme"].seen == [("a:b",)]


@pytest.mark.parametrize(
    "failure", ["raise RuntimeError('no')", "raise SystemExit(1)", "raise GeneratorExit"]
)
def test_a_hook_that_fails_is_an_answer_beside_the_others(site: Path, failure: str) -> None:
    bad = hook(f"@hookimpl\ndef limit_call(call): {failure}")
    entries = [put(site, "a", GOOD), put(site, "b", bad), put(site, "c", GOOD)]
    answers = limits(PluginLoader(entries).load())
    assert list(answers) == ["a", "b", "c"]
    assert isinstance(answers["b"], BaseException)
    assert answers["c"] == Limit("deny", "c")


def test_a_persons_interrupt_is_not_taken_for_a_plugins_failure(site: Path) -> None:
    source = hook("@hookimpl\ndef limit_call(call): raise KeyboardInterrupt")
    plugins = PluginLoader([put(site, "acme", source)]).load()
    with pytest.raises(KeyboardInterrupt):
        limits(plugins)
    elsewhere: list[object] = []
    thread = threading.Thread(target=lambda: elsewhere.append(limits(plugins)["acme"]))
    thread.start()
    thread.join()
    assert isinstance(elsewhere[0], KeyboardInterrupt)


def test_the_order_is_that_of_the_distributions_however_they_were_installed(site: Path) -> None:
    entries = [put(site, dist, GOOD) for dist in ("a", "b", "c")]
    for order in itertools.permutations(entries):
        assert list(limits(PluginLoader(order).load())) == ["a", "b", "c"]


def test_a_caller_that_stops_taking_runs_no_more(site: Path) -> None:
    source = hook("ran = []\n@hookimpl\ndef limit_call(call): ran.append(1)")
    plugins = PluginLoader([put(site, "a", source), put(site, "b", source)]).load()
    assert next(plugins.each("limit_call", call=CALL))[0] == "a"
    assert (sys.modules["a"].ran, sys.modules["b"].ran) == ([1], [])


@pytest.mark.parametrize(
    ("name", "arguments"), [("limit_cal", {"call": CALL}), ("limit_call", {}), ("hookimpl", {})]
)
def test_a_call_of_no_hook_is_refused_at_once(name: str, arguments: dict[str, object]) -> None:
    with pytest.raises(TypeError, match="is not a call of a hook"):
        Plugins().each(name, **arguments)


def test_what_is_not_enabled_is_never_imported(site: Path, tmp_path: Path) -> None:
    mark = tmp_path / "imported"
    put(site, "b-not-enabled", f"open({str(mark)!r}, 'w')")
    other = put(site, "c-other-group", f"open({str(mark)!r}, 'w')", group="chalie.abilities")
    plugins = PluginLoader([put(site, "a", GOOD), other]).load()
    assert (plugins.loaded, plugins.problems) == ({"a"}, ())
    assert not mark.exists()


def test_nothing_enabled_starts_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "Popen", None)
    plugins = PluginLoader([]).load()
    assert (plugins.loaded, plugins.problems) == (frozenset(), ())
    assert list(plugins.each("limit_call", call=CALL)) == []


def test_a_distribution_with_one_bad_module_is_left_out_whole(site: Path) -> None:
    good, bad = put(site, "acme", GOOD), put(site, "acme", "raise RuntimeError", module="acme_more")
    plugins = PluginLoader([good, bad]).load()
    assert (plugins.loaded, limits(plugins)) == (frozenset(), {})
    assert plugins.problems[0].entry_point == "chalie.policies: acme_more = acme_more"


def test_a_module_that_passes_apart_and_fails_in_the_host_is_caught_too(site: Path) -> None:
    source = f"import sys\nif 'pytest' in sys.modules: raise SystemExit('not here')\n{dedent(GOOD)}"
    plugins = PluginLoader([put(site, "acme", source), put(site, "b", GOOD)]).load()
    assert reasons(plugins) == {"acme": "its import raised SystemExit: not here"}
    assert set(limits(plugins)) == {"b"}


def test_a_module_that_fails_in_the_host_takes_its_distributions_others_with_it(site: Path) -> None:
    late = "import sys\nif 'pytest' in sys.modules: raise SystemExit('not here')\n" + dedent(GOOD)
    plugins = PluginLoader([put(site, "acme", GOOD), put(site, "acme", late, module="acme_more")]).load()
    assert (plugins.loaded, limits(plugins)) == (frozenset(), {})


def test_a_module_named_in_both_groups_counts_once_as_a_policy(site: Path) -> None:
    policy = put(site, "acme", GOOD)
    for entries in (
        [policy, put(site, "acme", GOOD, group=PLUGINS)],
        [put(site, "acme", GOOD, group=PLUGINS), policy],
    ):
        plugins = PluginLoader(entries).load()
        assert plugins.problems == ()
        assert len(list(plugins.each("limit_call", call=CALL))) == 1


def test_a_print_while_importing_stays_off_standard_output(
    site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    PluginLoader([put(site, "acme", f"print('hello')\n{dedent(GOOD)}")]).load()
    assert capsys.readouterr().out == ""


def test_the_separate_import_has_neither_terminal_session_nor_token(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CHALIE_APPROVER_TOKEN", "secret")
    seen = tmp_path / "seen.json"
    source = f"""
import json, os, sys
if 'pytest' not in sys.modules:
    told = [os.getsid(0) == os.getpid(), os.environ.get('CHALIE_APPROVER_TOKEN'), sys.stdin.read()]
    open({str(seen)!r}, 'w').write(json.dumps(told))
"""
    PluginLoader([put(site, "acme", source + dedent(GOOD))]).load()
    assert json.loads(seen.read_text()) == [True, None, ""]


def test_a_process_a_module_leaves_behind_does_not_hold_up_the_host(site: Path) -> None:
    start = "import subprocess, sys\nif 'pytest' not in sys.modules: subprocess.Popen(['sleep', '60'])\n"
    source = start + dedent(GOOD)
    assert PluginLoader([put(site, "acme", source)]).load().loaded == {"acme"}


def test_a_slow_import_is_named_and_still_works(site: Path) -> None:
    plugins = PluginLoader([put(site, "acme", GOOD)], slow_s=0.0).load()
    assert plugins.loaded == {"acme"}
    assert plugins.problems[0].reason.startswith("took 0.")
    assert "it works" in plugins.problems[0].fix


def test_a_host_whose_python_cannot_be_started_loads_nothing_and_says_so(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = put(site, "acme", GOOD)
    for executable in ("/bin/false", str(site / "gone"), ""):
        monkeypatch.setattr(sys, "executable", executable)
        plugins = PluginLoader([entry]).load()
        assert plugins.loaded == frozenset()
        assert "could not start" in reasons(plugins)["acme"]


def load(entry: EntryPoint, memory: Path, files_hash: str) -> Plugins:
    return PluginLoader([entry], memory=memory, files_hashes={entry.dist: files_hash}).load()


def test_an_unchanged_module_that_passed_once_needs_no_process_again(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry, memory = put(site, "acme", GOOD), tmp_path / "new" / "plugins.json"
    assert load(entry, memory, "h1").loaded == {"acme"}
    monkeypatch.setattr(subprocess, "Popen", None)
    assert load(entry, memory, "h1").loaded == {"acme"}
    with pytest.raises(TypeError):
        load(entry, memory, "h2")
    with pytest.raises(TypeError):
        load(entry, memory, "")


def test_a_module_that_failed_is_tried_again_each_time(site: Path, tmp_path: Path) -> None:
    memory = tmp_path / "plugins.json"
    assert load(put(site, "acme", "raise RuntimeError"), memory, "h1").loaded == frozenset()
    assert load(put(site, "acme", GOOD), memory, "h1").loaded == {"acme"}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"passed": 3}', '{"passed": [3]}'])
def test_a_damaged_memory_is_no_reason_to_fail(site: Path, tmp_path: Path, text: str) -> None:
    memory = tmp_path / "plugins.json"
    memory.write_text(text)
    assert load(put(site, "acme", GOOD), memory, "h1").loaded == {"acme"}
    assert json.loads(memory.read_text())["passed"]


def test_a_memory_that_cannot_be_written_is_no_reason_to_fail(site: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert load(put(site, "acme", GOOD), tmp_path / "file" / "plugins.json", "h1").loaded == {"acme"}
