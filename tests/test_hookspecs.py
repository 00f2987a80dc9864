from __future__ import annotations

import inspect
import typing

import chalie
import pluggy
import pytest
from chalie import hookspecs

HOOKS = [
    name
    for name, value in vars(hookspecs).items()
    if inspect.isfunction(value) and value.__module__ == hookspecs.__name__
]


def test_these_are_the_hooks() -> None:
    assert HOOKS == [
        "review_call",
        "limit_call",
        "call_finished",
        "hold_changed",
        "generation_published",
        "register_commands",
    ]
    assert set(HOOKS) | {"DECIDING", "LEAVING", "hookimpl", "hookspec"} == set(hookspecs.__all__)
    assert set(HOOKS) >= hookspecs.DECIDING


@pytest.mark.parametrize("name", HOOKS)
def test_every_hook_is_typed_and_says_when_what_conflicts_and_failure(name: str) -> None:
    hook = getattr(hookspecs, name)
    signature = inspect.signature(hook)
    assert all(p.annotation is not p.empty for p in signature.parameters.values())
    assert signature.return_annotation is not signature.empty
    for heading in ("When:", "May return:", "Conflicts:", "Failure:"):
        assert f"\n{heading}" in inspect.getdoc(hook)


@pytest.mark.parametrize("name", [name for name in HOOKS if name != "register_commands"])
def test_the_types_of_a_hook_can_be_read_at_run_time(name: str) -> None:
    assert typing.get_type_hints(getattr(hookspecs, name))


def test_pluggy_takes_every_specification_and_an_implementation_of_it() -> None:
    manager = pluggy.PluginManager("chalie")
    manager.add_hookspecs(hookspecs)

    class Policy:
        @chalie.hookimpl
        def limit_call(self, call: object) -> None:
            return None

        @chalie.hookimpl
        def call_finished(self, record: object) -> None:
            return None

    manager.register(Policy())
    manager.check_pending()
    assert len(manager.hook.limit_call.get_hookimpls()) == 1


def test_a_misspelt_hook_is_noticed() -> None:
    manager = pluggy.PluginManager("chalie")
    manager.add_hookspecs(hookspecs)

    class Policy:
        @chalie.hookimpl
        def limit_calls(self, call: object) -> None:
            return None

    manager.register(Policy())
    with pytest.raises(pluggy.PluginValidationError, match="limit_calls"):
        manager.check_pending()
