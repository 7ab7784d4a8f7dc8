"""``make bench``: what calls, imports, generation, commands and searches cost.

Look at the ratios; times are this machine's.
"""

from __future__ import annotations

from benchmarks import calls, commands, generation, imports, pages, search

for part in (calls, imports, generation, commands, search, pages):
    print(part.report(), end="\n\n")  # noqa: T201
