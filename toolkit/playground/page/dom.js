// Builds elements. Text is only ever text: nothing here, or anywhere else on the page, makes markup from a string.
//
// Names, descriptions, file names, diffs and outputs were written by others. Characters that cannot be seen, or that change
// how their neighbours are shown (bidi overrides, controls), are shown as escapes, as on the command line.

const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;
const KEPT = new Set(["\n", "\t", "\u200c", "\u200d"]);

export function visible(text) {
  return String(text).replace(HIDDEN, (character) => (KEPT.has(character) ? character : escapeCharacter(character)));
}

// For names and other text of one line: foreign text cannot add a line of its own.
export function visibleLine(text) {
  return visible(text).replaceAll("\n", "\\n").replaceAll("\t", "\\t");
}

// JSON text that means the same. Only strings can hold hidden characters, so they can be written as \uXXXX.
export function visibleJson(text) {
  return text.replace(HIDDEN, (character) => (character === "\n" ? character : escapeUnits(character)));
}

function escapeCharacter(character) {
  const code = character.codePointAt(0);
  if (character === "\r") return "\\r";
  if (code <= 0xff) return `\\x${code.toString(16).padStart(2, "0")}`;
  return code <= 0xffff ? `\\u${code.toString(16).padStart(4, "0")}` : `\\U${code.toString(16).padStart(8, "0")}`;
}

function escapeUnits(character) {
  return [...Array(character.length).keys()]
    .map((at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, "0")}`)
    .join("");
}

// el("a", {class: "tool", href: "#/", onclick: f}, "text", child, null) -> the element.
export function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : visibleLine(value));
  }
  put(element, ...children);
  return element;
}

export function put(element, ...children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined) continue;
    element.append(child instanceof Node ? child : document.createTextNode(visible(child)));
  }
}

export function replace(element, ...children) {
  element.replaceChildren();
  put(element, ...children);
}

export function code(text) {
  return el("code", {}, visibleLine(text));
}

// A block of text that may be wider or higher than its place; keyboards can scroll it.
export function block(text, label) {
  return el("pre", { tabindex: "0", role: "region", "aria-label": label }, text);
}

export function chip(text, kind = "") {
  return el("span", { class: `chip ${kind}` }, visibleLine(text));
}

const DECISIONS = { allow: "allowed", ask: "asks", deny: "denied", depends: "depends" };

export function decisionChip(decision) {
  return chip(DECISIONS[decision] ?? decision ?? "–", `decision ${decision in DECISIONS ? decision : ""}`);
}

// A reason as a sentence: reasons of the toolkit start small and have no full stop.
export function sentence(text) {
  const first = /^[a-z]/.test(text) ? text[0].toUpperCase() + text.slice(1) : text;
  return /[.!?]$/.test(first) ? first : `${first}.`;
}

export function bar(share) {
  const inner = el("span", { class: "bar-inner" });
  inner.style.width = `${Math.max(1, Math.round(share * 100))}%`;
  return el("span", { class: "bar", "aria-hidden": "true" }, inner);
}

export function copyButton(text) {
  const button = el("button", { type: "button", class: "quiet", onclick: copy }, "Copy");
  async function copy() {
    await navigator.clipboard.writeText(text());
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 1500);
  }
  return button;
}
