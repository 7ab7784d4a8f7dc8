// One tool: what it is, the form for its arguments, the verdict, and the call.

import { get } from "./api.js";
import { makeCall } from "./call.js";
import { block, chip, decisionChip, el, sentence, visibleJson } from "./dom.js";
import { makeForm } from "./form.js";
import { writeJson } from "./json.js";
import { prose } from "./prose.js";
import { tabs } from "./tabs.js";
import { makeVerdict } from "./verdict.js";

export async function showTool(name) {
  const tool = await get(`/api/tools/${encodeURIComponent(name)}`);
  let verdict = null;
  const form = makeForm(tool.inputSchema, () => verdict?.ask());
  verdict = makeVerdict(tool, form);
  const call = makeCall(tool, form, () => verdict.ask());
  const example = el("button", { type: "button", class: "quiet", id: "example", onclick: () => form.write(tool.example) }, "Fill in an example");
  const clear = el("button", { type: "button", class: "quiet", id: "clear", onclick: () => form.write({}) }, "Clear");
  const article = el(
    "article",
    { class: "tool", onkeydown: runByKey },
    head(tool),
    about(tool),
    el(
      "div",
      { class: "call" },
      el("section", { class: "given", "aria-labelledby": "arguments" }, form.element, el("div", { class: "actions" }, example, clear)),
      el("div", { class: "judge" }, verdict.element, call.actions),
    ),
    call.element,
  );
  function runByKey(event) {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    void call.start();
  }
  verdict.ask();
  return { element: article, title: tool.name, leave: call.leave };
}

function head(tool) {
  const facts = [...tool.permissions.map((word) => `needs ${word}`), ...tool.optional.map((word) => `uses ${word} if granted`), ...tool.hints];
  return el(
    "header",
    { class: "tool-head" },
    el("a", { class: "back", href: "#/tools" }, "← All tools"),
    el("h2", { tabindex: "-1" }, el("span", { class: "name" }, tool.name), tool.title ? el("span", { class: "title" }, ` ${tool.title}`) : null),
    el("p", { class: "facts" }, decisionChip(tool.decision), facts.map((fact) => chip(fact)), tool.origin ? chip(`imported from ${tool.origin}`) : null),
    tool.decision === "allow" ? null : el("p", { class: tool.decision === "deny" ? "reason" : "hint" }, sentence(tool.because)),
  );
}

function about(tool) {
  const schema = (value) => block(visibleJson(writeJson(value)), "JSON Schema");
  return tabs("About this tool", [
    ["Documentation", el("div", { class: "prose" }, prose(tool.documentation))],
    ["Signature", block([tool.signature, ...(tool.classes.length ? ["", ...tool.classes.map(spread)] : [])].join("\n"), "Signature")],
    ["Input schema", schema(tool.inputSchema)],
    ["Output schema", schema(tool.outputSchema ?? {})],
  ]);
}

// "class A: x: int; y: str" with a field on each line, where it has several.
function spread(line) {
  const found = /^(class [^:]+:) (.*)$/.exec(line);
  return found && found[2].includes("; ") ? `\n${found[1]}\n    ${found[2].replaceAll("; ", "\n    ")}` : `\n${line}`;
}
