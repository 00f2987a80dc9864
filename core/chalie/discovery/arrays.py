"""Write named arrays into one file that is mapped, not read: the safetensors layout."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

__all__ = ["save"]

_NAMES = {"i1": "I8", "u1": "U8", "f2": "F16", "f4": "F32", "i4": "I32", "u4": "U32", "i8": "I64"}


def save(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write `arrays` to `path`, each aligned to 64 bytes; `model_files.tensors` maps them back."""
    import numpy as np

    header: dict[str, object] = {}
    offset = 0
    for name, array in arrays.items():
        header[name] = {
            "dtype": _NAMES[array.dtype.str[1:]],
            "shape": list(array.shape),
            "data_offsets": [offset, offset + array.nbytes],
        }
        offset += -(-array.nbytes // 64) * 64
    text = json.dumps(header).encode()
    text += b" " * (-(8 + len(text)) % 64)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for array in arrays.values():
            file.write(np.ascontiguousarray(array).tobytes())
            file.write(bytes(-array.nbytes % 64))
