// The fields of a form, made from a JSON Schema. Each has an element, `read()` and `write(value)`.
//
// `undefined` means absent: an optional field that nobody filled in is not sent, and never becomes null.

import { el, replace, visibleJson } from "./dom.js";
import { parseJson, writeJson } from "./json.js";
import { choices, describeLimits, describeType, fieldKind, follow } from "./schema.js";

export class FieldProblem extends Error {}

let lastId = 0;

export function makeField(schema, place) {
  const known = follow(schema, place.root);
  const kind = fieldKind(known, place.path.length);
  return { text: oneLine, lines: severalLines, number, choice, list, object, json }[kind](known, place);
}

// A label, a description and room for a problem around one control.
function labelled(control, schema, place) {
  const id = `field-${(lastId += 1)}`;
  control.id = id;
  control.setAttribute("aria-describedby", `${id}-hint ${id}-problem`);
  if (place.required) control.setAttribute("aria-required", "true");
  const limits = describeLimits(schema, control.tagName !== "SELECT");
  const problem = el("p", { class: "problem", id: `${id}-problem` });
  place.problems.set(JSON.stringify(place.path), { problem, control });
  return el(
    "div",
    { class: "field" },
    el("label", { for: id }, place.label, note(schema, place)),
    control,
    el("p", { class: "hint", id: `${id}-hint` }, [schema.description, limits && `(${limits})`].filter(Boolean).join(" ")),
    problem,
  );
}

function note(schema, place) {
  return el("span", { class: "note" }, ` ${describeType(schema)}${place.required ? ", required" : ""}`);
}

function textField(control, schema, place) {
  // A required text counts as given once it was typed into, even if it is empty again.
  let touched = false;
  control.addEventListener("input", () => {
    touched = true;
    place.changed();
  });
  return {
    element: labelled(control, schema, place),
    read: () => (control.value !== "" || (touched && place.required) ? control.value : undefined),
    write(value) {
      touched = value !== undefined;
      control.value = value ?? "";
    },
  };
}

function oneLine(schema, place) {
  return textField(el("input", { type: "text", autocomplete: "off", spellcheck: "false" }), schema, place);
}

function severalLines(schema, place) {
  return textField(el("textarea", { rows: "2", spellcheck: "false" }), schema, place);
}

function number(schema, place) {
  const control = el("input", { type: "text", inputmode: "decimal", autocomplete: "off", oninput: place.changed });
  function read() {
    const text = control.value.trim();
    if (text === "") return undefined;
    if (!/^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(text)) throw new FieldProblem("This is not a number.");
    return parseJson(text);
  }
  return {
    element: labelled(control, schema, place),
    read: () => reporting(place, read),
    write: (value) => (control.value = value === undefined ? "" : writeJson(value)),
  };
}

function choice(schema, place) {
  const values = choices(schema);
  const left = "default" in schema ? `not given (default ${JSON.stringify(schema.default)})` : "not given";
  const options = values.map((value, at) => el("option", { value: String(at) }, typeof value === "string" ? value : JSON.stringify(value)));
  const control = el("select", { onchange: place.changed }, el("option", { value: "" }, place.required ? "choose …" : left), options);
  return {
    element: labelled(control, schema, place),
    read: () => (control.value === "" ? undefined : values[Number(control.value)]),
    write(value) {
      const at = values.indexOf(value);
      control.value = at < 0 ? "" : String(at);
    },
  };
}

function json(schema, place) {
  const control = el("textarea", { rows: "2", class: "json", spellcheck: "false", placeholder: "JSON", oninput: place.changed });
  function read() {
    if (control.value.trim() === "") return undefined;
    try {
      return parseJson(control.value);
    } catch (error) {
      throw new FieldProblem(`This is not valid JSON: ${error.message}.`);
    }
  }
  return {
    element: labelled(control, schema, place),
    read: () => reporting(place, read),
    write: (value) => (control.value = value === undefined ? "" : visibleJson(writeJson(value))),
  };
}

function reporting(place, read) {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof FieldProblem)) throw error;
    place.report(place.path, error.message);
    return undefined;
  }
}

function list(schema, place) {
  let items = [];
  const rows = el("ol", { class: "items" });
  const addButton = el("button", { type: "button", class: "quiet", onclick: () => add(undefined, true) }, `Add to ${place.label}`);
  function add(value, byHand) {
    const path = [...place.path, String(items.length)];
    const field = makeField(schema.items, { ...place, path, label: `${place.label} ${items.length + 1}`, required: true });
    field.write(value);
    items.push(field);
    const remove = el("button", { type: "button", class: "quiet", onclick: () => drop(field) }, "Remove");
    remove.setAttribute("aria-label", `Remove ${place.label} ${items.length}`);
    rows.append(el("li", {}, field.element, remove));
    if (byHand) {
      field.element.querySelector("input, textarea, select")?.focus();
      place.changed();
    }
  }
  function drop(field) {
    const kept = items.filter((item) => item !== field).map((item) => item.read());
    write(kept.length ? kept : undefined);
    addButton.focus();
    place.changed();
  }
  function write(value) {
    items = [];
    replace(rows);
    for (const item of Array.isArray(value) ? value : []) add(item, false);
  }
  return {
    element: group(schema, place, rows, addButton),
    read: () => (items.length || place.required ? items.map((item) => item.read() ?? null) : undefined),
    write,
  };
}

function object(schema, place) {
  const fields = Object.entries(schema.properties ?? {}).map(([name, property]) => {
    const required = (schema.required ?? []).includes(name);
    return [name, makeField(property, { ...place, path: [...place.path, name], label: name, required })];
  });
  let others = {};
  const rest = el("p", { class: "hint" });
  function read() {
    const given = fields.map(([name, field]) => [name, field.read()]).filter(([, value]) => value !== undefined);
    const found = { ...Object.fromEntries(given), ...others };
    return Object.keys(found).length || place.required ? found : undefined;
  }
  function write(value) {
    const known = new Set(fields.map(([name]) => name));
    const given = value !== null && typeof value === "object" ? value : {};
    for (const [name, field] of fields) {
      field.write(Object.hasOwn(given, name) ? given[name] : undefined);
      if (Object.hasOwn(given, name)) unfold(field.element);
    }
    others = Object.fromEntries(Object.entries(given).filter(([name]) => !known.has(name)));
    const names = Object.keys(others).join(", ");
    replace(rest, names ? `Also sent, from the JSON view: ${names}` : "");
  }
  const inside = [...fold(fields, schema, place), rest];
  const element = place.path.length ? group(schema, place, ...inside) : el("div", { class: "fields" }, inside);
  return { element, read, write };
}

export function unfold(element) {
  const details = element.closest("details");
  if (details !== null) details.open = true;
}

// Optional arguments of a tool stand behind one line, if there are many of them.
function fold(fields, schema, place) {
  const isRequired = ([name]) => (schema.required ?? []).includes(name);
  const optional = fields.filter((field) => !isRequired(field));
  if (place.path.length > 0 || optional.length < 4 || optional.length === fields.length) return fields.map(([, field]) => field.element);
  const folded = optional.map(([, field]) => field.element);
  const names = optional.map(([name]) => name).join(", ");
  const summary = el("summary", {}, `${optional.length} optional arguments`, el("span", { class: "note" }, ` ${names}`));
  return [...fields.filter(isRequired).map(([, field]) => field.element), el("details", { class: "optional" }, summary, el("div", { class: "fields" }, folded))];
}

function group(schema, place, ...children) {
  const problem = el("p", { class: "problem" });
  place.problems.set(JSON.stringify(place.path), { problem, control: null });
  const hint = [schema.description, describeLimits(schema)].filter(Boolean).join(" ");
  return el("fieldset", {}, el("legend", {}, place.label, note(schema, place)), hint ? el("p", { class: "hint" }, hint) : null, children, problem);
}
