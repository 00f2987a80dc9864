"""Repair of arguments that a model mangled, where there is exactly one way to read them.

Keys come with stray quotes or in another spelling; lists, numbers and whole calls come as JSON text. Each
repair is told in words, so that the record, and the person who is asked, see what was understood. Nothing is
guessed: what could mean two things is refused or left to the validator, and no value replaces another.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from ..errors import ArgumentRefused
from ..names import normal, shown
from ..schema import resolved
from .handles import is_handle

__all__ = ["MOST_VALUES", "Repairs", "json_object"]

#: What models leave around a key.
_STRAY: Final = " \t\r\n\"'`“”‘’«»:=,;\\"
_NOT_DECODED: Final = object()
#: values that any text may hold which is decoded, be it a kept result's.
MOST_VALUES: Final = 1024 * 1024
#: what stands between texts where several were written as one: "a, b" may be one text or two.
_SEPARATORS: Final = (",", ";", "|", "\n")
_KIND_OF: Final[Mapping[type, str]] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
    type(None): "null",
}
#: a text of so many characters, and a whole number below this, need no counting.
_SHORT: Final = 8192
_SMALL: Final = 1 << 53
_ALTERNATIVES: Final = ("allOf", "anyOf", "oneOf")


class _Twice(ValueError):
    """A key stands twice in one JSON object."""


def json_object(text: str) -> dict[str, Any]:
    """Return the object that a JSON text holds.

    Raises:
        ArgumentRefused: it is no JSON, no object, or an object with the same key twice.
    """
    try:
        value = _parse(text)
    except _Twice as error:
        raise ArgumentRefused(f"the arguments hold {error} twice", code="ambiguous-param") from error
    except (ValueError, RecursionError) as error:
        reason = "nested too deep" if isinstance(error, RecursionError) else str(error)[:120]
        raise ArgumentRefused(
            f"the arguments are not JSON: {reason}", hint="pass the arguments as one JSON object"
        ) from error
    if not isinstance(value, dict):
        raise ArgumentRefused(
            f"the arguments are a JSON {_KIND_OF[type(value)]}", hint="pass the arguments as one JSON object"
        )
    return value


def _parse(text: str) -> Any:
    return json.loads(text, parse_constant=_no_constant, parse_float=_finite, object_pairs_hook=_once)


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is beyond what a number can hold")
    return number


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        keys = [key for key, _ in pairs]
        raise _Twice(shown(next(key for key in keys if keys.count(key) > 1)[:80]))
    return result


class Repairs:
    """What can be repaired in the calls of one tool; made once per schema.

    Args:
        schema: JSON Schema of the arguments, as `self_contained` returns it.
        aliases: other spellings of a parameter -> the parameter.
    """

    def __init__(self, schema: Mapping[str, Any], aliases: Mapping[str, str]) -> None:
        self._root = schema
        self._about: dict[int, tuple[Mapping[str, Any], ...]] = {}
        about = self._schemas_about(schema)
        self.names = tuple(dict.fromkeys(name for part in about for name in part.get("properties") or ()))
        self.required = tuple(schema.get("required") or ())
        self._wanted = {name: self._kinds(self._under_key((schema,), name)) for name in self.names}
        self._texts = frozenset(
            name for name, kinds in self._wanted.items() if not kinds or "string" in kinds
        )
        self._spellings: dict[str, set[str]] = {}
        for name in self.names:
            self._spellings.setdefault(normal(name), set()).add(name)
        self._aliases: dict[str, set[str]] = {}
        for spelling, name in aliases.items():
            self._aliases.setdefault(normal(spelling), set()).add(name)
        more = schema.get("additionalProperties")
        self._open = bool(schema.get("patternProperties")) or more is True or isinstance(more, Mapping)

    def repaired(self, arguments: Mapping[str, Any], nested: bool = True) -> tuple[dict[str, Any], list[str]]:
        """Return a copy of `arguments` with its keys and values repaired, and what was done, in words.

        What a decoded text holds is not repaired with it: call again with the result until nothing is done.

        Args:
            arguments: of bounded depth.
            nested: whether to look for texts to decode inside objects and lists too.

        Raises:
            ArgumentRefused: two keys mean the same parameter, or one could mean two.
        """
        healed: list[str] = []
        fixed = self._with_keys(arguments, healed)
        for key, value in list(fixed.items()):
            kind = type(value)
            if (kind is str and key in self._texts) or kind is bool or kind is int or kind is float:
                continue
            if value is None:
                if self.is_absent(key, value) and key not in self.required:
                    del fixed[key]
                    healed.append(f"left out {shown(key)}, which was null")
                continue
            if kind is str or nested:
                fixed[key] = self._value(value, self._under_key((self._root,), key), key, healed)
        return fixed, healed

    def leaves(self, arguments: dict[str, Any]) -> bool:
        """Tell at a glance whether `repaired` would leave arguments as they are; False also where unsure.

        That is a short ASCII text, no handle, where a text may stand, a boolean or a small whole number, each
        under a parameter's own name.
        """
        texts, wanted = self._texts, self._wanted
        for key, value in arguments.items():
            kind = type(value)
            if type(key) is not str:
                return False
            if kind is str:
                if key not in texts or len(value) > _SHORT or not value.isascii():
                    return False
                if value.startswith("result:"):
                    return False
            elif key not in wanted or not (kind is bool or (kind is int and -_SMALL < value < _SMALL)):
                return False
        return True

    def is_absent(self, name: str, value: Any) -> bool:
        """Tell whether a null stands for nothing: the parameter is declared and does not take null."""
        kinds = self._wanted.get(name)
        return value is None and kinds is not None and "null" not in kinds

    def _with_keys(self, arguments: Mapping[str, Any], healed: list[str]) -> dict[str, Any]:
        unknown = [key for key in arguments if key not in self._wanted]
        if not unknown:
            return dict(arguments)
        whole = self._whole_call(arguments)
        if whole is not None:
            healed.append("read the one key of the call, which was JSON text, as its arguments")
            return self._with_keys(whole, healed)
        meant: dict[str, list[str]] = {key: [key] for key in arguments if key in self._wanted}
        renamed: dict[str, str] = {}
        for key in unknown:
            names = self._meanings(key)
            if len(names) > 1 and not self._open:
                raise ArgumentRefused(
                    f"the key {shown(key[:80])} could mean {' or '.join(names)}",
                    code="ambiguous-param",
                    hint="use the exact name",
                    valid=tuple(names),
                )
            if len(names) == 1 and not (self._open and names[0] in arguments):
                renamed[key] = names[0]
                meant.setdefault(names[0], []).append(key)
        for name, keys in meant.items():
            if len(keys) > 1:
                listed = " and ".join(shown(key[:80]) for key in keys)
                raise ArgumentRefused(
                    f"the keys {listed} both mean {name}",
                    code="ambiguous-param",
                    hint=f"pass {name}= once",
                    valid=(name,),
                )
        healed.extend(f"read the key {shown(key[:80])!r} as {name}" for key, name in renamed.items())
        return {renamed.get(key, key): value for key, value in arguments.items()}

    def _meanings(self, key: str) -> list[str]:
        """Return the parameters that a key nobody declared may stand for."""
        bare = normal(key.strip(_STRAY))
        if not bare:
            return []
        return sorted(self._spellings.get(bare) or self._aliases.get(bare) or ())

    def _whole_call(self, arguments: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the arguments that a call of one single weird key holds, or None where it is none."""
        if len(arguments) != 1:
            return None
        ((key, value),) = arguments.items()
        if '"' not in key or (":" not in key and not isinstance(value, str)):
            return None
        candidates = [key, "{" + key + "}"] if value in (None, "", True) or value == {} else []
        if isinstance(value, str):
            candidates += [f"{key}:{value}", f"{key}{value}"]
        for candidate in candidates:
            try:
                found = _parse(candidate)
            except (ValueError, RecursionError):
                continue
            if isinstance(found, dict) and found and all(self._is_known(name) for name in found):
                return found
        return None

    def _is_known(self, key: str) -> bool:
        return key in self._wanted or len(self._meanings(key)) == 1

    def _value(self, value: Any, schemas: tuple[Mapping[str, Any], ...], path: str, healed: list[str]) -> Any:
        """Return a value with JSON text decoded wherever the schemas about it want something but text."""
        if isinstance(value, str):
            kinds = self._kinds(schemas)
            if not kinds or "string" in kinds:
                return value
            decoded = _decoded(value, kinds)
            if decoded is _NOT_DECODED and self._is_one_text(value, schemas, kinds):
                healed.append(f"read the text of {shown(path)} as a list of that one text")
                return [value]
            if decoded is _NOT_DECODED:
                return value
            healed.append(f"read the text of {shown(path)} as {_KIND_OF[type(decoded)]}")
            return decoded
        if not schemas:
            return value
        if isinstance(value, dict):
            return {
                key: self._value(item, self._under_key(schemas, key), f"{path}.{key}", healed)
                if isinstance(item, (str, dict, list))
                else item
                for key, item in value.items()
            }
        if isinstance(value, list):
            return [
                self._value(item, self._under_index(schemas, at), f"{path}[{at}]", healed)
                if isinstance(item, (str, dict, list))
                else item
                for at, item in enumerate(value)
            ]
        return value

    def _is_one_text(self, text: str, schemas: tuple[Mapping[str, Any], ...], kinds: frozenset[str]) -> bool:
        """Tell whether a text stands for a list of itself: texts are listed there, and it is not many."""
        if "array" not in kinds or "object" in kinds or text.lstrip()[:1] in ("", "[", "{"):
            return False
        if is_handle(text):  # what it stands for is in its place by and by, and may be a list itself
            return False
        if any(mark in text for mark in _SEPARATORS):
            return False
        items = self._kinds(self._under_index(schemas, 0))
        return items is not None and "string" in items

    def _schemas_about(self, node: Any) -> tuple[Mapping[str, Any], ...]:
        """Return the schemas that speak of the same value as `node`: itself, references and alternatives."""
        if not isinstance(node, Mapping):
            return ()
        known = self._about.get(id(node))
        if known is None:
            found: dict[int, Mapping[str, Any]] = {}
            pending: list[Any] = [node]
            while pending:
                part = pending.pop()
                if not isinstance(part, Mapping) or id(part) in found:
                    continue
                found[id(part)] = part
                if "$ref" in part:
                    pending.append(resolved(self._root, part))
                pending.extend(child for key in _ALTERNATIVES for child in part.get(key) or ())
                pending.extend(part[key] for key in ("then", "else") if key in part)
            known = self._about[id(node)] = tuple(found.values())
        return known

    def _under_key(self, schemas: Iterable[Mapping[str, Any]], key: str) -> tuple[Mapping[str, Any], ...]:
        return _each_once(child for part in self._all_about(schemas) for child in _of_key(part, key))

    def _under_index(self, schemas: Iterable[Mapping[str, Any]], at: int) -> tuple[Mapping[str, Any], ...]:
        return _each_once(child for part in self._all_about(schemas) for child in _of_index(part, at))

    def _all_about(self, schemas: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
        for schema in schemas:
            yield from self._schemas_about(schema)

    def _kinds(self, schemas: Iterable[Mapping[str, Any]]) -> frozenset[str] | None:
        """Return the JSON types that any of the schemas accepts, or None where one of them does not say."""
        kinds: set[str] = set()
        for schema in schemas:
            own = self._kinds_of(schema, 0)
            if own is None:
                return None
            kinds |= own
        return frozenset(kinds) or None

    def _kinds_of(self, node: Any, depth: int) -> frozenset[str] | None:
        """Return the JSON types one schema accepts, or None where it does not say."""
        if not isinstance(node, Mapping) or depth > 16:
            return None
        narrowed: list[frozenset[str]] = []
        kind = node.get("type")
        if kind is not None:
            narrowed.append(frozenset([kind] if isinstance(kind, str) else kind))
        if "const" in node or isinstance(node.get("enum"), list):
            values = [node["const"]] if "const" in node else node["enum"]
            narrowed.append(frozenset(_KIND_OF.get(type(value), "string") for value in values))
        if "$ref" in node:
            narrowed.extend(_said(self._kinds_of(resolved(self._root, node), depth + 1)))
        for part in node.get("allOf") or ():
            narrowed.extend(_said(self._kinds_of(part, depth + 1)))
        for key in ("anyOf", "oneOf"):
            branches = [self._kinds_of(part, depth + 1) for part in node.get(key) or ()]
            if branches and None not in branches:
                narrowed.append(frozenset().union(*(branch for branch in branches if branch)))
        if not narrowed:
            return None
        first, *others = (kinds | {"integer"} if "number" in kinds else kinds for kinds in narrowed)
        return first.intersection(*others)


def _each_once(schemas: Iterable[Mapping[str, Any]]) -> tuple[Mapping[str, Any], ...]:
    """Return the schemas without repetition: the ways to one multiply with depth, the schemas do not."""
    return tuple({id(schema): schema for schema in schemas}.values())


def _said(kinds: frozenset[str] | None) -> tuple[frozenset[str], ...]:
    return () if kinds is None else (kinds,)


def _of_key(schema: Mapping[str, Any], key: str) -> Iterator[Mapping[str, Any]]:
    properties = schema.get("properties")
    if isinstance(properties, Mapping) and key in properties:
        if isinstance(properties[key], Mapping):
            yield properties[key]
    elif isinstance(schema.get("additionalProperties"), Mapping):
        yield schema["additionalProperties"]


def _of_index(schema: Mapping[str, Any], at: int) -> Iterator[Mapping[str, Any]]:
    ahead = schema.get("prefixItems")
    if isinstance(ahead, list) and at < len(ahead):
        if isinstance(ahead[at], Mapping):
            yield ahead[at]
    elif isinstance(schema.get("items"), Mapping):
        yield schema["items"]


def _decoded(text: str, kinds: frozenset[str]) -> Any:
    """Return the value that a text holds, where it is of a wanted type; else a mark that says it is not."""
    stripped = text.strip()
    if "boolean" in kinds and stripped.lower() in ("true", "false"):
        return stripped.lower() == "true"
    if len(text) > MOST_VALUES and text.count(",") > MOST_VALUES:  # kept results alone are so long
        raise ArgumentRefused(
            f"a result in the arguments holds over {MOST_VALUES} values",
            code="arguments-too-large",
            hint="pass a smaller result",
        )
    try:
        value = _parse(stripped)
    except (ValueError, RecursionError):
        return _NOT_DECODED
    if isinstance(value, float) and "number" not in kinds and "integer" in kinds and value.is_integer():
        return int(value)
    return value if _KIND_OF[type(value)] in kinds else _NOT_DECODED
