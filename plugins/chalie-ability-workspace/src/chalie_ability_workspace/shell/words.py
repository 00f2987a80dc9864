"""The words of a simple command line, read by the few rules under which bash could read nothing else.

This is no shell grammar. It takes plain words, closed quotes without anything to expand in them, the
separators `|`, `&&`, `||`, `;` and line break, comments, and redirections to a plain word. Whatever else
stands in a command makes it `None`: not understood, and so never taken for harmless.
"""

from __future__ import annotations

import re
from typing import Final

from attrs import define, field

__all__ = ["Command", "Redirect", "split"]

#: characters that mean only themselves to bash outside quotes, in every place of a word and in every locale.
_PLAIN: Final = r"[A-Za-z0-9_./:,+=@%^-]"
_TOKEN: Final = re.compile(
    rf"""
      (?P<blank>[ \t]+)
    | (?P<copy>[0-9]*>&[0-9](?=[\s;|]|\Z))
    | (?P<redirect>(?:[0-9]*(?:>>|>\||>|<)|&>>|&>))
    | (?P<word>(?:{_PLAIN}|'[^']*'|"[^"$`\\]*")+)
    | (?P<separator>&&|\|\||\||;|\n)
    | (?P<comment>\#[^\n\\'"]*)
    """,
    re.VERBOSE,
)
_QUOTED: Final = re.compile(r"""'([^']*)'|"([^"]*)\"""")
_NAME: Final = re.compile(r"[a-z][a-z0-9_-]*")


@define
class Redirect:
    """A redirection: its operator without the descriptor's number, and its target (None for a copy)."""

    operator: str
    target: str | None


@define
class Command:
    """One simple command.

    Attributes:
        words: its name and arguments, quotes taken off.
        redirects: in order.
        piped: whether it is part of a pipeline, and so runs in a shell of its own.
    """

    words: list[str] = field(factory=list)
    redirects: list[Redirect] = field(factory=list)
    piped: bool = False


def split(text: str) -> list[Command] | None:
    """Return the simple commands of a command line, or None where bash might see something else in it.

    Args:
        text: without control characters other than tab and line break.
    """
    commands: list[Command] = []
    command = Command()
    waiting: Redirect | None = None  # a redirection whose target comes next
    needs = False  # whether another command must follow
    last = ""
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            return None
        at = match.end()
        kind, token = match.lastgroup, match.group()
        if kind == "word":
            if waiting is not None:
                waiting.target = _value(token)
                waiting = None
            elif last == "word":  # cannot be: words are separated
                return None
            elif not command.words and not _NAME.fullmatch(token):
                return None  # an assignment, a quoted or a computed name, a path
            else:
                command.words.append(_value(token))
        elif waiting is not None and kind != "blank":
            return None
        elif kind == "redirect":
            if last == "word":
                return None  # `a2>b`: whether the 2 belongs to the word is not worth knowing
            waiting = Redirect(token.lstrip("0123456789"), None)
            command.redirects.append(waiting)
        elif kind == "copy":
            if last == "word":
                return None
            command.redirects.append(Redirect(">&", None))
        elif kind == "comment":
            if last not in ("", "blank", "separator"):
                return None
        elif kind == "separator":
            if not command.words:
                if token != "\n" or command.redirects:
                    return None
            else:
                command.piped = command.piped or token == "|"
                commands.append(command)
                command = Command(piped=token == "|")
                needs = token in ("|", "&&", "||")
        last = kind or ""
    if waiting is not None or (command.redirects and not command.words):
        return None
    if command.words:
        commands.append(command)
    elif needs:
        return None
    return commands or None


def _value(token: str) -> str:
    if "'" not in token and '"' not in token:
        return token
    return _QUOTED.sub(lambda match: match.group(1) if match.group(1) is not None else match.group(2), token)
