"""Read the files of an embedding model's folder, mapped into memory and checked before use."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..catalogue.descriptor import EntryPoint
from ..errors import ConfigError

if TYPE_CHECKING:
    import numpy as np

__all__ = ["fingerprint", "json_file", "model_file", "model_folder", "tensors"]

GROUP = "chalie.models"
PREFERRED = "chalie-model-static"
TABLE, SETTINGS, TOKENIZER, CONFIG = "model.safetensors", "chalie.json", "tokenizer.json", "config.json"
LEXICON, CHAT = "lexicon.safetensors", "chat.txt"

_HEADER_LIMIT = 4 * 1024 * 1024
_JSON_LIMIT = 64 * 1024 * 1024
_SAMPLES, _SAMPLE_BYTES = 16, 4_096
_TYPES = {
    "I8": "i1",
    "U8": "u1",
    "F16": "<f2",
    "F32": "<f4",
    "F64": "<f8",
    "I32": "<i4",
    "U32": "<u4",
    "I64": "<i8",
}
_REINSTALL = 'reinstall the model package, or name another folder: config.toml, [discovery] model = "/path"'


def model_folder(option: str | None, entry_points: Sequence[EntryPoint]) -> Path:
    """Return the folder of the model to use. Nothing is imported and nothing is ever downloaded.

    Args:
        option: a folder, or the name or distribution of an installed model; None for the default model.
        entry_points: the entry points of the group `chalie.models`; a value is the import package that holds
            the folder, either itself or as its sub-folder `model`.

    Raises:
        ConfigError: there is no such folder or model, or it is not a model's folder.
    """
    installed = sorted(
        (point for point in entry_points if point.group == GROUP), key=lambda point: point.dist
    )
    if option is not None:
        for point in installed:
            if option in (point.name, point.dist):
                return _package_folder(point)
        folder = Path(option).expanduser()
        if not folder.is_dir():
            known = ", ".join(point.name for point in installed) or "none"
            raise ConfigError(
                f"the model {option!r} is neither a folder nor an installed model (installed: {known})",
                hint="models are never downloaded: give the path of a model2vec folder",
            )
        return _checked(folder.resolve())
    if not installed:
        raise ConfigError("no embedding model is installed", hint=f"pip install {PREFERRED}")
    return _package_folder(next((point for point in installed if point.dist == PREFERRED), installed[0]))


def _package_folder(point: EntryPoint) -> Path:
    top, *rest = point.value.split(":")[0].split(".")
    try:
        # a part such as `/etc` would lead out of the package
        spec = importlib.util.find_spec(top) if all(map(str.isidentifier, (top, *rest))) else None
    except (ImportError, ValueError):
        spec = None
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    for place in places:
        package = Path(place, *rest).resolve()
        for folder in (package, package / "model"):
            if (folder / CONFIG).is_file():
                return _checked(folder)
    raise ConfigError(
        f"{point.dist}: the entry point {point.name} = {point.value} leads to no model folder",
        hint=_REINSTALL,
    )


def _checked(folder: Path) -> Path:
    for name in (TABLE, TOKENIZER, CONFIG):
        model_file(folder, name)
    return folder


def model_file(folder: Path, name: str) -> Path:
    """Return a file of a model folder.

    Raises:
        ConfigError: it is missing, not a plain file, or a link that leaves the folder.
    """
    path = folder / name
    real = path.resolve()
    if not real.is_file():
        raise ConfigError(f"the model folder {folder} has no file {name}", hint=_REINSTALL)
    if real.parent != folder.resolve():
        raise ConfigError(f"{path} is a link that leaves the model folder, to {real}", hint=_REINSTALL)
    return real


def json_file(folder: Path, name: str) -> dict[str, Any]:
    """Return the JSON object in a file of a model folder; raises `ConfigError` where there is none."""
    path = model_file(folder, name)
    if path.stat().st_size > _JSON_LIMIT:
        raise ConfigError(f"{path} is over {_JSON_LIMIT} bytes and is not read", hint=_REINSTALL)
    try:
        value = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not JSON: {error}", hint=_REINSTALL) from None
    if not isinstance(value, dict):
        raise ConfigError(f"{path} holds no JSON object", hint=_REINSTALL)
    return value


def tensors(path: Path) -> Mapping[str, np.ndarray]:
    """Return the arrays of a safetensors file, mapped read-only.

    Raises:
        ConfigError: the header is damaged, or an array lies outside the file.
    """
    import numpy as np

    size = path.stat().st_size
    with path.open("rb") as file:
        raw = file.read(8)
        length = struct.unpack("<Q", raw)[0] if len(raw) == 8 else size
        if length > min(_HEADER_LIMIT, size - 8):
            raise ConfigError(f"{path} is cut off or is not a safetensors file", hint=_REINSTALL)
        header = file.read(length)
    result: dict[str, np.ndarray] = {}
    try:
        entries = json.loads(header)
        # a plain view: every slice of a memmap object costs microseconds
        data = np.memmap(path, np.uint8, "r").view(np.ndarray)[8 + length :]
        for name, entry in entries.items():
            if name == "__metadata__" or entry["dtype"] not in _TYPES:
                continue
            dtype, shape = np.dtype(_TYPES[entry["dtype"]]), tuple(int(side) for side in entry["shape"])
            start, end = (int(offset) for offset in entry["data_offsets"])
            rows = 1
            for side in shape:
                rows *= side
            if (
                not 0 <= start <= end <= len(data)
                or end - start != rows * dtype.itemsize
                or min(shape, default=0) < 0
            ):
                raise ConfigError(f"{path}: the array {name!r} lies outside the file", hint=_REINSTALL)
            result[name] = data[start:end].view(dtype).reshape(shape)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ConfigError(f"{path} has a damaged header: {error}", hint=_REINSTALL) from None
    return result


def fingerprint(folder: Path) -> str:
    """Return 16 hex digits that change with the model: the small files whole, the table by size and samples.

    Takes about a millisecond and imports nothing heavy, so that it can be asked at every start.

    Raises:
        ConfigError: a file of the model is missing.
    """
    digest = hashlib.sha256()
    for name in (CONFIG, TOKENIZER, SETTINGS, LEXICON, CHAT):
        if name in (CONFIG, TOKENIZER) or (folder / name).exists():
            content = model_file(folder, name).read_bytes()
            digest.update(f"{name}:{len(content)}:".encode())
            digest.update(content)
    table = model_file(folder, TABLE)
    size = table.stat().st_size
    digest.update(f"{TABLE}:{size}:".encode())
    with table.open("rb") as file:
        for sample in range(_SAMPLES):
            file.seek(max(0, (size - _SAMPLE_BYTES) * sample // (_SAMPLES - 1)))
            digest.update(file.read(_SAMPLE_BYTES))
    return digest.hexdigest()[:16]
