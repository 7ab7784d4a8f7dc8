"""The goals for speed: each names a row of a run, the figure that counts, and its bound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from benchmarks.results import Row, Run

Figure = Literal["ratio", "value"]


@dataclass(frozen=True)
class Goal:
    """``row`` is the key of a row: part, table, name. ``at_least`` turns the bound around: for rates."""

    what: str
    row: str
    figure: Figure
    unit: str
    bound: float
    before: str
    at_least: bool = False

    @property
    def part(self) -> str:
        return self.row.partition("/")[0]

    def figure_of(self, row: Row) -> float | None:
        return row.ratio if self.figure == "ratio" else row.value

    def is_met(self, figure: float) -> bool:
        """Judged as it is shown, with two decimals."""
        return round(figure, 2) >= self.bound if self.at_least else round(figure, 2) <= self.bound

    @property
    def shown_bound(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.bound:g}{self.unit}"

    def shown(self, figure: float) -> str:
        return f"{figure:.2f}{self.unit}"


@dataclass(frozen=True)
class GoalReport:
    """A goal beside what a run found; the figure is None if the run did not measure the row."""

    goal: Goal
    figure: float | None

    @property
    def verdict(self) -> str:
        if self.figure is None:
            return "not measured"
        return "met" if self.goal.is_met(self.figure) else "missed"

    def as_json(self) -> dict[str, object]:
        figure = None if self.figure is None else round(self.figure, 3)
        return {"row": self.goal.row, "goal": self.goal.shown_bound, "figure": figure, "verdict": self.verdict}


RAW: Final = "execute_raw(name, text).text()"
FIRST: Final = "imports/import/import toolkit and the first call of a built-in tool"

GOALS: Final = (
    Goal(f"`{RAW}` against the limit", f"calls/text/{RAW}", "ratio", "x", 1.5, "5.3"),
    Goal("the same, async", "calls/text/await execute_raw(name, text), .text()", "ratio", "x", 1.7, "5.6"),
    Goal("`call(ToolCall)` against the limit", "calls/text/call(ToolCall).value", "ratio", "x", 2.0, "9.9"),
    Goal("`invoke(name, dict)` against the limit", "calls/values/invoke(name, dict)", "ratio", "x", 1.2, "2.9"),
    Goal("`invoke(name, model)`", "calls/values/invoke(name, model)", "ratio", "x", 1.2, "3.1"),
    Goal("`tools.x()`", "calls/values/tools.add(a=, b=)", "ratio", "x", 1.4, "3.3"),
    Goal("an audit log, in addition", "calls/text/an audit log, in addition", "value", "x", 1.0, "-"),
    Goal(
        "ten rules for every tool, in addition",
        "calls/text/ten rules for every tool, in addition",
        "value",
        "x",
        0.2,
        "-",
    ),
    Goal(
        "ten rules on what the tool touches, in addition",
        "calls/text/ten rules on what the tool touches, in addition",
        "value",
        "x",
        0.2,
        "-",
    ),
    Goal("import and first built-in call, against pydantic's import", FIRST, "ratio", "x", 1.6, "5.2"),
    Goal("generating 1,000 tools, CPU time a tool", "generation/scratch/from scratch", "value", " ms", 10, "18-25"),
    Goal("… with one spec changed", "generation/again/one spec changed", "value", " s", 0.5, "2.8"),
    Goal("… with nothing changed", "generation/again/nothing changed", "value", " s", 0.15, "0.8"),
    Goal(
        "the command `true` in the full sandbox, above a plain subprocess",
        "commands/true/the full sandbox, in addition to a plain subprocess",
        "value",
        " ms",
        3,
        "5.3",
    ),
    Goal("checking a program with a warm mypy, CPU time", "programs/check/mypy, warm", "value", " ms", 300, "-"),
    Goal("starting a program", "programs/start/run_program, interpreter prepared", "value", " ms", 60, "-"),
    *(
        Goal(
            f"a call of {tool} from a program, above `invoke`",
            f"programs/calls/{tool}, from a program, in addition",
            "value",
            " us",
            150,
            "-",
        )
        for tool in ("done", "read_file")
    ),
    Goal(
        "signatures of the built-in tools, against their JSON definitions",
        "prompts/built in/signatures without the classes of outputs",
        "ratio",
        "x",
        0.25,
        "-",
    ),
    *(
        Goal(f"200 turns of a run against twice 100, {provider}", f"growth/turns/{provider}", "ratio", "x", 1.3, before)
        for provider, before in {
            "OpenAI chat": "1.82",
            "OpenAI Responses": "1.87",
            "Anthropic": "1.97",
            "Gemini": "1.87",
            "Ollama": "1.93",
        }.items()
    ),
    Goal("glob against a bare walk with scandir", "search/glob/glob", "ratio", "x", 1.3, "2.7"),
    Goal("HTML to Markdown", "pages/page/Markdown", "value", " MB/s", 3, "0.66", at_least=True),
    *(
        Goal(f"grep against ripgrep, {kind}", f"search/grep, {kind}/toolkit.tools.grep", "ratio", "x", 1.2, "1.2-1.6")
        for kind in ("a text", "a literal first", "a literal inside", "no literal")
    ),
)


def judge(run: Run) -> list[GoalReport]:
    """Every goal, in order, with the figure of the run."""
    rows: Mapping[str, Row] = dict(run.rows())
    return [GoalReport(goal, goal.figure_of(rows[goal.row]) if goal.row in rows else None) for goal in GOALS]
