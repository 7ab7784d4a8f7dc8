// What it costs to tell each provider about the tools that the policy may allow.

import { get } from "./api.js";
import { bar, el } from "./dom.js";

export async function showTokens() {
  const found = await get("/api/tokens");
  const element = el(
    "article",
    { class: "tokens" },
    el("h2", { tabindex: "-1" }, "Token cost"),
    el("p", {}, `What a request spends on the definitions of the ${found.count} tools that the policy may allow, as each adapter writes them.`),
    el("p", { class: "hint" }, `Bytes are exact. Tokens are an estimate: bytes / ${found.bytesPerToken}. Each provider counts with a tokenizer of its own.`),
    table("Provider", found.forms),
    el("h3", {}, "Each tool"),
    el("p", { class: "hint" }, `As written for ${found.reference}, the largest first.`),
    table("Tool", found.tools),
  );
  return { element, title: "Token cost" };
}

function table(title, rows) {
  const most = Math.max(1, ...rows.map((row) => row.bytes ?? 0));
  const head = [title, "Bytes", "Tokens (estimate)", "Share"].map((text, at) => el("th", { scope: "col", class: at === 1 || at === 2 ? "number" : null }, text));
  const cells = rows.map((row) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, row.name),
      row.problem ? el("td", { colspan: "3", class: "failed" }, row.problem) : [el("td", { class: "number" }, row.bytes.toLocaleString("en")), el("td", { class: "number" }, `≈ ${row.tokens.toLocaleString("en")}`), el("td", { class: "duration" }, bar(row.bytes / most))],
    ),
  );
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Cost for each ${title.toLowerCase()}` }, el("table", {}, el("thead", {}, el("tr", {}, head)), el("tbody", {}, cells)));
}
