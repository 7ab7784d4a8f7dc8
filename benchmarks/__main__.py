"""``make bench``: what a call, an import and a generation cost. Look at the ratios; times are this machine's."""

from __future__ import annotations

from benchmarks import calls, commands, generation, imports

for part in (calls, imports, generation, commands):
    print(part.report(), end="\n\n")  # noqa: T201
