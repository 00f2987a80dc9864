"""Turn text into vectors with a static table: a mean of token vectors beside a lexical half."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import frozen

from ..errors import ConfigError
from .lexicon import Lexicon
from .model_files import (
    CHAT,
    LEXICON,
    SETTINGS,
    TABLE,
    TOKENIZER,
    fingerprint,
    json_file,
    model_file,
    model_folder,
    tensors,
)
from .spelling import Spelling
from .wordpiece import WordPiece
from .words import foreign_share, plain, terms

if TYPE_CHECKING:
    import numpy as np

__all__ = ["Embedder", "Refusal", "fingerprint", "model_folder"]

#: what a model2vec folder without `chalie.json` gets; the ceiling suits normalised English tables.
DEFAULTS: Mapping[str, Any] = {
    "format": 1,
    "ceiling": 0.65,
    "refusal": {
        "chat": 0.0,
        "evidence": 0.0,
        "content": 0.0,
        "enough": 0.0,
        "crowd": 0.0,
        "farthest": 2.0,
    },
    "lexical": {"columns": 128, "seed": 1, "weight": 0.15},
    "scripts": [],
}
_FORMAT = 1
_LATIN = ["latin"]
_MAX_TOKENS = 512
_FOREIGN = 0.5
#: fewer words may all be names or misspelt; they say nothing of the language.
_JUDGED = 3
#: squared length below which a vector is one of zeros.
_NOTHING = 1e-24


@frozen
class Refusal:
    """How the distance an entry may lie from its answer depends on the entry.

    Attributes:
        chat: taken off per unit of the entry's mean cosine with the nearest sentences of small talk.
        evidence: granted per unit of exact lexical evidence.
        content: taken off per e-fold by which the weight of the entry's words falls short of `enough`.
        enough: the weight of some six ordinary content words; longer entries gain nothing more.
        crowd: taken off per e-fold of items beyond a hundred, granted below: the more there are, the nearer
            lies the nearest by chance.
        farthest: what lies farther is no answer to anything.
    """

    chat: float
    evidence: float
    content: float
    enough: float
    crowd: float
    farthest: float


class Embedder:
    """A model folder in use. Reading is thread-safe; the table stays on disk and is mapped.

    Attributes:
        folder: where it was read from.
        dims: columns of a vector: the dense half, then the lexical half.
        dense_dims: columns of the dense half, which equals what model2vec computes from the same folder.
        ceiling: the cosine distance above which a nearest neighbour is no answer, as tuned for this model.
        refusal: what else decides whether an entry is answered at all.
        chat: sentences of small talk; empty where the model brings none.
        lexicon: weights of terms in general text.
        spelling: corrects entries; None where the model's words are unknown, or of more than one language.
        fingerprint: what tells this model from any other (see `fingerprint`).
    """

    def __init__(
        self,
        folder: Path,
        table: np.ndarray,
        ids: Callable[[str], list[int]],
        *,
        spelling: Spelling | None,
        scale: np.ndarray | None,
        mapping: np.ndarray | None,
        settings: Mapping[str, Any],
        lexicon: Lexicon,
        chat: tuple[str, ...],
    ) -> None:
        self.folder = folder
        self.dense_dims = int(table.shape[1])
        self.dims = self.dense_dims + lexicon.columns
        self.ceiling = float(settings["ceiling"])
        self.refusal = Refusal(**{key: float(value) for key, value in settings["refusal"].items()})
        self.chat = chat
        self.lexicon, self.spelling = lexicon, spelling
        self.fingerprint = fingerprint(folder)
        self._table, self._ids, self._scale, self._mapping = table, ids, scale, mapping
        self._latin_only = settings["scripts"] == _LATIN
        share = float(settings["lexical"]["weight"]) if lexicon.columns else 0.0
        self._dense_share, self._lexical_share = math.sqrt(1.0 - share), math.sqrt(share)

    @classmethod
    def open(cls, folder: Path) -> Embedder:
        """Open a model2vec folder, with or without Chalie's own `chalie.json`, lexicon and chat list.

        Raises:
            ConfigError: a file is missing or damaged, or the files do not fit each other.
        """
        settings = _settings(folder)
        arrays = tensors(model_file(folder, TABLE))
        table = arrays.get("embeddings", arrays.get("embedding.weight"))
        if table is None or table.ndim != 2 or not table.shape[0] or not table.shape[1]:
            raise ConfigError(f"{folder / TABLE} holds no table of token vectors")
        ids, highest, vocabulary = _tokenizer(folder)
        mapping, scale = arrays.get("mapping"), arrays.get("weights")
        rows = len(table) if mapping is None else len(mapping)
        if highest >= rows or (scale is not None and len(scale) < rows):
            raise ConfigError(f"{folder}: the tokenizer knows {highest + 1} tokens, the table {rows}")
        if (
            mapping is not None
            and len(mapping)
            and not 0 <= int(mapping.min()) <= int(mapping.max()) < len(table)
        ):
            raise ConfigError(f"{folder / TABLE}: the token mapping points outside the table")
        lexical = settings["lexical"]
        known = tensors(model_file(folder, LEXICON)) if (folder / LEXICON).exists() else {}
        try:
            lexicon = Lexicon.made_of(known, int(lexical["columns"]), int(lexical["seed"]))
        except ValueError as error:
            raise ConfigError(f"{folder / LEXICON}: {error}") from None
        chat = model_file(folder, CHAT).read_text("utf-8").splitlines() if (folder / CHAT).exists() else []
        return cls(
            folder,
            table,
            ids,
            spelling=None
            if vocabulary is None or settings["scripts"] != _LATIN
            else Spelling(vocabulary, lexicon),
            scale=scale,
            mapping=mapping,
            settings=settings,
            lexicon=lexicon,
            chat=tuple(line.strip() for line in chat if line.strip() and not line.startswith("#")),
        )

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Return one unit row per text, float32 (n, dims); zeros where no word is known."""
        import numpy as np

        result = np.zeros((len(texts), self.dims), np.float32)
        for row, text in zip(result, map(plain, texts), strict=True):
            dense, lexical = self._dense(text), self.lexicon.vector(text)
            of_dense = self._dense_share if dense is not None else 0.0
            of_lexical = self._lexical_share if lexical is not None else 0.0
            # the halves are unit vectors: so is both together, and one alone after this
            length = math.hypot(of_dense, of_lexical)
            if dense is not None:
                np.multiply(dense, of_dense / length, out=row[: self.dense_dims])
            if lexical is not None:
                np.multiply(lexical, of_lexical / length, out=row[self.dense_dims :])
        return result

    def dense(self, texts: Sequence[str]) -> np.ndarray:
        """Return the dense half alone, float32 unit rows (n, dense_dims).

        A text in a script the model was not trained on has no dense half: what its vocabulary holds of such
        letters says nothing.
        """
        import numpy as np

        result = np.zeros((len(texts), self.dense_dims), np.float32)
        for row, text in zip(result, texts, strict=True):
            found = self._dense(text)
            if found is not None:
                row[:] = found
        return result

    def _dense(self, text: str) -> np.ndarray | None:
        """Return the unit vector of one text's dense half; None where no word is known."""
        import numpy as np

        if self._latin_only and not text.isascii() and foreign_share(text) > _FOREIGN:
            return None
        ids = self._ids(text)[:_MAX_TOKENS]
        if not ids:
            return None
        rows = self._table.take(ids if self._mapping is None else self._mapping[ids], axis=0)
        if self._scale is not None:
            rows = rows.astype(np.float32) * self._scale[ids, None]
        # a mean and a sum point the same way
        total: np.ndarray = np.add.reduce(rows, axis=0, dtype=np.float32)
        square = float(total @ total)
        if not math.isfinite(square):
            raise ConfigError(f"{self.folder / TABLE} holds values that are not numbers; reinstall the model")
        if square <= _NOTHING:
            return None
        total *= 1.0 / math.sqrt(square)
        return total

    def reads(self, text: str) -> bool:
        """Whether the model can know the words of `text`: its script, and half of three words or more."""
        if self._latin_only and foreign_share(text) > _FOREIGN:
            return False
        found = [term for term in terms(text) if not term.isdigit()]
        if len(found) < _JUDGED or not self._latin_only:
            return True
        return sum(map(self.lexicon.knows, found)) * 2 >= len(found)


def _settings(folder: Path) -> dict[str, Any]:
    if not (folder / SETTINGS).exists():
        return dict(DEFAULTS)
    found = json_file(folder, SETTINGS)
    if found.get("format") != _FORMAT:
        raise ConfigError(
            f"{folder / SETTINGS} is of format {found.get('format')!r}; this Chalie reads {_FORMAT}",
            hint="upgrade chalie, or install the model version that goes with it",
        )
    settings = {**DEFAULTS, **found}
    for part in ("lexical", "refusal"):
        settings[part] = {**DEFAULTS[part], **(found.get(part) or {})}
    try:
        share, ceiling = float(settings["lexical"]["weight"]), float(settings["ceiling"])
        Refusal(**{key: float(value) for key, value in settings["refusal"].items()})
        int(settings["lexical"]["columns"]), int(settings["lexical"]["seed"])
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{folder / SETTINGS}: {error}") from None
    if not 0.0 <= share < 1.0 or not 0.0 <= ceiling <= 2.0:
        raise ConfigError(f"{folder / SETTINGS}: lexical.weight lies in [0, 1) and ceiling in [0, 2]")
    return settings


def _tokenizer(folder: Path) -> tuple[Callable[[str], list[int]], int, Mapping[str, int] | None]:
    specification = json_file(folder, TOKENIZER)
    try:
        if WordPiece.reads(specification):
            tokenizer = WordPiece(specification)
            return tokenizer.ids, max(tokenizer.vocabulary.values()), tokenizer.vocabulary
        return *_foreign_tokenizer(folder), None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConfigError(f"{folder / TOKENIZER} is damaged: {error!r}") from None


def _foreign_tokenizer(folder: Path) -> tuple[Callable[[str], list[int]], int]:
    # any other kind of tokenizer goes through the library it was written for
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(model_file(folder, TOKENIZER)))
    except Exception as error:  # the library raises bare Exception
        raise ConfigError(f"{folder / TOKENIZER} cannot be read: {error}") from None
    tokenizer.no_padding()
    tokenizer.no_truncation()
    unknown = tokenizer.token_to_id(getattr(tokenizer.model, "unk_token", None) or "[UNK]")

    def ids(text: str) -> list[int]:
        encoded: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
        return [token for token in encoded if token != unknown]

    return ids, max(tokenizer.get_vocab().values())
