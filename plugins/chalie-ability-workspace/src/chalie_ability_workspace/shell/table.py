"""The closed table: the only commands that are taken for what they are, and the only options they may have.

Reviewed against GNU coreutils, findutils, grep, sed and their BSD counterparts: nothing listed here starts a
program, writes, follows a link that it was not given, or reads a list of further files. A command or option
that is missing is asked about; that costs a question. One too many would cost more.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from .options import ANY, COUNT, Form

__all__ = ["FIND", "INSTALLERS", "NETWORK", "READERS", "SED_SCRIPT", "WRITERS"]

_LIST: Final = re.compile(r"[0-9,-]{1,200}")
_NUMBER: Final = re.compile(r"[0-9]{1,9}")
_WHEN: Final = re.compile(r"auto|always|never")
#: what `grep -r` may be narrowed to: endings of source text, which hold no secrets by their name.
_SOURCES: Final = re.compile(
    r"\*\.(?:c|cc|cpp|cs|css|cxx|erl|ex|exs|go|h|hh|hpp|hs|html|java|jl|js|jsx|kt|lua|m|md|mjs|ml|php|pl|proto"
    r"|py|pyi|r|rb|rs|rst|scala|scss|sql|svelte|swift|tex|ts|tsx|vue)"
)
_LINES: Final[Mapping[str, re.Pattern[str]]] = {"--lines": COUNT, "--bytes": COUNT}
_SUM: Final = Form()
_TEXT: Final = Form(operands="text", least=1)
_NOTHING: Final = Form(operands="none")

#: command -> what it may look like to only read.
READERS: Final[Mapping[str, Form]] = {
    "ls": Form(
        flags="1aAdFghiklmnopqrRsStUXGCBQ",
        long=frozenset(
            {"--all", "--almost-all", "--human-readable", "--recursive", "--reverse", "--color",
             "--directory", "--size", "--inode", "--group-directories-first", "--full-time"}
        ),
        long_values={"--color": _WHEN},
    ),
    "cat": Form(flags="nbsveEtTAu", long=frozenset({"--number", "--show-all"})),
    "head": Form(flags="qv", values={"n": COUNT, "c": COUNT}, long_values=_LINES, counts=True),
    "tail": Form(flags="qv", values={"n": COUNT, "c": COUNT}, long_values=_LINES, counts=True),
    "wc": Form(flags="lwcmL", long=frozenset({"--lines", "--words", "--bytes", "--chars"})),
    "nl": Form(values={"b": re.compile("[atn]")}),
    "tac": Form(),
    "rev": Form(),
    "fold": Form(flags="s", values={"w": _NUMBER}),
    "sort": Form(
        flags="nrufbdgiMVs",
        values={"k": re.compile(r"[0-9.,bdfgiMnrV]{1,40}"), "t": re.compile(r".", re.DOTALL)},
        long=frozenset({"--reverse", "--unique", "--numeric-sort"}),
    ),
    "uniq": Form(flags="cdui", values={"f": _NUMBER, "s": _NUMBER, "w": _NUMBER}, most=1),
    "cut": Form(flags="s", values={"d": ANY, "f": _LIST, "c": _LIST, "b": _LIST}),
    "tr": Form(flags="cdsC", operands="text", least=1, most=2),
    "paste": Form(flags="s", values={"d": ANY}),
    "comm": Form(flags="123", least=2, most=2),
    "cmp": Form(flags="ls", least=2, most=2),
    "diff": Form(flags="uqsbBwiy", values={"U": _NUMBER}, long=frozenset({"--brief", "--unified"}), least=2,
                 most=2),
    "grep": Form(
        flags="EFPGivwxcLlonHhsqabyr",
        values={"e": ANY, "m": _NUMBER, "A": _NUMBER, "B": _NUMBER, "C": _NUMBER},
        long=frozenset({"--ignore-case", "--line-number", "--count", "--color", "--files-with-matches",
                        "--invert-match", "--only-matching", "--word-regexp", "--fixed-strings"}),
        long_values={"--color": _WHEN, "--include": _SOURCES},
        counts=True,
        operands="pattern",
    ),
    "stat": Form(flags="t", values={"c": ANY}, least=1),
    "du": Form(flags="shackmx", values={"d": _NUMBER}, long_values={"--max-depth": _NUMBER}),
    "realpath": Form(least=1),
    "readlink": Form(flags="fn", least=1),
    "md5sum": _SUM, "sha1sum": _SUM, "sha256sum": _SUM, "sha512sum": _SUM, "b2sum": _SUM, "cksum": _SUM,
    "pwd": Form(flags="LP", operands="none"),
    "cd": Form(least=1, most=1),
    "basename": _TEXT, "dirname": _TEXT,
    "date": Form(flags="u", operands="text", most=1),
    "whoami": _NOTHING, "hostname": _NOTHING, "nproc": _NOTHING, "uptime": _NOTHING, "arch": _NOTHING,
    "id": Form(flags="ugnGr", operands="none"),
    "uname": Form(flags="asnrvmpio", operands="none"),
    "true": _NOTHING, "false": _NOTHING,
}  # fmt: skip

#: the tests and actions of `find` -> what their value must look like, None for those without one.
FIND: Final[Mapping[str, re.Pattern[str] | None]] = {
    "-name": ANY, "-iname": ANY, "-path": ANY, "-ipath": ANY, "-regex": ANY, "-iregex": ANY,
    "-type": re.compile(r"[fdl](?:,[fdl])*"), "-maxdepth": _NUMBER, "-mindepth": _NUMBER,
    "-size": re.compile(r"[+-]?[0-9]{1,12}[bcwkMG]?"), "-mtime": re.compile(r"[+-]?[0-9]{1,9}"),
    "-mmin": re.compile(r"[+-]?[0-9]{1,9}"), "-empty": None, "-not": None, "-o": None, "-or": None,
    "-a": None, "-and": None, "-print": None, "-print0": None, "-prune": None, "-ls": None, "-depth": None,
    "-xdev": None, "-true": None, "-false": None,
}  # fmt: skip

#: the only scripts of `sed -n` that are understood: print one line, or a range of them.
SED_SCRIPT: Final = re.compile(r"[0-9]{1,9}(?:,(?:[0-9]{1,9}|\$))?p")

#: command -> what it may look like to write inside the workspace and nothing else.
WRITERS: Final[Mapping[str, Form]] = {
    "mkdir": Form(flags="pv", least=1),
    "touch": Form(flags="acm", least=1),
    "tee": Form(flags="a", least=1),
    "cp": Form(flags="nvpf", least=2),
    "mv": Form(flags="nvf", least=2),
}

_ADDRESS: Final = re.compile(r"https?://[^\s-][^\s]*")
_INLINE: Final = re.compile(r"[^@<].*", re.DOTALL)  # `@file` and `<file` read a file
_HOST: Final = re.compile(r"[A-Za-z0-9.:_-]+")

#: command -> (what it may look like to speak to the network and no more, what its operands look like).
NETWORK: Final[Mapping[str, tuple[Form, re.Pattern[str]]]] = {
    "curl": (
        Form(
            flags="sSLIifkg46v",
            values={"X": re.compile("[A-Z]{3,7}"), "H": _INLINE, "d": _INLINE, "A": _INLINE, "m": _NUMBER},
            long=frozenset({"--silent", "--show-error", "--location", "--head", "--fail", "--compressed"}),
            operands="text", least=1, most=20,
        ),
        _ADDRESS,
    ),
    "ping": (Form(flags="46nq", values={"c": _NUMBER, "W": _NUMBER}, operands="text", most=1), _HOST),
    "host": (Form(operands="text", least=1, most=2), _HOST),
    "nslookup": (Form(operands="text", least=1, most=2), _HOST),
    "whois": (Form(operands="text", least=1, most=1), _HOST),
}  # fmt: skip

#: package managers -> the words that make them fetch and install, and so run, what strangers wrote.
INSTALLERS: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(("pip", "pip3", "pipx", "conda", "mamba", "gem", "cargo", "go", "brew"),
                    frozenset({"install", "upgrade", "update", "get"})),
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun", "poetry", "uv", "pdm", "composer", "bundle"),
                    frozenset({"install", "i", "ci", "add", "sync", "update", "upgrade"})),
    **dict.fromkeys(("apt", "apt-get", "dnf", "yum", "apk", "zypper", "pacman"),
                    frozenset({"install", "add", "update", "upgrade", "-S"})),
}  # fmt: skip
