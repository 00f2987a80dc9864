"""The shell's grammar, as a veto: what it cannot parse, or reads otherwise than we do, is never harmless."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from ..refusal import AlwaysAsk
from .words import Command

if TYPE_CHECKING:
    from tree_sitter import Parser

__all__ = ["DEEPEST", "Outline", "outline"]

#: nodes inside each other; beyond, nobody can say what a command does.
DEEPEST: Final = 100

_LOCAL = threading.local()

#: what a command line of plain words consists of.
_SIMPLE: Final = frozenset(
    {
        "program", "list", "pipeline", "command", "command_name", "word", "number", "raw_string", "string",
        "string_content", "concatenation", "comment", "redirected_statement", "file_redirect",
        "file_descriptor", "|", "&&", "||", ";", "\n", '"', ">", ">>", ">|", "<", "&>", "&>>", ">&",
    }
)  # fmt: skip


class Outline:
    """What the grammar saw: how many words each simple command has, and whether there was anything else.

    Attributes:
        commands: the number of words of each simple command, in order.
        plain: whether nothing but simple commands, pipelines, lists, comments and redirections was seen.
        redirects: the number of redirections.
    """

    __slots__ = ("commands", "plain", "redirects")

    def __init__(self) -> None:
        self.commands: list[int] = []
        self.plain = True
        self.redirects = 0

    def agrees(self, commands: list[Command]) -> bool:
        """Tell whether a reading of plain words found the same commands."""
        redirects = sum(len(command.redirects) for command in commands)
        if not self.plain or self.redirects != redirects or len(self.commands) != len(commands):
            return False
        # words after a redirection hang elsewhere in the tree, so only the commands are counted then
        return bool(redirects) or self.commands == [len(command.words) for command in commands]


def outline(text: str) -> Outline:
    """Parse a command line.

    Raises:
        AlwaysAsk: it does not parse, or is nested too deeply.
    """
    tree = _parser().parse(text.encode())
    root = tree.root_node
    if root.has_error:
        raise AlwaysAsk("it is not a command that a shell's grammar takes")
    seen = Outline()
    cursor = root.walk()
    depth = 0
    while True:
        node = cursor.node
        assert node is not None
        kind = node.type
        if kind not in _SIMPLE:
            seen.plain = False
        elif kind == "command":
            seen.commands.append(node.named_child_count)
        elif kind == "file_redirect":
            seen.redirects += 1
        # the inside of a word is not of interest, and most nodes are words
        if kind not in ("word", "raw_string", "number") and cursor.goto_first_child():
            depth += 1
            if depth > DEEPEST:
                raise AlwaysAsk(f"it is nested over {DEEPEST} deep")
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return seen
            depth -= 1


def _parser() -> Parser:
    """Return this thread's parser; the libraries are loaded with the first command."""
    parser: Parser | None = getattr(_LOCAL, "parser", None)
    if parser is None:
        import tree_sitter
        import tree_sitter_bash

        parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))
        _LOCAL.parser = parser
    return parser
