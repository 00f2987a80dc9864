"""Collect the general text the table is trained on, from packages anybody can install.

Sources: WordNet 3.0 (Debian `wordnet-base`), one-line descriptions of Debian packages
(`apt-cache dumpavail`), operation texts of `botocore` and `google-api-python-client` (Apache-2.0), what two
strangers wrote to each other (`chitchat-dataset`, MIT), and requests made up of the words of these. No
question about a tool of any evaluation set is among them: a table trained on such questions finds newly
installed tools less well.
"""

from __future__ import annotations

import gzip
import html
import json
import random
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import asking

_TAG = re.compile(r"<[^>]+>")
_BRACKET = re.compile(r"\([^)]*\)")
_SPACE = re.compile(r"\s+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[_.\-/]+")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")


def lines(seed: int, limit: int) -> list[str]:
    """Return at most `limit` distinct lines of 3 to 400 characters, shuffled with `seed`."""
    seen: dict[str, None] = {}
    for source in (_wordnet, _debian, _botocore, _google):
        for line in source():
            line = _SPACE.sub(" ", line).strip()
            if 3 <= len(line) <= 400:
                seen.setdefault(line)
    result = sorted(seen)
    random.Random(seed).shuffle(result)
    return result[:limit]


def chatted(seed: int, count: int) -> list[str]:
    """Return `count` distinct messages of 4 to 60 words that people wrote to each other."""
    messages = sorted({line for line in _chitchat() if 4 <= len(line.split()) <= 60})
    random.Random(seed).shuffle(messages)
    return messages[:count]


def asked(seed: int, count: int) -> list[str]:
    """Return `count` made-up requests around general words (see asking.py)."""
    verbs, nouns, sentences, places = [], [], [], []
    for kind, lemmas, meanings, examples in _synsets():
        first = _BRACKET.sub("", meanings[0]).strip() if meanings else ""
        if kind == "verb":
            verbs.append(lemmas[0])
            if 2 <= len(first.split()) <= 9:
                verbs.append(first)
        elif kind == "noun" and ("city" in first or "capital" in first) and lemmas[0][:1].isupper():
            places.append(lemmas[0])
        elif kind == "noun" and not lemmas[0][:1].isupper():
            nouns.extend(lemmas[:2])
            if 2 <= len(first.split()) <= 8:
                nouns.append(first)
        sentences.extend(example for example in examples if 4 <= len(example.split()) <= 14)
    # what people say of themselves before they ask
    sentences.extend(line for line in _chitchat() if 4 <= len(line.split()) <= 14 and "?" not in line)
    for line in (*_botocore(), *_google()):
        head = line.split(". ")[0]
        if 2 <= len(head.split()) <= 4 and head.islower():
            verbs.append(head)
    for line in _debian():
        if 3 <= len(line.split()) <= 8 and ". " not in line:
            nouns.append(line[:1].lower() + line[1:] if line[1:2].islower() else line)
    return asking.lines(seed, count, sorted(set(verbs)), sorted(set(nouns)), sorted(set(sentences)), places)


def words_of(name: str) -> str:
    """Split an identifier into its lower-case words."""
    return " ".join(part for part in _CAMEL.sub(" ", name).lower().split())


def _synsets() -> Iterator[tuple[str, list[str], list[str], list[str]]]:
    for kind in ("noun", "verb", "adj", "adv"):
        for row in (_wordnet_folder() / f"data.{kind}").read_text("latin-1").splitlines():
            if row.startswith("  ") or "|" not in row:
                continue
            head, gloss = row.split("|", 1)
            fields = head.split()
            count = int(fields[3], 16)
            lemmas = [fields[4 + 2 * index].split("(")[0].replace("_", " ") for index in range(count)]
            meanings, examples = [], []
            for piece in re.split(r";\s*", gloss.strip()):
                (examples if piece.startswith('"') else meanings).append(piece.strip('" '))
            yield kind, lemmas, meanings, examples


def _wordnet() -> Iterator[str]:
    for _, lemmas, meanings, examples in _synsets():
        yield f"{', '.join(lemmas[:4])}: {'; '.join(meanings)}"
        yield "; ".join(meanings)
        yield from examples


def _wordnet_folder() -> Path:
    installed = Path("/usr/share/wordnet")
    if (installed / "data.noun").exists():
        return installed
    folder = Path(tempfile.gettempdir()) / "chalie-model-wordnet"
    if not (folder / "usr/share/wordnet/data.noun").exists():
        if shutil.which("apt-get") is None:
            raise SystemExit(
                "WordNet is missing: install wordnet-base (Debian, Ubuntu), or run this where apt-get is"
            )
        folder.mkdir(exist_ok=True)
        subprocess.run(["apt-get", "download", "wordnet-base"], cwd=folder, check=True)
        (package,) = folder.glob("wordnet-base*.deb")
        subprocess.run(["dpkg-deb", "-x", str(package), str(folder)], check=True)
    return folder / "usr/share/wordnet"


def _debian() -> Iterator[str]:
    if shutil.which("apt-cache") is None:
        raise SystemExit(
            "Debian's package descriptions are missing: run this where apt-cache is (apt-get update once)"
        )
    name = ""
    listing = subprocess.run(["apt-cache", "dumpavail"], check=True, capture_output=True).stdout.decode(
        "utf-8", "replace"
    )
    for row in listing.splitlines():
        if row.startswith("Package: "):
            name = row[9:]
        elif row.startswith(("Description: ", "Description-en: ")):
            text = row.split(": ", 1)[1]
            yield text
            if not name.startswith(("lib", "golang-", "node-", "r-", "ruby-", "haskell-")):
                yield f"{words_of(name)}. {text}"


def _package(name: str) -> Path:
    spec = find_spec(name)
    if spec is None or spec.origin is None:
        raise SystemExit(f"{name} is missing: pip install -r requirements.txt")
    return Path(spec.origin).parent


def _plain(text: str) -> str:
    return _SPACE.sub(" ", html.unescape(_TAG.sub(" ", text))).strip()


def _botocore() -> Iterator[str]:
    for folder in sorted((_package("botocore") / "data").iterdir()):
        models = sorted(folder.glob("*/service-2.json*"))
        if not models:
            continue
        raw = models[-1].read_bytes()
        model = json.loads(gzip.decompress(raw) if models[-1].suffix == ".gz" else raw)
        for name, operation in model["operations"].items():
            sentences = _SENTENCE.split(_plain(operation.get("documentation", "")))
            shape = model["shapes"].get(operation.get("input", {}).get("shape", ""), {})
            parameters = ", ".join(words_of(member) for member in list(shape.get("members", {}))[:8])
            if sentences[0]:
                yield f"{words_of(name)}. {sentences[0]} {parameters}"
            yield from sentences[:2]


def _chitchat() -> Iterator[str]:
    talks = json.loads((_package("chitchat_dataset") / "dataset.json").read_text("utf-8"))
    for talk in talks.values():
        for messages in talk["messages"]:
            for message in messages:
                yield _SPACE.sub(" ", message["text"]).strip()


def _google() -> Iterator[str]:
    for path in sorted((_package("googleapiclient") / "discovery_cache" / "documents").glob("*.json")):
        document = json.loads(path.read_text("utf-8"))
        yield document.get("description", "")
        yield from _methods(document)


def _methods(node: dict[str, object]) -> Iterator[str]:
    for method in (node.get("methods") or {}).values():  # type: ignore[attr-defined]
        sentences = _SENTENCE.split(_plain(method.get("description", "")))
        name = words_of(".".join(method["id"].split(".")[-2:]))
        parameters = ", ".join(words_of(parameter) for parameter in list(method.get("parameters", {}))[:8])
        if sentences[0]:
            yield f"{name}. {sentences[0]} {parameters}"
        yield from sentences[:2]
    for child in (node.get("resources") or {}).values():  # type: ignore[attr-defined]
        yield from _methods(child)
