// The list of tools with its search. One tab stop; arrows move in the list, "/" goes to the search.

import { decisionChip, el, replace } from "./dom.js";

const search = document.getElementById("search");
const list = document.getElementById("tools");
const count = document.getElementById("count");
let tools = [];
let chosen = null;

export function showCatalog(found) {
  tools = found;
  draw();
}

export function markChosen(name) {
  chosen = name;
  for (const link of links()) {
    if (link.dataset.name === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  setTabStop();
}

export function addressOf(name) {
  return `#/tools/${encodeURIComponent(name)}`;
}

function draw() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  const text = (tool) => `${tool.name} ${tool.title ?? ""} ${tool.description}`.toLowerCase();
  const found = tools.filter((tool) => words.every((word) => text(tool).includes(word)));
  const inName = (tool) => (words.every((word) => tool.name.toLowerCase().includes(word)) ? 0 : 1);
  found.sort((one, other) => inName(one) - inName(other));
  replace(list, found.map(row));
  replace(count, words.length ? `${found.length} of ${tools.length} tools` : `${tools.length} tools`);
  markChosen(chosen);
}

function row(tool) {
  const link = el(
    "a",
    { href: addressOf(tool.name) },
    el("span", { class: "row" }, el("span", { class: "name" }, tool.name), decisionChip(tool.decision)),
    el("span", { class: "summary" }, tool.description),
  );
  link.dataset.name = tool.name;
  return el("li", {}, link);
}

function links() {
  return [...list.querySelectorAll("a")];
}

function setTabStop(wanted = links().find((link) => link.dataset.name === chosen) ?? links()[0]) {
  for (const link of links()) link.tabIndex = link === wanted ? 0 : -1;
}

function moveTo(at) {
  const found = links();
  const next = found[Math.min(Math.max(at, 0), found.length - 1)];
  if (next === undefined) return;
  setTabStop(next);
  next.focus();
}

search.addEventListener("input", draw);
search.addEventListener("keydown", (event) => {
  if (event.key === "ArrowDown") moveTo(0);
  else if (event.key === "Enter" && links().length) links()[0].click();
  else return;
  event.preventDefault();
});
list.addEventListener("keydown", (event) => {
  const at = links().indexOf(event.target);
  const target = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: Infinity }[event.key];
  if (target === undefined) return;
  event.preventDefault();
  if (target < 0) search.focus();
  else moveTo(target);
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.target.matches("input, textarea, select") || document.querySelector("dialog[open]")) return;
  event.preventDefault();
  search.focus();
});
