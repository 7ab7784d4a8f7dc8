// The start of the page: the token, the head, and which view the address shows.

import { get, takeToken } from "./api.js";
import { markChosen, showCatalog } from "./catalog.js";
import { chip, code, el, replace, sentence } from "./dom.js";
import { showTimeline } from "./timeline.js";
import { showTokens } from "./tokens.js";
import { showTool } from "./tool.js";

const main = document.getElementById("main");
let session = null;
let tools = [];
let shown = null;
let visits = 0;

async function start() {
  takeToken();
  try {
    [session, tools] = await Promise.all([get("/api/session"), get("/api/tools")]);
  } catch (error) {
    fail(error);
    return;
  }
  replace(document.getElementById("session"), chip(session.allows.split(":")[0], "preset"), " ", code(session.workspace));
  showCatalog(tools);
  addEventListener("hashchange", route);
  await route();
}

async function route() {
  if (location.hash.startsWith("#token=")) {
    location.reload();
    return;
  }
  const visit = (visits += 1);
  const [view, name] = read(location.hash);
  shown?.leave?.();
  try {
    const next = await open(view, name);
    if (visit !== visits) return;
    shown = next;
    document.body.dataset.view = name === null ? view : "tool";
    markChosen(name);
    for (const link of document.querySelectorAll("header nav a")) {
      if (link.dataset.view === view) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    replace(main, next.element);
    document.title = `${next.title} – Playground`;
    scrollTo(0, 0);
    // The first view leaves the focus where a reader of the page starts.
    if (visit > 1) main.querySelector("h2")?.focus({ preventScroll: true });
  } catch (error) {
    if (visit === visits) fail(error);
  }
}

function read(hash) {
  const [, view = "tools", name] = /^#\/(tools|timeline|tokens)(?:\/(.+))?$/.exec(hash) ?? [];
  return [view, view === "tools" && name ? decode(name) : null];
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // typed by hand; there is no such tool, which is what the page then says
  }
}

async function open(view, name) {
  if (view === "timeline") return showTimeline(session);
  if (view === "tokens") return showTokens();
  return name === null ? welcome() : showTool(name);
}

function welcome() {
  const allowed = tools.filter((tool) => tool.decision !== "deny").length;
  const element = el(
    "article",
    { class: "welcome" },
    el("h2", { tabindex: "-1" }, `${allowed} of ${tools.length} tools can be called`),
    el("p", {}, sentence(session.allows)),
    el(
      "dl",
      { class: "touched" },
      el("dt", {}, "Workspace"), el("dd", {}, code(session.workspace)),
      el("dt", {}, "Package"), el("dd", {}, code(session.package)),
      el("dt", {}, "Sandbox"), el("dd", {}, session.sandbox),
      el("dt", {}, "Audit log"), el("dd", {}, code(session.audit), session.auditIsTemporary ? " (temporary)" : null),
      el("dt", {}, "Version"), el("dd", {}, session.version),
    ),
    el("p", { class: "hint" }, "Choose a tool. ", el("kbd", {}, "/"), " goes to the search, arrows move in the list, ", el("kbd", {}, "Ctrl+Enter"), " runs a call. Calls are real: they pass the policy and the sandbox, and are recorded."),
  );
  return { element, title: "Tools" };
}

function fail(error) {
  replace(main, el("article", {}, el("h2", { tabindex: "-1" }, "This did not work"), el("p", { class: "problem", role: "alert" }, error.message)));
}

document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
document.body.dataset.view = "tools";
void start();
