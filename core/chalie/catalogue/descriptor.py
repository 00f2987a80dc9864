"""The frozen snapshot of an ability's facts: what is stored, indexed, hashed and shown."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Literal

from attrs import evolve, field, frozen

from ..calls import SideEffect

__all__ = ["Descriptor", "EntryPoint", "Playbook", "Problem"]

#: what is pinned and hashed: everything a person judges or a model is told (DESIGN.md, "Pins").
_HASHED = ("name", "summary", "examples", "search_tooltip", "parameters", "actions", "side_effect")
_HASHED_MORE = ("action_required", "requires_approval", "classifies", "discoverable")


# without slots, whose many attributes take twice as long to set: searches make descriptors all the time
@frozen(slots=False)
class Descriptor:
    """An ability's facts, as read when its package was described.

    Attributes:
        dist: normalised name of the owning distribution, or of the MCP server.
        dist_version: the distribution's version.
        target: where the class is, as `module:qualname`, or `mcp:` and the tool's own name; empty for the
            host's own abilities.
        name: what the model calls it by.
        summary: one or two sentences for the model and for search.
        examples: what a person might say who needs it.
        search_tooltip: a few words for a user interface.
        parameters: JSON Schema of the arguments, self-contained, without the injected parameters.
        namespace: the group it belongs to (default: the name's first segment).
        version: the ability's own version.
        discoverable: whether search may show it.
        actions: action -> class; empty for an ability with one class.
        side_effect: the class where `actions` is empty.
        action_required: action -> names of the parameters that action requires.
        requires_approval: the ability's wish to be asked about.
        latency: `low`, `medium`, `high` or `interactive`.
        isolate: whether it runs in a worker process.
        time_limit_s: seconds a call may take, or None.
        classifies: whether the class has a `classify` of its own (it must then be imported to gate a call).
        aliases: other spellings of a parameter -> the parameter.
        locates: whether the class has a `destination` of its own (it is imported to gate a call that sends).
        bare: of a server's tool, the name the server gave it; empty for every other.
        declared: of a server's tool, what else the server says of it (title, annotations, outputSchema).
        hash: SHA-256 (hex) over what a person judges; made by `sealed`.
    """

    dist: str
    dist_version: str
    target: str
    name: str
    summary: str
    examples: tuple[str, ...]
    search_tooltip: str
    parameters: Mapping[str, Any] = field(hash=False)
    namespace: str
    version: str
    discoverable: bool = True
    actions: Mapping[str, SideEffect] = field(factory=dict, hash=False)
    side_effect: SideEffect = SideEffect.WRITE
    action_required: Mapping[str, tuple[str, ...]] = field(factory=dict, hash=False)
    requires_approval: bool = False
    latency: Literal["low", "medium", "high", "interactive"] = "low"
    isolate: bool = False
    time_limit_s: float | None = None
    classifies: bool = False
    aliases: Mapping[str, str] = field(factory=dict, hash=False)
    locates: bool = False
    bare: str = ""
    declared: Mapping[str, Any] = field(factory=dict, hash=False)
    hash: str = ""

    def sealed(self) -> Descriptor:
        """Return the same descriptor with `hash` computed from its facts."""
        text = json.dumps(
            self.facts(), sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=list
        )
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        return evolve(self, hash=digest)

    def facts(self) -> dict[str, Any]:
        """Return what the hash is over: everything a person judges or a model is told."""
        facts = {key: getattr(self, key) for key in _HASHED + _HASHED_MORE}
        if self.locates:
            facts["locates"] = True
        if self.bare:
            facts |= {"bare": self.bare, "declared": dict(self.declared)}
        return facts

    @property
    def own_name(self) -> str:
        """The name its author gave it: a server's tool is called by a longer one."""
        return self.bare or self.name

    @property
    def spoken(self) -> str:
        """What its name says, for search: of a server's tool, the server's name and the tool's own."""
        return f"{self.namespace} {self.bare}" if self.bare else self.name

    @property
    def key(self) -> tuple[str, str]:
        """The identity that rows, pins and settings name: (distribution, name)."""
        return (self.dist, self.name)

    def permissions(self) -> tuple[tuple[str, SideEffect], ...]:
        """Return every (permission, class) a call of this ability can ask for."""
        if not self.actions:
            return ((self.name, self.side_effect),)
        return tuple((f"{self.name}.{action}", effect) for action, effect in self.actions.items())


@frozen
class Playbook:
    """A skill: a SKILL.md with steps for a complex task.

    Attributes:
        dist: the distribution it came with.
        name: its folder's and front matter's name.
        description: when to use it, for the model and for search.
        allowed_tools: the only tools it may use; None where the playbook restricts nothing.
        body: the Markdown after the front matter.
        path: the file it was read from.
        hash: SHA-256 (hex) of the file's bytes.
    """

    dist: str
    name: str
    description: str
    allowed_tools: tuple[str, ...] | None
    body: str
    path: str
    hash: str

    @property
    def own_name(self) -> str:
        """Its name, as abilities have one."""
        return self.name

    @property
    def spoken(self) -> str:
        """What its name says, for search."""
        return self.name

    @property
    def key(self) -> tuple[str, str]:
        """(distribution, name)."""
        return (self.dist, self.name)


@frozen
class Problem:
    """Something set aside, with the line that fixes it.

    Attributes:
        dist: the distribution (or the path, where none could be read).
        entry_point: `group: name = value`, of a server's tool `tool: name`, or an empty string.
        phase: `scan`, `metadata`, `import`, `describe`, `check`, `playbook`, `plugin`, `files` or `server`.
        reason: one line.
        fix: a command or an edit.
        quarantined: whether the whole distribution is out; otherwise only this item is.
    """

    dist: str
    entry_point: str
    phase: str
    reason: str
    fix: str
    quarantined: bool = True


@frozen
class EntryPoint:
    """One line of a distribution's entry_points.txt in a group of ours."""

    dist: str
    group: str
    name: str
    value: str
