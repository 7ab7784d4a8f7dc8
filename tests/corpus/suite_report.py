"""The JSON-Schema-Test-Suite as a table: for ``make corpus``, and as docs/json-schema.md."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.corpus.suite import DRAFTS, EXCEPTIONS, LEFT_OUT, Result, groups, judge
from toolkit.codegen.schema.keywords import ANNOTATION, ENFORCED, REFUSED, TYPED

_HEAD = """# What becomes of a JSON Schema

Made by `tests/corpus/suite_report.py`, which sends the whole JSON-Schema-Test-Suite through the generator;
`pytest tests/corpus/test_suite.py --update-snapshots` writes it anew.

A schema is read in the draft its `$schema` names, else in 2020-12. Nothing of it is dropped silently. Each word is:

"""
_BETWEEN = """
A typed word stands in the generated type wherever a type can say it. Where it cannot (a limit without a type beside it,
two branches of `oneOf` that overlap), the whole schema is judged at run time as well, by jsonschema-rs, after the types
have accepted a value; the same happens for enforced words. A reference to another document is refused: nothing is read
from elsewhere.

## The test suite

Groups of the suite by what became of them, and the cases of the generated ones that got the suite's verdict, as a value
and as text. "refused" is a group whose schema stops generation with a sentence. Most groups name no type, and words
without a type beside them are enforced; so each of them is judged a second time with the type its words speak of.

"""


def results(corpus: Path) -> list[Result]:
    return [judge(group) for group in groups(corpus)]


def lines(corpus: Path) -> list[str]:
    """The table for a terminal, a row a keyword, both drafts together."""
    found = results(corpus)
    made = [f"{'keyword':<40} {'typed':>6} {'enforced':>9} {'refused':>8} {'right':>6} {'of':>6}"]
    for file in _files(found):
        row = [result for result in found if result.group.file == file]
        right, cases = _cases(row)
        typed, enforced, refused = (_count(row, how) for how in ("typed", "enforced", "refused"))
        made.append(f"{file:<40} {typed:>6} {enforced:>9} {refused:>8} {right:>6} {cases:>6}")
    right, cases = _cases(found)
    return [*made, f"{right} of {cases} cases right; {len(EXCEPTIONS)} groups listed as exceptions with their reasons"]


def document(found: Sequence[Result]) -> str:
    """The text of docs/json-schema.md."""
    return "\n".join([*_words(), *_table(found), *_notes(found)]) + "\n"


def _words() -> list[str]:
    refused = [f"`{word}` ({sentence})" for word, sentence in sorted(REFUSED.items())]
    return [
        _HEAD + f"- **typed**, part of the generated type: {_listed(TYPED)}",
        f"- **enforced** at run time: {_listed(ENFORCED)}",
        f"- an **annotation** without effect on values: {_listed(ANNOTATION)}, `x-…` and every word that is unknown",
        f"- **refused**: {', '.join(refused)}, `x-python…` likewise",
        _BETWEEN.rstrip("\n"),
        "",
    ]


def _listed(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in sorted(words))


def _table(found: Sequence[Result]) -> list[str]:
    names = {"draft2020-12": "2020-12", "draft7": "draft-07"}
    head = " | ".join(f"{names[draft]}: typed | enforced | refused | right" for draft in DRAFTS)
    made = [f"| keyword | {head} |", "| --- " + "| --- " * 4 * len(DRAFTS) + "|"]
    for file in _files(found):
        cells = [cell for draft in DRAFTS for cell in _cells([r for r in found if _is(r, draft, file)])]
        made.append(f"| {file} | {' | '.join(cells)} |")
    totals = [cell for draft in DRAFTS for cell in _cells([r for r in found if r.group.draft == draft])]
    return [*made, f"| **all** | {' | '.join(totals)} |", ""]


def _cells(row: Sequence[Result]) -> list[str]:
    if not row:
        return ["–"] * 4
    right, cases = _cases(row)
    counts = [_count(row, how) for how in ("typed", "enforced", "refused")]
    return [*(str(count or "") for count in counts), f"{right} of {cases}"]


def _notes(found: Sequence[Result]) -> list[str]:
    made = [
        "Left out: `optional/format`; " + "; ".join(f"`{file}`, for {why}" for file, why in LEFT_OUT.items()) + ".",
        "",
    ]
    made.append("Cases that get another verdict than the suite's on purpose:")
    made.append("")
    for (file, description), why in EXCEPTIONS.items():
        wrong = sum(len(r.wrong) for r in found if (r.group.file, r.group.description) == (file, description))
        made.append(f"- {file}, “{description}”, {wrong} cases: {why}")
    return made


def _files(found: Sequence[Result]) -> list[str]:
    return sorted(
        {result.group.file for result in found}, key=lambda file: (file.startswith("optional/"), file.lower())
    )


def _is(result: Result, draft: str, file: str) -> bool:
    return (result.group.draft, result.group.file) == (draft, file)


def _count(row: Iterable[Result], how: str) -> int:
    return sum(result.how == how for result in row)


def _cases(row: Iterable[Result]) -> tuple[int, int]:
    """How many cases of the groups that were generated are right, and how many there are."""
    made = [result for result in row if result.how != "refused"]
    cases = sum(len(result.group.tests) for result in made)
    return cases - sum(len(result.wrong) for result in made), cases
