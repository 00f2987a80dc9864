"""What a model sees of Python objects in a body: their text, and never where they lie in memory."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from chalie.envelope import body_text


class Odd:
    """Has no text of its own."""


@dataclass
class Holder:
    """Has a text of its own, which shows an address all the same."""

    inside: object


def a_function() -> None:
    """Stand in a body."""


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (Odd(), '"<Odd>"'),
        ([Odd(), 1], '["<Odd>",1]'),
        ({"a": {"b": Odd()}}, '{"a":{"b":"<Odd>"}}'),
        ({Odd(): 1}, '{"<Odd>":1}'),
        ([Holder(Odd())], '["<Holder>"]'),
        ([a_function], '["<function>"]'),
        ([date(2026, 1, 31), Decimal("1.50"), Path("/a/b")], '["2026-01-31","1.50","/a/b"]'),
    ],
)
def test_an_object_is_its_text_or_its_class_and_never_its_address(body: Any, text: str) -> None:
    assert body_text(body) == text
