"""Secret arguments are not on the trail, in whatever form a failing tool quotes them."""

from __future__ import annotations

import base64
import html
import json
import urllib.parse
from collections.abc import Callable

import pytest
from chalie.gate.hiding import hidden, leaves
from chalie.schema import MASK
from hypothesis import given
from hypothesis import strategies as st

FORMS: list[Callable[[str], str]] = [
    str,
    repr,
    json.dumps,
    lambda secret: json.dumps(secret, ensure_ascii=False),
    lambda secret: repr(secret.encode()),
    html.escape,
    urllib.parse.quote,
    urllib.parse.quote_plus,
    lambda secret: urllib.parse.quote(secret, safe=""),
    lambda secret: urllib.parse.quote(secret, safe="").lower(),
    lambda secret: base64.b64encode(secret.encode()).decode(),
    lambda secret: base64.b64encode(f"user:{secret}".encode()).decode(),
    lambda secret: base64.urlsafe_b64encode(f"me:{secret}".encode()).decode(),
    lambda secret: base64.b64encode(f"x{secret} and more".encode()).decode(),
    lambda secret: secret.encode().hex(),
    lambda secret: secret.upper(),
    lambda secret: secret[:9],
    lambda secret: secret[-9:],
    lambda secret: " ".join(secret),
]
SECRETS = [
    "back\\slash-and'quote\"s",
    "hünter-QuXzJk-ß",
    "pass word/QuXzJk?&=<b>",
    "QuXzJk-line-1\nline-2-QuXzJk\n",
    "-----BEGIN KEY-----\nMIIEvgIBADANBgkqhkiG\n-----END KEY-----",
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("secret", SECRETS)
def test_no_form_of_a_secret_is_kept(secret: str, form: Callable[[str], str]) -> None:
    told = hidden(f"ValueError: cannot use {form(secret)} here", [secret])
    assert told.startswith("ValueError: ")
    bare = "".join(filter(str.isalnum, told)).casefold()
    for whole in (secret, base64.b64encode(secret.encode()).decode(), secret.encode().hex()):
        code = "".join(filter(str.isalnum, whole)).casefold()
        assert not [code[at : at + 6] for at in range(len(code) - 5) if code[at : at + 6] in bare]


def test_each_longer_line_of_a_secret_is_masked_and_the_rest_of_the_text_kept() -> None:
    told = hidden("ValueError: bad token Qu1etL1neOne at 3", ["Qu1etL1neOne\nZw2xyv"])
    assert told == f"ValueError: bad token {MASK} at 3"


def test_a_secret_inside_of_an_encoded_text_is_masked_and_the_rest_kept() -> None:
    for code in (
        base64.b64encode(b"QuXzJkWw"),
        base64.b64encode(b"user:QuXzJkWw"),
        b"QuXzJkWw".hex().encode(),
    ):
        told = hidden(f"ValueError: Basic {code.decode()} was not taken", ["QuXzJkWw"])
        assert MASK in told and told.endswith(" was not taken") and told.startswith("ValueError: Basic ")


def test_where_masking_is_not_sure_only_type_length_and_place_are_kept() -> None:
    place = " (/site/tool.py:7 in run)"
    text = f"ValueError: starts with hunter{place}"
    told = hidden(text, ["hunter2-hunter2"])
    note = f"({len(text)} characters that may show a secret argument were not kept)"
    assert told == f"ValueError: {note}{place}"
    assert "7" not in hidden("the pin is 7", ["7"]).replace("12", "")
    assert hidden("hunter2: no", ["hunter2-secret"]).startswith("(11 characters")
    assert "x" * 6 not in hidden("ValueError: " + "x" * 100, ["x" * 1_000_000])


def test_a_text_without_a_secret_stays_as_it_is() -> None:
    for secrets in ((), ("hunter2-hunter2",)):
        assert hidden("ValueError: no connection", secrets) == "ValueError: no connection"


def test_leaves_are_the_texts_that_a_mask_hides() -> None:
    plain = {
        "a": "open",
        "b": "shut-one",
        "c": {"d": [1, {"e": "shut-two"}]},
        "f": {"g": ["h", None, True, 12345]},
    }
    masked = {"a": "open", "b": MASK, "c": {"d": [1, {"e": MASK}]}, "f": MASK}
    assert sorted(leaves(plain, masked)) == ["12345", "h", "shut-one", "shut-two"]


@given(st.text("qxzj89", min_size=3), st.text("ab <>'%"), st.text("ab <>'%"), st.sampled_from(FORMS[:-4]))
def test_a_whole_secret_is_never_kept(
    secret: str, before: str, after: str, form: Callable[[str], str]
) -> None:
    told = hidden(before + form(secret) + after, list(leaves(secret, MASK)))
    assert secret not in told.replace("characters that may show a secret argument", "")


@given(st.text(min_size=1), st.text(), st.text())
def test_hiding_raises_nothing(secret: str, before: str, after: str) -> None:
    assert isinstance(hidden(before + secret + after, [secret]), str)
