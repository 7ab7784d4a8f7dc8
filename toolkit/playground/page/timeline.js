// The audit log: one row for each call, the latest first, and the state of its chain.

import { get } from "./api.js";
import { bar, chip, code, decisionChip, el, replace } from "./dom.js";
import { addressOf } from "./catalog.js";

export async function showTimeline(session) {
  const content = el("div", { class: "content" });
  const element = el(
    "article",
    { class: "timeline" },
    el("div", { class: "line-head" }, el("h2", { tabindex: "-1" }, "Timeline"), el("button", { type: "button", class: "quiet", id: "refresh", onclick: refresh }, "Refresh")),
    el("p", { class: "hint" }, "Every call is recorded in ", code(session.audit), ". ", session.auditIsTemporary ? "This log is temporary: it is removed when the playground ends. Start it with --audit FILE to keep one." : null),
    content,
  );
  async function refresh() {
    const found = await get("/api/audit");
    replace(content, chainState(found), found.calls.length ? calls(found) : el("p", {}, "No calls yet."));
  }
  await refresh();
  return { element, title: "Timeline" };
}

function chainState(found) {
  const unfinished = found.openCalls ? ` ${found.openCalls} without an end.` : "";
  const records = `${found.records} ${found.records === 1 ? "record" : "records"}.${unfinished}`;
  if (found.problems.length === 0) return el("p", { class: "chain", id: "chain" }, chip("chain intact", "decision allow"), ` ${records}`);
  return el("div", { class: "chain", id: "chain" }, el("p", {}, chip("chain broken", "decision deny"), ` ${records}`), el("ul", { class: "problem" }, found.problems.map((problem) => el("li", {}, problem))));
}

function calls(found) {
  const latest = [...found.calls].reverse();
  const longest = Math.max(1, ...latest.map((call) => call.duration_ms ?? 0));
  const head = ["Time", "Tool", "Decision", "Outcome", "Duration"].map((title) => el("th", { scope: "col" }, title));
  const left = found.total > latest.length ? el("p", { class: "hint" }, `The latest ${latest.length} of ${found.total} calls.`) : null;
  return [
    el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Calls" }, el("table", { class: "calls" }, el("thead", {}, el("tr", {}, head)), el("tbody", {}, latest.map((call) => row(call, longest))))),
    left,
  ];
}

function row(call, longest) {
  const outcome = call.outcome ?? (call.event === "start" ? "running, or without an end" : "–");
  const isGood = outcome === "ok" || outcome === "started";
  const took = call.duration_ms === null ? null : formatDuration(call.duration_ms);
  const name = call.event === "program" ? "program" : (call.tool ?? "–");
  return el(
    "tr",
    { title: call.rule },
    el("td", {}, el("time", { datetime: call.time }, formatTime(call.time)), call.isOwn ? null : el("span", { class: "note" }, " earlier")),
    el("th", { scope: "row" }, call.event === "program" ? name : el("a", { href: addressOf(name) }, name), call.program && call.line ? el("span", { class: "note" }, ` line ${call.line} of a program`) : null),
    el("td", {}, decisionChip(call.decision), call.answer ? el("span", { class: "note" }, ` ${call.answer}`) : null),
    el("td", { class: isGood ? "done" : "failed" }, outcome, call.reason ? `: ${call.reason}` : null),
    el("td", { class: "duration" }, took === null ? "–" : [bar(call.duration_ms / longest), took]),
  );
}

function formatDuration(ms) {
  return ms < 1000 ? `${ms < 10 ? ms.toFixed(1) : ms.toFixed(0)} ms` : `${(ms / 1000).toFixed(1)} s`;
}

function formatTime(time) {
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? String(time) : date.toLocaleTimeString();
}
