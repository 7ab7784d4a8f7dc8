// The arguments of a call: as a form, or as JSON. Both hold the same value, whichever is shown.

import { el, replace, visibleJson } from "./dom.js";
import { makeField, unfold } from "./fields.js";
import { parseJson, writeJson } from "./json.js";

export function makeForm(schema, changed) {
  const problems = new Map();
  let own = []; // what cannot even be sent: text in a number, broken JSON
  const report = (path, message) => own.push({ path, message });
  const field = makeField(schema, { root: schema, path: [], label: "arguments", required: true, problems, changed, report });
  const raw = el("textarea", { id: "raw", class: "json", rows: "8", spellcheck: "false", oninput: changed });
  const rawProblem = el("p", { class: "problem", id: "raw-problem" });
  raw.setAttribute("aria-describedby", "raw-problem");
  const asJson = el("input", { type: "checkbox", id: "as-json", onchange: switchView });
  const formView = el("div", {}, field.element);
  const rawView = el("div", { class: "field", hidden: true }, el("label", { for: "raw" }, "Arguments as JSON"), raw, rawProblem);
  const isEmpty = Object.keys(schema.properties ?? {}).length === 0;
  const element = el(
    "div",
    { class: "form" },
    el("div", { class: "form-head" }, el("h3", { id: "arguments" }, "Arguments"), el("label", { class: "switch" }, asJson, " JSON")),
    isEmpty ? el("p", { class: "hint" }, "This tool takes no arguments.") : null,
    formView,
    rawView,
  );

  function switchView() {
    if (asJson.checked) raw.value = visibleJson(writeJson(field.read() ?? {}));
    else if (!fillFormFromRaw()) asJson.checked = true;
    formView.hidden = asJson.checked;
    rawView.hidden = !asJson.checked;
    changed();
  }

  function fillFormFromRaw() {
    try {
      const value = parseJson(raw.value.trim() || "{}");
      if (value === null || typeof value !== "object" || Array.isArray(value)) throw new Error("it must be an object");
      field.write(value);
      return true;
    } catch (error) {
      replace(rawProblem, `The form cannot show this: ${error.message}. Correct the JSON first.`);
      raw.focus();
      return false;
    }
  }

  // The text of the arguments as a model would write it, and what is wrong with the fields.
  function read() {
    own = [];
    const text = asJson.checked ? raw.value : writeJson(field.read() ?? {}, 0);
    return { text, problems: own };
  }

  function write(value) {
    field.write(value);
    raw.value = visibleJson(writeJson(value));
    changed();
  }

  // Shows each problem at the field it is about, or at the nearest one around it; returns those that have no field.
  function showProblems(found) {
    for (const { problem, control } of problems.values()) {
      replace(problem);
      control?.removeAttribute("aria-invalid");
    }
    replace(rawProblem);
    return found.filter(({ path, message }) => {
      if (asJson.checked) return true;
      for (let length = path.length; length > 0; length -= 1) {
        const place = problems.get(JSON.stringify(path.slice(0, length)));
        if (place === undefined) continue;
        replace(place.problem, path.length > length ? `${path.slice(length).join(" › ")}: ${message}` : message);
        place.control?.setAttribute("aria-invalid", "true");
        unfold(place.problem);
        return false;
      }
      return true;
    });
  }

  return { element, read, write, showProblems };
}
