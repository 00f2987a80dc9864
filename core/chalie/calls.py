"""The values of a call on its way through the gate: what is asked, what is said of it, what is decided."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, Literal, Protocol, runtime_checkable

from attrs import field, frozen

__all__ = [
    "Answer",
    "AnswerKind",
    "Approver",
    "Call",
    "CallRecord",
    "Channel",
    "Decision",
    "HoldChange",
    "HoldView",
    "Limit",
    "Opinion",
    "Setting",
    "SideEffect",
    "Sight",
    "Verdict",
]


class SideEffect(enum.StrEnum):
    """The mark a call leaves behind, mildest first; members compare by severity."""

    READ = "read"
    COMPUTATION = "computation"
    WRITE = "write"
    CONNECT = "connect"
    EXTERNAL_WRITE = "external_write"
    EXTERNAL_SEND = "external_send"
    DESTRUCTIVE = "destructive"

    @property
    def severity(self) -> int:
        """Position in the order of severity, 0 for `read`."""
        return _SEVERITY[self]


_SEVERITY = {effect: rank for rank, effect in enumerate(SideEffect)}


class Setting(enum.StrEnum):
    """What the gate says of a permission. `internal` is the host's own and never a person's row."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"
    INTERNAL = "internal"


@frozen
class Channel:
    """Where a turn happens.

    Attributes:
        name: the channel's own name (`chat`, `web_search`).
        policy: the policy channel whose rows apply; equals `name` unless this is a delegate channel.
        has_person: whether somebody can be asked.
        pins: the pinned tools, as `name` or `package:name`, in order.
        background: whether calls may run in the background (the schema then offers `async`).
        delegate: whether policy, principal and approver come from the turn that opens it.
        permissions: the only permissions that calls may ask for, beside the host's own tools; None for any.
    """

    name: str
    policy: str
    has_person: bool
    pins: tuple[str, ...]
    background: bool
    delegate: bool = False
    permissions: tuple[str, ...] | None = None

    def reaches(self, permission: str) -> bool:
        """Tell whether calls may ask for a permission at all: `email` reaches `email.send` as well."""
        if self.permissions is None:
            return True
        return any(permission == each or permission.startswith(f"{each}.") for each in self.permissions)


@frozen
class Call:
    """A call as the gate and the policies see it.

    Attributes:
        dist: the distribution (or MCP server) that owns the ability.
        name: the ability's name.
        permission: `name` or `name.action`.
        effect: the class of the derived action.
        arguments: healed and validated; None when a search asks whether the tool may be shown. Everybody who
            looks gets a copy, so that nobody changes what the next one sees or what will run.
        channel: the policy channel's name.
        principal: on whose behalf.
        conversation: the conversation's id, or None.
        descriptor_hash: hash of the descriptor the call was admitted with.
        requires_approval: the ability's own wish to be asked about.
        must_ask: set when the action could not be derived: a person's `allow` does not cover it.
        files_hash: over the files of its package; empty where it has none or they are not known.
        destination: where the ability says an `external_send` lands (`Ability.destination`), or None.
        trusted: whether what its package declares may be believed: an installed package's may, since
            installing trusts its author with the account; of a server only where a person said so.
        asked_because: why `must_ask` is set, in the ability's own words; empty where it gave none.
    """

    dist: str
    name: str
    permission: str
    effect: SideEffect
    _arguments: Mapping[str, Any] | None
    channel: str
    principal: str
    conversation: str | None
    descriptor_hash: str
    requires_approval: bool = False
    must_ask: bool = False
    files_hash: str = ""
    destination: str | None = None
    trusted: bool = True
    asked_because: str = ""

    @property
    def arguments(self) -> Mapping[str, Any] | None:
        """What the tool will be given, as a copy."""
        return _copied(self._arguments)  # type: ignore[no-any-return]

    @property
    def lands_in_current_conversation(self) -> bool:
        """Whether what is sent lands in the very conversation that is being answered."""
        return self.destination is not None and self.destination == self.conversation


def _copied(value: Any) -> Any:
    """Return a copy of JSON values, in which only objects and lists can be changed."""
    if isinstance(value, Mapping):
        return {key: item if type(item) in _PLAIN else _copied(item) for key, item in value.items()}
    if isinstance(value, list):
        return [item if type(item) in _PLAIN else _copied(item) for item in value]
    return value


_PLAIN: Final = frozenset({str, int, float, bool, type(None)})


@frozen
class Opinion:
    """What a policy thinks of a call where the person has said nothing."""

    setting: Literal["allow", "ask"] = field()
    reason: str

    @setting.validator
    def _check(self, _: object, value: str) -> None:
        if value not in ("allow", "ask"):
            raise ValueError(f"an opinion is 'allow' or 'ask', not {value!r}; to refuse, return a Limit")


@frozen
class Limit:
    """A narrowing that no row and no opinion can widen."""

    kind: Literal["deny", "must_ask"] = field()
    reason: str

    @kind.validator
    def _check(self, _: object, value: str) -> None:
        if value not in ("deny", "must_ask"):
            raise ValueError(f"a limit is 'deny' or 'must_ask', not {value!r}")


@frozen(cache_hash=True)
class Verdict:
    """One contribution to a decision, with who made it and why.

    Attributes:
        author: stamped by the host: `you` for a row, `host`, or the policy's distribution.
        kind: which step of the fold it entered.
        value: a `Setting`'s or `Limit`'s word.
        reason: for people.
        source: the file or row it came from, or an empty string.
        counted: False where it was heard but had no effect (an untrusted policy's allow).
    """

    author: str
    kind: Literal["row", "internal", "opinion", "default", "limit", "channel", "failure"]
    value: str
    reason: str
    source: str = ""
    counted: bool = True


@frozen
class Decision:
    """The gate's final word on a call.

    Attributes:
        setting: `allow`, `ask` or `deny` (`internal` has become `allow` by now).
        must_ask: whether a person has to be asked each time; "always" is then no answer.
        verdicts: every contribution, in order of effect.
    """

    setting: Setting
    must_ask: bool
    verdicts: tuple[Verdict, ...]

    @property
    def reason(self) -> str:
        """The reason of the verdict that decided."""
        for verdict in reversed(self.verdicts):
            if verdict.counted:
                return verdict.reason
        return ""


@frozen
class Sight:
    """How a found tool looks from a channel.

    Attributes:
        hidden: every action is denied by a row or a limit; search does not show it.
        not_allowed: the line that would allow it, where only the missing person stands in the way.
    """

    hidden: bool = False
    not_allowed: str | None = None


@frozen
class HoldView:
    """What a person is shown before answering: everything the approval binds to, secrets masked.

    Attributes:
        id: the hold's id, by which it can also be answered later and from elsewhere.
        reasons: why it has to be asked; what changed in a tool that was allowed before is among them.
        call_id: the call's id, as on the trail.
        expires_at: until when it can be answered, or None.
    """

    id: str
    name: str
    dist: str
    permission: str
    effect: SideEffect
    arguments: Mapping[str, Any]
    channel: str
    principal: str
    conversation: str | None
    model_says: str
    reasons: tuple[str, ...]
    must_ask: bool
    call_id: str = ""
    expires_at: datetime | None = None


class AnswerKind(enum.StrEnum):
    """The answers a person can give."""

    ONCE = "once"
    ALWAYS = "always"
    UNTIL = "until"
    DECLINE = "decline"
    DECLINE_ALWAYS = "decline_always"


@frozen
class Answer:
    """A person's answer.

    Attributes:
        kind: what was said.
        by: who said it, as the approver proved it (`terminal:ada`, `token:phone`).
        until: end of a time-limited allowance (timezone-aware), only with `UNTIL`.
    """

    kind: AnswerKind
    by: str
    until: datetime | None = None


@runtime_checkable
class Approver(Protocol):
    """Somebody who can be asked about one call."""

    def ask(self, hold: HoldView) -> Answer:
        """Return the person's answer.

        Raising is no answer: nothing runs, and the call stays among the holds for somebody else to answer.
        """
        ...


@frozen
class CallRecord:
    """A finished call, as observers and `turn.records` see it.

    Attributes:
        status: `success` or `error`.
        code: the error's code, or None.
        setting: the gate's word, or None where the call was refused before the gate.
        duration_us: from dispatch to outcome, in microseconds.
        healed: what was repaired in the arguments, in words.
    """

    call_id: str
    ordinal: int
    dist: str
    name: str
    permission: str
    channel: str
    principal: str
    conversation: str | None
    status: Literal["success", "error"]
    code: str | None
    setting: str | None
    duration_us: int
    healed: tuple[str, ...] = ()


@frozen
class HoldChange:
    """A hold that moved from one state to another."""

    id: str
    before: str | None
    after: str
    by: str | None
    permission: str
    principal: str
    conversation: str | None
