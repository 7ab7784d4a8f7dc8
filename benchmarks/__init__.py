"""What calls, imports, generation, commands and searches cost: ``python -m benchmarks --list`` names the parts.

``parts/`` measures and returns data (``results.py``). Text, plots, goals and the comparison with the committed run are made
from that data.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

REPOSITORY: Final = Path(__file__).parents[1]

# The sample project `acme`, whose tools are called, and `tests.projects`, which makes projects of any size.
sys.path[:0] = [place for place in (str(REPOSITORY), str(REPOSITORY / "tests" / "downstream")) if place not in sys.path]
