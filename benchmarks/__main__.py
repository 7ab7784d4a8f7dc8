"""``make bench``: the cost of calls, dumps, imports, generation, commands, searches and pages, and of hostile inputs.

Compare the ratios; absolute times depend on the machine.
"""

from __future__ import annotations

from benchmarks import adversarial, calls, commands, dumps, generation, imports, pages, search

for part in (calls, dumps, imports, generation, commands, search, pages, adversarial):
    print(part.report(), end="\n\n")  # noqa: T201
