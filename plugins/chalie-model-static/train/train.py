"""Make the model folder from general text: `python train/train.py`. Seeded; about half an hour on two cores.

Steps: collect lines (corpus.py), encode them with the teacher (teacher.py), fit two tables of token vectors
(table.py), one to what is written and one to what is said as well, write their average as int8 with its
tokenizer, and the weights of words in general text for the lexical half. `chalie.json` and `chat.txt` beside
the table are kept: their figures are measured afterwards. A stopped run goes on where it was: what the
teacher said and the fits are kept in the cache.
"""

from __future__ import annotations

import argparse
import collections
import hashlib
import json
import math
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
# the words of the lexical half are cut by the host's own code, which stands in the same checkout
sys.path.insert(0, str(HERE.parents[2] / "core"))

import corpus  # noqa: E402
import table  # noqa: E402
import teacher  # noqa: E402

MODEL = HERE.parent / "chalie_model_static" / "model"
SEED = 7
LINES, CHATTED, ASKED = 300_000, 50_000, 100_000
EPOCHS = 5


def main() -> None:
    """Train and write; prints the held-out cosine of every epoch."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--out", type=Path, default=MODEL, help="the model folder to write")
    options.add_argument("--lines", type=int, default=LINES, help="general lines")
    options.add_argument("--chatted", type=int, default=CHATTED, help="messages between people")
    options.add_argument("--asked", type=int, default=ASKED, help="made-up requests")
    options.add_argument("--epochs", type=int, default=EPOCHS)
    options.add_argument("--threads", type=int, default=2)
    options.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "chalie-model-cache")
    chosen = options.parse_args()

    import torch

    torch.set_num_threads(chosen.threads)
    everything = corpus.lines(SEED, sys.maxsize)
    written = everything[: chosen.lines]
    said = corpus.chatted(SEED, chosen.chatted) + corpus.asked(SEED, chosen.asked)
    tokenizer, ids = table.vocabulary()
    # alone the first knows terse descriptions better, the second questions; their average keeps both
    fits = [fit(lines, tokenizer, ids, chosen) for lines in (written, written + said)]
    fitted = sum(rows / np.sqrt(np.square(rows).mean()) for rows in fits)
    write(chosen.out, table.quantised(fitted), tokenizer, everything)
    print(f"{chosen.out}: {fitted.shape[0]} tokens, {fitted.shape[1]} columns")


def fit(
    lines: list[str], tokenizer: table.Tokenizer, ids: list[int], chosen: argparse.Namespace
) -> np.ndarray:
    """Return the table fitted to the teacher's vectors of `lines`; from the cache where it is there."""
    said = "\n".join([str(chosen.epochs), *lines]).encode("utf-8", "replace")
    kept = chosen.cache / f"fit-{hashlib.sha256(said).hexdigest()[:16]}.npy"
    if not kept.exists():
        vectors = np.concatenate(list(teacher.encode(lines, chosen.cache, chosen.threads)))
        goal = vectors.astype(np.float32)
        # what all sentences share says nothing about any of them
        mean = goal.mean(axis=0)
        goal -= mean
        goal /= np.linalg.norm(goal, axis=1, keepdims=True)
        lists = table.token_lists(tokenizer, lines)
        first = table.start(ids, lists, mean, chosen.cache)
        rows, score = table.fit(first, lists, goal, seed=SEED, epochs=chosen.epochs)
        print(f"{len(lines)} lines fitted, held-out cosine {score:.4f}", flush=True)
        np.save(kept, rows)
    result: np.ndarray = np.load(kept)
    return result


def write(folder: Path, rows: np.ndarray, tokenizer: table.Tokenizer, lines: Sequence[str]) -> None:
    """Write the files model2vec reads, and the weights of words beside them."""
    from safetensors.numpy import save_file

    folder.mkdir(parents=True, exist_ok=True)
    save_file({"embeddings": rows}, folder / "model.safetensors")
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    config = {
        "model_type": "model2vec",
        "architectures": ["StaticModel"],
        "normalize": True,
        "max_length": 512,
        "embedding_dtype": "int8",
    }
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    save_file(word_weights(lines), folder / "lexicon.safetensors")


def word_weights(lines: Sequence[str]) -> dict[str, np.ndarray]:
    """Return sorted keys and the inverse document frequency of every term of two lines or more."""
    from chalie.discovery.lexicon import term_key
    from chalie.discovery.words import terms

    counts: collections.Counter[str] = collections.Counter()
    for line in lines:
        counts.update(set(terms(line)))
    weights: dict[int, float] = {}
    for term, count in counts.items():
        if count >= 2 and not term.isdigit():
            weights[term_key(term)] = math.log(len(lines) / count)
    keys = sorted(weights)
    return {
        "keys": np.array(keys, np.uint32),
        "weights": np.array([weights[key] for key in keys], np.float16),
    }


if __name__ == "__main__":
    main()
