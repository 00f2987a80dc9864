"""The package keeps the contract of its kind."""

from __future__ import annotations

from chalie.testing.contract import contract

test_contract = contract("chalie-skill-pack-a-suitcase")
