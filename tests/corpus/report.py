"""``make corpus``: the loader and generator over every shared spec, as a table."""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path

from tests.corpus.specs import FILES, outcome, rows


def main() -> int:
    corpus = Path(os.environ.get("TOOLKIT_CORPUS") or Path(__file__).parents[3] / "shared" / "corpus")
    if not corpus.is_dir():
        print("the shared corpus is not on this machine; set TOOLKIT_CORPUS to its folder", file=sys.stderr)  # noqa: T201
        return 2
    lines = [f"{'file':<20} {'specs':>6} {'made':>6} {'refused':>8}"]
    reasons: Counter[str] = Counter()
    for file in FILES:
        found = [outcome(row) for row in rows(corpus, file)]
        made = sum(item.text is not None for item in found)
        reasons.update(f"{item.refused_by}: {item.reason}" for item in found if item.text is None)
        lines.append(f"{file:<20} {len(found):>6} {made:>6} {len(found) - made:>8}")
    lines += ["", "why specs are refused (the first reason of each):"]
    lines += [f"{count:>6}  {reason}" for reason, count in reasons.most_common()]
    print("\n".join(lines))  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
