"""The ability `memory`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from chalie import Ability, SideEffect, ToolResult

from .matching import Match, Meaning, at_place, by_words, ranked, telling_words
from .store import Full, Store, Unusable, texts
from .store import Memory as Kept

__all__ = ["Memory"]

_USUAL = 5
_MOST = 50
#: candidates listed where it is not certain which memory is to be forgotten.
_CANDIDATES = 10


class Memory(Ability):
    """What the agent was told: stored, recalled by meaning, words or place, and forgotten."""

    actions = {
        "store": SideEffect.WRITE,
        "recall": SideEffect.READ,
        "forget": SideEffect.DESTRUCTIVE,
    }
    action_required = {"store": ("text",)}
    aliases = {
        "content": "text",
        "memory": "text",
        "fact": "text",
        "note": "text",
        "topic": "query",
        "search": "query",
        "place": "location",
        "memory_id": "id",
    }

    def name(self) -> str:
        """Return what the model calls it by."""
        return "memory"

    def summary(self) -> str:
        """Say what it does, for the model and for search."""
        return (
            "Remember facts and preferences across conversations: store something worth keeping, recall it "
            "later by topic or place, forget it when asked."
        )

    def examples(self) -> list[str]:
        """Return what people say who need it."""
        return [
            "remember that my sister is allergic to nuts",
            "what do you know about my travel preferences",
            "what do you remember about the garden project",
            "forget what I said about the old phone number",
            "note for next time that I prefer window seats",
            "do you recall the name of the plumber",
            "recall what I did when I was last in Lisbon",
            "don't keep my address any longer",
        ]

    def search_tooltip(self) -> str:
        """Return a few words for a user interface."""
        return "Store, recall and forget facts"

    def parameters(self) -> dict[str, Any]:
        """Return the JSON Schema of the arguments."""
        return {
            "type": "object",
            "properties": {
                "action": {
                    "type": "string",
                    "enum": ["store", "recall", "forget"],
                    "description": "store needs text; recall needs query or location; forget needs id, or "
                    "query or location that fit one memory only.",
                },
                "text": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 8000,
                    "description": "What to store: one fact in a sentence that makes sense on its own, with "
                    "names instead of 'he' or 'there'. Never passwords, keys or card numbers.",
                },
                "query": {
                    "type": "string",
                    "maxLength": 1000,
                    "description": "What to recall or forget: a topic or a few words.",
                },
                "location": {
                    "type": "string",
                    "maxLength": 200,
                    "description": "A place: stored with the fact, or to filter by; 'Malta' finds "
                    "'Valletta, Malta'.",
                },
                "id": {
                    "type": "string",
                    "maxLength": 40,
                    "description": "The id of the memory to forget, as recall gives it.",
                },
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": _MOST,
                    "default": _USUAL,
                    "description": "How many memories to recall at most.",
                },
            },
            "required": ["action"],
            "additionalProperties": False,
        }

    def run(self, params: Mapping[str, Any]) -> ToolResult:
        """Do one of the three."""
        action = self.classify(params)
        store = Store(self.context.data_folder / "memory.sqlite", self.context.principal)
        text, query, location = (
            str(params.get(name) or "").strip() for name in ("text", "query", "location")
        )
        try:
            if action == "store":
                return self._store(store, text, location)
            if action == "forget":
                return self._forget(store, str(params.get("id") or "").strip(), query, location)
            return self._recall(store, query, location, int(params.get("limit") or _USUAL))
        except Unusable as error:
            return ToolResult.error(
                f"the memory file cannot be used: {error}",
                code="memory-unusable",
                hint="do not retry; tell the user, who can free space, fix its permissions or move it away",
                action=action,
            )

    def _store(self, store: Store, text: str, location: str) -> ToolResult:
        if not text:
            return ToolResult.error(
                "store requires a text that is not blank.",
                code="missing-params",
                hint="pass text= with one fact in a sentence.",
                valid=("text",),
                action="store",
            )
        meaning = Meaning(self.context.embed)
        model, vector = meaning.of(texts([Kept("", text, location, "")])[0])
        try:
            memory, new = store.add(text, location, model, vector)
        except Full as full:
            return ToolResult.error(
                f"nothing was stored: {full}.",
                code="memory-full",
                hint="recall and forget what is no longer needed, after asking the user.",
                action="store",
            )
        return ToolResult.ok(_shown(memory), action="store", new=new)

    def _recall(self, store: Store, query: str, location: str, limit: int) -> ToolResult:
        if not query and not location:
            return ToolResult.error(
                "recall requires either a query or a location.",
                code="no-query-or-location",
                hint="pass query= to search by topic, or location= to filter by place.",
                valid=("query", "location"),
                action="recall",
            )
        meaning = Meaning(self.context.embed)
        matches = self._matches(store, meaning, query, location)
        shown = [
            _shown(match.memory) | ({"match": round(match.score, 2)} if query else {})
            for match in matches[:limit]
        ]
        lost: dict[str, Any] = {"degraded": "meaning"} if meaning.trouble else {}
        return ToolResult.ok(
            {"memories": shown}, action="recall", count=len(shown), more=len(matches) - len(shown), **lost
        )

    def _forget(self, store: Store, id: str, query: str, location: str) -> ToolResult:
        if id:
            return _forgotten(store.remove(id))
        if not query and not location:
            return ToolResult.error(
                "forget requires an id, or a query or location that fit one memory only.",
                code="no-id-or-query",
                hint="recall first, then pass the id= of the memory to forget.",
                valid=("id", "query", "location"),
                action="forget",
            )
        matches = self._matches(store, Meaning(self.context.embed), query, location)
        # What only means something similar, or shares some of the words, is never forgotten on a guess.
        certain = [match for match in matches if not query or _holds_all(query, match)]
        if len(certain) == 1:
            return _forgotten(store.remove(certain[0].memory.id))
        if certain:
            return _candidates(
                certain, "ambiguous-memory", f"{len(certain)} memories fit, so none was forgotten."
            )
        if matches:
            return _candidates(
                matches, "uncertain-memory", "No memory has all of these words, so none was forgotten."
            )
        return _forgotten(None)

    def _matches(self, store: Store, meaning: Meaning, query: str, location: str) -> list[Match]:
        memories = store.all()
        if location:
            memories = at_place(memories, location)
        if not query:
            return [Match(memory, 0.0, None) for memory in memories]
        model, vector = meaning.of(query)
        vectors = meaning.renewed(memories, model, store) if model else {}
        return ranked(memories, query, vector, vectors, meaning.floor() if vectors else 1.0)


def _holds_all(query: str, match: Match) -> bool:
    return bool(telling_words(query)) and by_words(query, match.memory.text, inflected=False) == 1.0


def _shown(memory: Kept) -> dict[str, Any]:
    place = {"location": memory.location} if memory.location else {}
    return {"id": memory.id, "text": memory.text, **place, "stored_at": memory.stored_at}


def _forgotten(memory: Kept | None) -> ToolResult:
    if memory is not None:
        return ToolResult.ok({"forgotten": _shown(memory)}, action="forget")
    return ToolResult.error(
        "No such memory is kept.",
        code="unknown-memory",
        hint="recall with query= to see what is kept and its ids.",
        action="forget",
    )


def _candidates(matches: Sequence[Match], code: str, message: str) -> ToolResult:
    def line(memory: Kept) -> str:
        text = " ".join(memory.text.split())
        return f"{memory.id}: {text[:100]}{'…' if len(text) > 100 else ''}"

    return ToolResult.error(
        message,
        code=code,
        hint="ask the user which one is meant, then pass its id=.",
        valid=[line(match.memory) for match in matches[:_CANDIDATES]],
        action="forget",
        candidates=len(matches),
    )
