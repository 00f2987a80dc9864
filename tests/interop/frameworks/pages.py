"""The code of a page of the documentation, run with a scripted model in place of a paid one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[3] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run(page: str, replaced: Mapping[str, str], **scope: Any) -> dict[str, Any]:
    """Run every Python block of a page, in order and in one scope; return the scope.

    Args:
        replaced: code of the page -> what the test has in its place; each must be there.
        scope: names that the replaced code uses.
    """
    blocks: list[str] = BLOCK.findall((DOCS / page).read_text(encoding="utf-8"))
    assert blocks, f"{page} has no code"
    code = "\n".join(blocks)
    for before, after in replaced.items():
        assert before in code, f"{page} does not say {before}"
        code = code.replace(before, after)
    names = dict(scope)
    exec(compile(code, page, "exec"), names)
    return names
