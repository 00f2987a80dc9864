"""The policy as a host loads it, from its source."""

from __future__ import annotations

import sys
from pathlib import Path

# The policy is tested from its source; it is installed only where a test is about installing.
sys.path.append(str(Path(__file__).parents[1] / "src"))
