// What the policy says about the call that the form holds, as one types.

import { post } from "./api.js";
import { block, code, copyButton, decisionChip, el, replace, sentence } from "./dom.js";

const PAUSE_MS = 200;

export function makeVerdict(tool, form) {
  const verdict = el("div", { class: "verdict", id: "verdict", role: "status" });
  const python = el("div", { class: "python", id: "python" });
  const element = el("section", { class: "judged", "aria-labelledby": "verdict-title" }, el("h3", { id: "verdict-title" }, "Verdict"), verdict, python);
  let timer = null;
  let asking = null;

  // Later input makes earlier questions void: their requests are dropped, and so are their answers.
  function ask() {
    clearTimeout(timer);
    asking?.abort();
    timer = setTimeout(update, PAUSE_MS);
  }

  async function update() {
    const { text, problems } = form.read();
    asking = new AbortController();
    const { signal } = asking;
    try {
      const answer = await post("/api/explain", { tool: tool.name, arguments: text }, signal);
      if (!signal.aborted) show(answer, problems);
    } catch (error) {
      if (!signal.aborted) replace(verdict, el("p", { class: "problem" }, error.message));
    }
  }

  function show(answer, own) {
    const homeless = form.showProblems([...answer.problems, ...own]);
    const hasProblems = answer.problems.length + own.length > 0;
    const lines = homeless.map(({ path, message }) => el("li", {}, path.length ? `${path.join(" › ")}: ${message}` : message));
    replace(
      verdict,
      answer.verdict ? describe(answer.verdict) : null,
      !answer.verdict && hasProblems ? el("p", {}, "Not judged yet: the arguments are not complete.") : null,
      lines.length ? el("ul", { class: "problem" }, lines) : null,
    );
    replace(python, answer.python ? pythonLine(answer.python) : null);
  }

  return { element, ask };
}

function describe(verdict) {
  return [
    el("p", {}, decisionChip(verdict.decision), ` ${sentence(verdict.because)}`),
    verdict.considered.length > 0 ? rules(verdict.considered) : null,
    verdict.unbound.length > 0 ? el("ul", { class: "problem" }, verdict.unbound.map((one) => el("li", {}, one))) : null,
  ];
}

function rules(considered) {
  const lines = considered.map((one) =>
    el(
      "li",
      { class: one.outcome === "decides" ? "decides" : "" },
      el("span", {}, one.outcome, ": ", code(one.rule), ` says ${one.decision}`),
      one.place ? el("span", { class: "note" }, ` ${one.place}`) : null,
    ),
  );
  return el("details", { open: considered.length < 4 }, el("summary", {}, `Considered, in this order (${considered.length})`), el("ol", { class: "rules" }, lines));
}

function pythonLine(line) {
  return [
    el("div", { class: "line-head" }, el("h3", {}, "The same call in Python"), copyButton(() => line)),
    block(line, "The same call in Python"),
  ];
}
