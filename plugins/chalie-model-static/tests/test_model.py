"""The model folder against what its card says: it loads with model2vec, fits together, and stays small."""

from __future__ import annotations

import json
from pathlib import Path

import chalie_model_static
import numpy as np
from model2vec import StaticModel

FOLDER = Path(chalie_model_static.__file__).parent / "model"


def test_the_folder_loads_with_model2vec_and_tells_meanings_apart() -> None:
    model = StaticModel.from_pretrained(FOLDER)
    assert model.embedding.dtype == np.int8 and model.dim == 384
    rain, umbrella, song = model.encode(["will it rain tomorrow", "do I need an umbrella", "play some music"])
    assert rain @ umbrella > rain @ song


def test_the_files_are_those_of_the_card_and_fit_a_small_wheel() -> None:
    names = {path.name for path in FOLDER.iterdir()}
    assert names == {
        "model.safetensors",
        "tokenizer.json",
        "config.json",
        "lexicon.safetensors",
        "chat.txt",
        "chalie.json",
    }
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 16_000_000


def test_small_talk_is_plain_lines_each_once() -> None:
    lines = [
        line for line in (FOLDER / "chat.txt").read_text("utf-8").splitlines() if not line.startswith("#")
    ]
    assert len(lines) > 200 and len(set(lines)) == len(lines) and all(line == line.strip() for line in lines)


def test_the_settings_are_the_format_the_host_reads() -> None:
    settings = json.loads((FOLDER / "chalie.json").read_text("utf-8"))
    assert settings["format"] == 1 and settings["scripts"] == ["latin"]
    assert 0 < settings["ceiling"] < 2 and 0 <= settings["lexical"]["weight"] < 1
