"""Fit a table of token vectors whose mean comes as near the teacher's sentence vectors as a mean can."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import teacher
import torch
from tokenizers import Tokenizer


def vocabulary() -> tuple[Tokenizer, list[int]]:
    """Return the teacher's tokenizer without special and unused tokens, and its id of every kept one."""
    specification = json.loads((teacher.folder() / "tokenizer.json").read_text("utf-8"))
    old: dict[str, int] = specification["model"]["vocab"]
    special = {token["content"] for token in specification["added_tokens"]} - {"[UNK]"}
    kept = [token for token in old if token not in special and not token.startswith("[unused")]
    kept.sort(key=lambda token: (token != "[UNK]", old[token]))
    specification["model"]["vocab"] = {token: number for number, token in enumerate(kept)}
    specification.update(added_tokens=[], post_processor=None, padding=None, truncation=None)
    return Tokenizer.from_str(json.dumps(specification)), [old[token] for token in kept]


def token_lists(tokenizer: Tokenizer, lines: Sequence[str]) -> list[np.ndarray]:
    """Return the token ids of every line, at most as many as the teacher reads."""
    unknown = tokenizer.token_to_id("[UNK]")
    result = []
    for start in range(0, len(lines), 10_000):
        for encoded in tokenizer.encode_batch(list(lines[start : start + 10_000]), add_special_tokens=False):
            ids = [token for token in encoded.ids[: teacher.MAX_TOKENS - 2] if token != unknown]
            result.append(np.array(ids, np.int32))
    return result


def start(teacher_ids: list[int], lists: Sequence[np.ndarray], mean: np.ndarray, cache: Path) -> np.ndarray:
    """Return the table to start from: the teacher's vector of each token, less where it is frequent."""
    kept = cache / f"tokens-{len(teacher_ids)}.npy"
    if not kept.exists():
        np.save(kept, _alone(teacher_ids))
    vectors = np.load(kept).astype(np.float32) - mean
    counts = np.bincount(np.concatenate(lists), minlength=len(teacher_ids)) + 1.0
    frequency = counts / counts.sum()
    # smooth inverse frequency (Arora et al. 2017), with the constant model2vec uses
    return vectors * (1e-4 / (1e-4 + frequency))[:, None].astype(np.float32)


def _alone(teacher_ids: list[int]) -> np.ndarray:
    from transformers import AutoModel

    model = AutoModel.from_pretrained(teacher.folder()).eval()
    result = np.zeros((len(teacher_ids), model.config.hidden_size), np.float32)
    with torch.inference_mode():
        for begin in range(0, len(teacher_ids), 1024):
            ids = torch.tensor(teacher_ids[begin : begin + 1024])[:, None]
            framed = torch.cat([torch.full_like(ids, 101), ids, torch.full_like(ids, 102)], dim=1)
            hidden = model(input_ids=framed, attention_mask=torch.ones_like(framed)).last_hidden_state
            result[begin : begin + 1024] = torch.nn.functional.normalize(hidden.mean(1), dim=1).numpy()
    return result


def fit(
    table: np.ndarray,
    lists: Sequence[np.ndarray],
    targets: np.ndarray,
    *,
    seed: int,
    epochs: int,
    rate: float = 2e-3,
    batch: int = 512,
    dropout: float = 0.1,
) -> tuple[np.ndarray, float]:
    """Regress means of token vectors on unit targets; return the table and the held-out cosine."""
    torch.manual_seed(seed)
    random = np.random.default_rng(seed)
    weight = torch.nn.Parameter(torch.from_numpy(table.copy()))
    order = random.permutation([row for row in range(len(lists)) if len(lists[row]) > 0])
    held, order = order[:4_000], order[4_000:]
    steps = epochs * (len(order) // batch)
    optimiser = torch.optim.Adam([weight], lr=rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, total_steps=steps)
    goal = torch.from_numpy(targets.astype(np.float32))
    for epoch in range(epochs):
        random.shuffle(order)
        total = 0.0
        for begin in range(0, len(order) - batch + 1, batch):
            rows = order[begin : begin + batch]
            loss = (
                1.0 - _cosine(weight, [_dropped(lists[row], dropout, random) for row in rows], goal[rows])
            ).mean()
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
            schedule.step()
            total += float(loss.detach())
        with torch.no_grad():
            score = float(_cosine(weight, [lists[row] for row in held], goal[held]).mean())
        print(
            f"epoch {epoch + 1}: loss {total / (len(order) // batch):.4f}, held-out cosine {score:.4f}",
            flush=True,
        )
    return weight.detach().numpy(), score


def _dropped(ids: np.ndarray, share: float, random: np.random.Generator) -> np.ndarray:
    if len(ids) < 3 or not share:
        return ids
    kept = ids[random.random(len(ids)) >= share]
    return kept if len(kept) else ids


def _cosine(weight: torch.Tensor, lists: Sequence[np.ndarray], goal: torch.Tensor) -> torch.Tensor:
    lengths = np.array([len(ids) for ids in lists])
    offsets = torch.from_numpy(np.concatenate([[0], np.cumsum(lengths)[:-1]]))
    ids = torch.from_numpy(np.concatenate(lists).astype(np.int64))
    means = torch.nn.functional.embedding_bag(ids, weight, offsets, mode="mean")
    return torch.nn.functional.cosine_similarity(means, goal, dim=1)


def quantised(table: np.ndarray) -> np.ndarray:
    """Return the table as int8 with one scale for all rows; the scale does not matter to a cosine."""
    # the few values beyond 6 standard deviations are cut, so that the others keep more steps
    limit = min(float(np.abs(table).max()), 6.0 * float(table.std()))
    return np.clip(np.round(table * (127.0 / limit)), -127, 127).astype(np.int8)
