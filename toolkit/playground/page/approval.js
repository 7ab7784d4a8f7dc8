// The dialog that asks about a call: why it asks, what the call touches, the diff. Nothing is approved by accident: the
// dialog opens with the focus on its title, Escape denies, and a click approves only after a moment: the second click of a
// double click may already be on the next question.

import { post } from "./api.js";
import { block, chip, code, el, replace, sentence, visibleJson } from "./dom.js";
import { writeJson } from "./json.js";

const MOMENT = 600;
const dialog = document.getElementById("approval");
const waiting = [];
let current = null;

export function askForApproval(request, say) {
  waiting.push({ request, say });
  if (current === null) showNext();
}

// The call has ended: nothing waits for an answer any more.
export function closeApproval() {
  waiting.length = 0;
  current = null;
  if (dialog.open) dialog.close();
}

function showNext() {
  current = waiting.shift() ?? null;
  if (current === null) {
    if (dialog.open) dialog.close();
    return;
  }
  draw(current.request);
  if (!dialog.open) dialog.showModal();
  dialog.querySelector("h2").focus();
}

function draw(request) {
  const words = el("input", { id: "words", type: "text", autocomplete: "off" });
  const edited = el("textarea", { id: "edited", class: "json", rows: "6", spellcheck: "false" });
  edited.value = visibleJson(writeJson(request.arguments));
  const original = edited.value;
  const problem = el("p", { class: "problem", role: "alert" });
  const approve = el("button", { type: "button", class: "primary", id: "approve", onclick: () => answer(edited.value === original ? { answer: "approve" } : { answer: "edit", arguments: edited.value }, problem) }, "Approve");
  edited.addEventListener("input", () => (approve.textContent = edited.value === original ? "Approve" : "Approve with these arguments"));
  const deny = el("button", { type: "button", id: "deny", onclick: () => answer({ answer: "deny", words: words.value }, problem) }, "Deny");
  replace(
    dialog,
    el("h2", { id: "approval-title", tabindex: "-1" }, "Approve ", code(request.tool), "?"),
    el("p", {}, sentence(request.because)),
    request.hints.length ? el("p", { class: "hint" }, "The tool says about itself: ", request.hints.flatMap((hint) => [chip(hint), " "])) : null,
    touched(request),
    request.diff === null ? null : diff(request),
    el("details", {}, el("summary", {}, "Arguments"), el("label", { for: "edited" }, "Arguments of the call, as JSON; what you change here is judged again"), edited),
    el("div", { class: "field plain" }, el("label", { for: "words" }, "If you deny it: what the model is told"), words),
    problem,
    el("div", { class: "actions" }, approve, deny),
  );
  approve.classList.add("early");
  setTimeout(() => approve.classList.remove("early"), MOMENT);
}

function touched(request) {
  const rows = [
    request.argv && ["Command", el("span", {}, request.argv.flatMap((word) => [code(word), " "]))],
    request.shell !== null && ["Shell", block(request.shell, "Shell text")],
    (request.argv || request.shell !== null) && ["Folder", code(request.cwd)],
    request.variables.length > 0 && ["Variables", request.variables.flatMap((name) => [code(name), " "])],
    request.url !== null && ["URL", code(request.url)],
    request.reads.length > 0 && ["Reads", paths(request.reads, request.realPaths)],
    request.writes.length > 0 && ["Writes", paths(request.writes, request.realPaths)],
    request.tools.length > 0 && ["Tools", request.tools.flatMap((name) => [code(name), " "])],
  ].filter(Boolean);
  return el("dl", { class: "touched" }, rows.flatMap(([title, value]) => [el("dt", {}, title), el("dd", {}, value)]));
}

function paths(given, real) {
  return given.map((path) => el("div", {}, code(path), real[path] === undefined ? null : [" leads to ", code(real[path])]));
}

function diff(request) {
  const kind = (line) => (/^(\+\+\+|---|@@)/.test(line) ? "place" : { "+": "added", "-": "removed" }[line[0]] ?? "");
  const lines = request.diff.replace(/\n$/, "").split("\n").map((line) => el("span", { class: kind(line) }, line || " "));
  const cut = request.diffDropped ? el("p", { class: "problem" }, `${request.diffDropped} more characters of the diff are not shown.`) : null;
  return el("div", {}, el("pre", { class: "diff", tabindex: "0", role: "region", "aria-label": "Diff" }, lines), cut);
}

async function answer(body, problem) {
  const asked = current;
  if (asked === null || asked.isAnswered) return;
  asked.isAnswered = true;
  try {
    await post(`/api/approvals/${asked.request.approval}`, body);
  } catch (error) {
    if (error.status !== 404) {
      asked.isAnswered = false;
      replace(problem, error.message);
      return;
    }
  }
  if (asked !== current) return;
  asked.say(body.answer === "deny" ? "Denied" : "Approved; running …");
  showNext();
}

dialog.addEventListener("cancel", (event) => {
  event.preventDefault();
  void answer({ answer: "deny", words: "" }, dialog.querySelector(".problem[role=alert]"));
});
