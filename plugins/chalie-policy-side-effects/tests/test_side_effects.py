"""What the policy says of each class, and of a message by where it lands."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from chalie import Ability, Call, SideEffect, ToolResult
from chalie.catalogue.admission import attempt
from chalie.catalogue.descriptor import EntryPoint
from chalie.catalogue.plugins import Plugins

DIST = "chalie-policy-side-effects"


def said(**changes: Any) -> tuple[str, str]:
    """Ask the policy as a host does: loaded by its entry point, called through its hook."""
    reason, found = attempt(
        EntryPoint(DIST, "chalie.policies", "side_effects", "chalie_policy_side_effects.policy")
    )
    assert reason is None
    facts: dict[str, Any] = {
        "dist": "chalie-ability-post",
        "name": "post",
        "permission": "post",
        "effect": SideEffect.EXTERNAL_SEND,
        "arguments": {},
        "channel": "chat",
        "principal": "ada",
        "conversation": "talk",
        "descriptor_hash": "h",
    }
    ((author, opinion),) = Plugins(found).each("review_call", call=Call(**{**facts, **changes}))
    assert author == DIST
    return opinion.setting, opinion.reason  # type: ignore[attr-defined]


@pytest.mark.parametrize("effect", list(SideEffect))
def test_only_what_leaves_nothing_behind_may_run(effect: SideEffect) -> None:
    setting, reason = said(effect=effect)
    assert setting == ("allow" if effect in (SideEffect.READ, SideEffect.COMPUTATION) else "ask")
    assert effect.value in reason


@pytest.mark.parametrize("effect", list(SideEffect))
def test_a_tool_that_asks_for_approval_and_one_nobody_trusts_are_always_asked_about(
    effect: SideEffect,
) -> None:
    assert said(effect=effect, requires_approval=True)[0] == "ask"
    assert said(effect=effect, trusted=False)[0] == "ask"
    assert said(effect=effect, requires_approval=True, destination="talk")[0] == "ask"


@pytest.mark.parametrize("name", ["read", "get_weather", "find_tools", "_mcp_files_read", "memory"])
def test_a_name_makes_no_difference(name: str) -> None:
    assert said(name=name, permission=name, effect=SideEffect.WRITE)[0] == "ask"
    assert said(name=name, permission=f"{name}.read", effect=SideEffect.DESTRUCTIVE)[0] == "ask"
    assert (
        said(name="delete_everything", permission="delete_everything", effect=SideEffect.READ)[0] == "allow"
    )


def test_a_search_that_asks_without_arguments_gets_the_same_answers() -> None:
    assert said(arguments=None, effect=SideEffect.READ)[0] == "allow"
    assert said(arguments=None)[0] == "ask"


# where a message lands


class Client:
    """A conversation in a chat, as its client describes it."""

    cancelled = False

    def __init__(self, channel: str, thread: str | None, *, direct_with: str | None = None) -> None:
        self.principal = "ada"
        self.channel = "chat"
        self.conversation = f"{channel}/{thread}" if thread else channel
        self.client = {"channel_id": channel, "thread_id": thread, "direct_with": direct_with}


class Post(Ability):
    """A chat's tool: it posts into a channel or thread, or writes to somebody directly."""

    side_effect = SideEffect.EXTERNAL_SEND
    ids: ClassVar[dict[str, str]] = {"#general": "C1", "#random": "C2"}

    def name(self) -> str:
        return "post"

    def summary(self) -> str:
        return "Post a message."

    def examples(self) -> list[str]:
        return ["post it"]

    def search_tooltip(self) -> str:
        return "post"

    def parameters(self) -> dict[str, Any]:
        return {"type": "object"}

    def run(self, params: Any) -> ToolResult:
        return ToolResult.ok()

    def destination(self, params: Any) -> str | None:
        here = self.context.client
        if params.get("direct"):
            to_the_requester = params.get("to") is None and here["direct_with"] == self.context.principal
            return self.context.conversation if to_the_requester else None
        channel = params.get("channel", here["channel_id"])
        thread = params.get("thread", here["thread_id"] if channel == here["channel_id"] else None)
        same = channel == here["channel_id"] and thread in (None, here["thread_id"])
        return self.context.conversation if same else None


IN_CHANNEL = Client("C1", None)
IN_THREAD = Client("C1", "17.5")
DIRECT = Client("D9", None, direct_with="ada")


@pytest.mark.parametrize(
    ("where", "params", "setting"),
    [
        (IN_THREAD, {}, "allow"),
        (IN_CHANNEL, {}, "allow"),
        (IN_THREAD, {"thread": "17.5"}, "allow"),
        (IN_CHANNEL, {"channel": "C1"}, "allow"),
        (DIRECT, {"direct": True}, "allow"),
        (IN_CHANNEL, {"channel": "#general"}, "ask"),
        (IN_CHANNEL, {"channel": "C2"}, "ask"),
        (IN_THREAD, {"thread": "99.9"}, "ask"),
        (IN_CHANNEL, {"direct": True}, "ask"),
        (IN_CHANNEL, {"direct": True, "to": "ada"}, "ask"),
        (DIRECT, {"direct": True, "to": "bob"}, "ask"),
        (Client("D8", None, direct_with="bob"), {"direct": True}, "ask"),
    ],
)
def test_only_a_message_into_the_current_conversation_needs_no_second_yes(
    where: Client, params: dict[str, Any], setting: str
) -> None:
    destination = Post().bind(where).destination(params)  # type: ignore[arg-type]
    assert said(destination=destination, conversation=where.conversation)[0] == setting


def test_without_a_conversation_no_message_lands_in_it() -> None:
    assert said(destination=None, conversation=None)[0] == "ask"


@pytest.mark.parametrize("effect", [SideEffect.DESTRUCTIVE, SideEffect.WRITE, SideEffect.EXTERNAL_WRITE])
def test_the_exemption_is_for_sending_alone(effect: SideEffect) -> None:
    assert said(effect=effect, destination="talk")[0] == "ask"
