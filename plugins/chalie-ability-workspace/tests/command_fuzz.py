"""Commands made by a grammar and spoilt by mutation, each judged, and a sample really read by bash.

    python tests/command_fuzz.py --commands 100000 --sample 3000

ends with an error where a command is judged `read` that is not: where an independent reading finds a command
that is not in the closed table, or bash runs anything else than was seen, or anything in the folder changes.
"""

from __future__ import annotations

import argparse
import os
import random
import shlex
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

# Run from the checkout, it judges what is in the checkout.
sys.path.append(str(Path(__file__).parents[1] / "src"))

from chalie_ability_workspace.bash import Bash
from chalie_ability_workspace.refusal import AlwaysAsk
from chalie_ability_workspace.shell.judging import ACTIONS
from chalie_ability_workspace.shell.words import split

#: the names that may stand in a command that only reads; written out here, so that the table is held to it.
HARMLESS = frozenset(
    {
        "ls", "cat", "head", "tail", "wc", "nl", "tac", "rev", "fold", "sort", "uniq", "cut", "tr",
        "paste", "comm", "cmp", "diff", "grep", "stat", "du", "realpath", "readlink", "md5sum", "sha1sum",
        "sha256sum", "sha512sum", "b2sum", "cksum", "pwd", "cd", "basename", "dirname", "date", "whoami",
        "hostname", "nproc", "uptime", "arch", "id", "uname", "true", "false", "find", "sed", "echo",
    }
)  # fmt: skip
#: command -> options it must not have to be harmless.
HARMFUL_WORDS = {
    "find": {"-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprintf", "-fls", "-L", "-H"},
    "sort": {"-o", "--output", "-T", "--files0-from"},
    "sed": {"-i", "-e", "-f", "-s", "-E"},
    "tail": {"-f", "-F", "--follow"},
    "grep": {"-f", "-R"},
    "ls": {"-L", "-H"},
    "date": {"-s", "-f"},
}
_READ = [
    "ls", "ls -la", "ls -R src", "cat a.txt", "cat 'a b.txt'", 'cat "a b.txt"', "head -n 5 a.txt",
    "head -5 a.txt", "tail -c 3 a.txt", "wc -l a.txt", "sort -k2 a.txt", "uniq -c", "cut -d , -f 1",
    "tr a b", "grep -n x a.txt", "grep -rn --include='*.py' x src", "grep -e x a.txt",
    "find . -name '*.py'", "find src -type f -maxdepth 2", "sed -n 1,3p a.txt", "echo hi",
    "echo 'a $(touch P)'", "pwd", "cd src", "date +%s", "stat a.txt", "du -sh", "basename a/b", "true",
    "false", "whoami", "diff a.txt src/m.py", "md5sum a.txt", "nl a.txt", "cat src/m.py", "cat -- a.txt",
    "echo -n x", "id -u", "uname -a", "realpath src", "cat - a.txt",
]  # fmt: skip
_OTHER = [
    "rm a.txt", "touch PWNED", "cat .env", "cat ../x", "cat /etc/passwd", "cat ~/x", "cat $HOME",
    "cat *.txt", "find . -exec touch P ;", "find . -delete", "find . -fprint P", "sort -o P a.txt",
    "sed -i s/a/b/ a.txt", "sed -n 'w P' a.txt", "sed -n 1e a.txt", "uniq a.txt P", "date -s now", "env",
    "env ls", "sudo ls", "xargs touch", "bash -c 'touch P'", "eval ls", "timeout 1 ls", "command ls",
    "exec ls", "git log", "test -v a", "test -v 'a[$(touch P)]'", "[ -v 'a[$(touch P)]' ]",
    "printf -v x y", "A=1 ls", "A[$(touch P)]=1 ls", "export A=1", "source a.txt", ". a.txt",
    "cp a.txt P", "mv a.txt P", "mkdir D", "tee P", "curl http://x.y", "pip install x", "awk 1",
    "python -c 1", "let 'a[$(touch P)]'", "read x", "(( a ))", "[[ -v a ]]", "ls P", "time ls", "! ls",
    "coproc ls", "function ls { touch P; }", "ls () { touch P; }", "alias ls=touch",
    "trap 'touch P' EXIT", "set -x", "cd -", "cd", "cd ..", "hash -p touch ls", "enable -n echo",
    "nohup ls", "grep -r x .", "grep -f .env a.txt", "head .env", "tail -f a.txt", "ls -L", "diff . src",
    "hostname x",
]  # fmt: skip
_JOIN = [
    " | ", " && ", " || ", "; ", "\n", " & ", " |& ", ";", "|", "&&", " ;; ", "\r\n", " > ", " >> ",
    " < ", " 2>&1 | ", " 2>/dev/null; ", " <<E\n", " <<< ", " &> ", " >| ", " # ", "\n# c\n", "\\\n",
    " \t",
]  # fmt: skip
_AROUND = [
    "({})", "{{ {}; }}", "$({})", "`{}`", "<({})", "if {}; then ls; fi", "for x in a; do {}; done",
    "! {}", "time {}", "while {}; do ls; done", "case x in x) {};; esac", "eval '{}'", "bash -c '{}'",
    'echo "$({})"', "echo `{}`", "cat <({})", "ls ${{x:-$({})}}", "echo $(( a[$({})] ))",
    "f() {{ {}; }}; f", "env {}", "X=$({}) ls", "'{}'", "cat <<E\n$({})\nE", "echo {{{},b}}", "ls;{}",
    "{} #", "# {}", "coproc {}", "exec {}", "command {}",
]  # fmt: skip
_CHARS = list(" \t\n\r\\'\"`$(){}[]<>|&;#!~*?=^%@:,.-/019azE\0\x1b\u00a0\u200b\u202eé")


def made(rng: random.Random) -> str:
    """Return one command: mostly simple ones, some joined, some wrapped, half of them spoilt."""
    parts = [
        rng.choice(_READ if rng.random() < 0.75 else _OTHER) for _ in range(rng.choice((1, 1, 1, 2, 2, 3)))
    ]
    text = parts[0]
    for part in parts[1:]:
        text += rng.choice(_JOIN[:5] if rng.random() < 0.7 else _JOIN) + part
    if rng.random() < 0.15:
        text = rng.choice(_AROUND).format(text)
    if rng.random() < 0.5:
        for _ in range(rng.choice((1, 1, 1, 2, 4))):
            text = _spoilt(rng, text)
    return text


def _spoilt(rng: random.Random, text: str) -> str:
    at = rng.randrange(len(text) + 1)
    how = rng.randrange(6)
    if how == 0:
        return text[:at] + rng.choice(_CHARS) + text[at:]
    if how == 1:
        return text[:at] + text[at + 1 :]
    if how == 2:
        return text[:at] + rng.choice(_CHARS) + text[at + 1 :]
    if how == 3:
        return text[:at] + rng.choice(_JOIN) + text[at:]
    if how == 4:
        return text[:at] + rng.choice(_OTHER) + text[at:]
    until = rng.randrange(at, len(text) + 1)
    return text[:until] + text[at:until] + text[until:]


def judged(command: str) -> str:
    """Return the action, or `always` where a person is asked each time."""
    try:
        return Bash().classify({"command": command})
    except AlwaysAsk:
        return "always"


def objection(command: str) -> str | None:
    """Return why a command is not harmless by a reading that shares nothing with the package's, or None."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars="();<>|&\n")
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t", True, ""
    try:
        tokens = list(lexer)
    except ValueError as error:
        return f"quotes do not match: {error}"
    name, comment = "", False
    found = False
    for token in tokens:
        if token and set(token) <= set("();<>|&\n"):
            for part in token.replace("\n", " \n ").split(" "):
                comment = comment and part != "\n"
                if comment or not part:
                    continue
                if part not in ("|", "||", "&&", ";", "\n"):
                    return f"operator {part!r}"
                name = ""
        elif comment or token.startswith("#"):
            comment = True
        elif not name:
            name, found = token, True
            if name not in HARMLESS:
                return f"command {name!r}"
        elif token in HARMFUL_WORDS.get(name, ()):
            return f"{name} with {token}"
        elif f"{token}/".startswith(("/", "../", "~/")) and name not in (
            "echo",
            "grep",
            "basename",
            "tr",
            "cut",
        ):
            return f"path {token!r}"
    return None if found else "nothing to run"


class Folder:
    """A throw-away workspace in which bash reads commands and logs each instead of running it.

    There is nothing on the path and every builtin but `cd` is off, so whatever bash would run arrives, with
    the words it would get, at the handler for commands that are not found.
    """

    def __init__(self, top: Path) -> None:
        self.work = top / "fuzz" / "work"
        (self.work / "src").mkdir(parents=True)
        for name in ("a.txt", "a b.txt", "src/m.py", ".env"):
            (self.work / name).write_text("x\n")
        self._log = top / "log"
        self._start = top / "start"
        names = subprocess.run(["/bin/bash", "-c", "compgen -b"], capture_output=True, text=True, check=True)
        off = [name for name in names.stdout.split() if name not in ("cd", "enable")]
        self._start.write_text(
            f'command_not_found_handle() {{ /usr/bin/printf \'%s\\0\' "$#" "$@" >> {self._log}; }}\n'
            f"enable -n {' '.join(map(shlex.quote, off))} enable\n"
        )
        self._before = self._state()

    def _state(self) -> list[tuple[str, int, int]]:
        found = self.work.parent.rglob("*")
        return sorted((str(path), path.lstat().st_size, path.lstat().st_mtime_ns) for path in found)

    def objection(self, command: str) -> str | None:
        """Return how what bash does with a command differs from what was seen in it, or None."""
        self._log.write_bytes(b"")
        done = subprocess.run(
            ["/bin/bash", "--noprofile", "--norc", "-c", command],
            cwd=self.work, stdin=subprocess.DEVNULL, capture_output=True, timeout=60,
            env={"BASH_ENV": str(self._start), "PATH": "/nowhere", "HOME": "/nowhere", "LANG": "C.UTF-8"},
        )  # fmt: skip
        seen = [tuple(each.words) for each in split(command) or []]
        ran = _logged(self._log.read_bytes())
        for words in ran:
            if words not in seen:
                return f"bash runs {words!r}"
        if self._state() != self._before:
            return "the folder is not as it was"
        if not ran and not any(words[0] == "cd" for words in seen):
            return f"bash runs nothing of it: {done.stderr!r}"
        return None


def _logged(data: bytes) -> list[tuple[str, ...]]:
    pieces = data.decode("utf-8", "surrogateescape").split("\0")[:-1]
    found = []
    while pieces:
        count = int(pieces.pop(0))
        found.append(tuple(pieces[:count]))
        del pieces[:count]
    return found


def fuzz(count: int, sample: int, seed: int, folder: Folder) -> tuple[Counter[str], list[str]]:
    """Judge `count` commands; return how many are of each action, and every objection to a `read`.

    Args:
        count: how many commands are made.
        sample: how many of those judged `read` are given to bash.
        seed: of the random numbers.
        folder: where bash reads them; the workspace must be it.
    """
    rng = random.Random(seed)
    found: Counter[str] = Counter()
    wrong: list[str] = []
    reads: set[str] = set()
    for _ in range(count):
        command = made(rng)
        action = judged(command)
        found[action] += 1
        if action == "read":
            reads.add(command)
            reason = objection(command)
            if reason is not None:
                wrong.append(f"{command!r}: {reason}")
    chosen = sorted(reads)
    rng.shuffle(chosen)
    for command in chosen[:sample]:
        reason = folder.objection(command)
        if reason is not None:
            wrong.append(f"{command!r}: {reason}")
    return found, wrong


def speed(rounds: int = 200) -> float:
    """Return the median time of one judgement in microseconds, over what agents usually ask for."""
    usual = [
        "ls -la", "cat src/m.py", "cd src && ls", "grep -rn --include='*.py' x src | head -20", "git status",
        "find . -name '*.py' | sort | head -50", "sed -n 1,40p src/m.py", "pip install x",
        "python m.py --all", "git add -A && git commit -m 'a message'",
        "for f in a b; do cat $f; done",
    ]  # fmt: skip
    times = []
    for command in usual * rounds:
        began = time.perf_counter()
        judged(command)
        times.append(time.perf_counter() - began)
    return sorted(times)[len(times) // 2] * 1e6


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--commands", type=int, default=100_000)
    parser.add_argument("--sample", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as top:
        folder = Folder(Path(os.path.realpath(top)))
        os.environ["CHALIE_WORKSPACE_ROOTS"] = str(folder.work)
        os.environ["CHALIE_HOME"] = str(Path(top) / "home")
        began = time.perf_counter()
        found, wrong = fuzz(args.commands, args.sample, args.seed, folder)
        took = time.perf_counter() - began
        typical = speed()
    print(f"{args.commands} commands in {took:.0f} s, of which bash read {args.sample}:")
    print(", ".join(f"{action} {found[action]}" for action in (*ACTIONS, "always")))
    print(f"one judgement: p50 {typical:.0f} us")
    for line in wrong:
        print("WRONG", line)
    print(f"{len(wrong)} judged read that are not")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
