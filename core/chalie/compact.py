"""Compact JSON text, made by an encoder that is set up once.

`json.JSONEncoder.encode` sets its encoder in C up anew each time, which costs twice what a small value does;
every call writes two.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from json import encoder
from typing import Any

__all__ = ["compact"]


def _refused(value: Any) -> Any:
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


def compact(*, default: Callable[[Any], Any] = _refused, allow_nan: bool = True) -> Callable[[Any], str]:
    """Return what writes a value as JSON without blanks, in the characters it has.

    It raises what `json.dumps` does, but for a cycle `RecursionError`.

    Args:
        default: gives what to write in place of an object that JSON does not know.
        allow_nan: whether NaN and infinities are written; else they raise `ValueError`.
    """
    make = getattr(encoder, "c_make_encoder", None)
    if make is None:  # a Python without the encoder in C
        return json.JSONEncoder(
            ensure_ascii=False,
            check_circular=False,
            allow_nan=allow_nan,
            separators=(",", ":"),
            default=default,
        ).encode
    write = make(None, default, encoder.encode_basestring, None, ":", ",", False, False, allow_nan)
    return lambda value: "".join(write(value, 0))
