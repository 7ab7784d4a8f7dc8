// One call at a time: run, progress, cancel, result.

import { post, postForEvents } from "./api.js";
import { askForApproval, closeApproval } from "./approval.js";
import { block, chip, el, put, replace, visible } from "./dom.js";

const MAX_LOG = 64 * 1024;

export function makeCall(tool, form, ended) {
  const run = el("button", { type: "button", class: "primary", id: "run", "aria-keyshortcuts": "Control+Enter", onclick: start }, "Run", el("kbd", {}, "Ctrl+Enter"));
  const cancel = el("button", { type: "button", id: "cancel", hidden: true, onclick: stop }, "Cancel");
  const status = el("p", { class: "status", id: "status", role: "status" });
  const output = el("pre", { class: "log", id: "log", role: "log", tabindex: "0", "aria-label": "Output while the call runs", hidden: true });
  const result = el("div", { id: "result" });
  const actions = el("div", { class: "actions" }, run, cancel, status);
  const element = el("section", { class: "outcome", "aria-label": "Result" }, output, result);
  let id = null;
  let connection = null;

  async function start() {
    if (connection !== null) return;
    connection = new AbortController();
    begin();
    try {
      for await (const event of postForEvents("/api/calls", { tool: tool.name, arguments: form.read().text }, connection.signal)) handle(event);
    } catch (error) {
      if (error.name !== "AbortError") say(error.message, "failed");
    } finally {
      const hadFocus = document.activeElement === cancel;
      connection = null;
      id = null;
      cancel.hidden = true;
      run.disabled = false;
      closeApproval();
      if (hadFocus) run.focus();
      ended();
    }
  }

  function begin() {
    replace(result);
    replace(output);
    output.hidden = true;
    say("Running …");
    const hadFocus = document.activeElement === run;
    run.disabled = true;
    cancel.hidden = false;
    cancel.disabled = false;
    if (hadFocus) cancel.focus();
  }

  async function stop() {
    if (id === null) {
      connection?.abort();
      return;
    }
    say("Cancelling …");
    try {
      await post(`/api/calls/${id}/cancel`, {});
    } catch (error) {
      if (error.status !== 404) say(error.message, "failed"); // 404: it has ended meanwhile
    }
  }

  function handle(event) {
    if (event.event === "started") id = event.call;
    else if (event.event === "progress") showProgress(event);
    else if (event.event === "approval") {
      say("Waiting for your approval …");
      askForApproval(event, (words) => say(words));
    } else if (event.event === "result") showResult(event);
  }

  function showProgress(event) {
    const facts = Object.entries(event.data).map(([key, value]) => `${key} ${value}`).join(", ");
    if (event.title || facts) say([event.title, facts].filter(Boolean).join(": "));
    if (event.dropped) put(output, `… ${event.dropped} characters are not shown …\n`);
    for (const { stream, text } of event.pieces) put(output, el("span", { class: stream === "stderr" ? "stderr" : "" }, text));
    if (event.pieces.length === 0 && !event.dropped) return;
    output.hidden = false;
    let size = output.textContent.length;
    while (size > MAX_LOG && output.childNodes.length > 1) {
      size -= output.firstChild.textContent.length;
      output.firstChild.remove();
    }
    output.scrollTop = output.scrollHeight;
  }

  function showResult(event) {
    fillResult(event);
    element.scrollIntoView({ block: "nearest" });
  }

  function fillResult(event) {
    const took = `${event.durationMs < 1000 ? `${event.durationMs} ms` : `${(event.durationMs / 1000).toFixed(1)} s`}`;
    if (event.error !== null) {
      const [code, ...words] = event.error.split(": ");
      say(`Failed after ${took}`, "failed");
      replace(result, column("What the program gets", el("p", { class: "error-line" }, chip(code, "decision deny"), ` ${words.join(": ")}`)), column("What the model reads", block(event.text, "What the model reads")));
    } else {
      say(`Done in ${took}`, "done");
      replace(result, column(`Typed result: ${event.type}`, block(event.typed, "Typed result")), column("What the model reads", modelText(event)));
    }
  }

  function modelText(event) {
    const media = event.media.map((text) => el("li", {}, text));
    const cut = event.dropped ? el("p", { class: "hint" }, `… and ${event.dropped} more characters`) : null;
    return [block(event.text, "What the model reads"), cut, media.length ? el("ul", {}, media) : null];
  }

  function column(title, ...children) {
    return el("div", { class: "column" }, el("h3", {}, title), children);
  }

  function say(text, kind = "") {
    status.className = `status ${kind}`;
    status.textContent = visible(text);
  }

  // Leaving the tool closes the connection, which cancels the call.
  const leave = () => connection?.abort();
  return { element, actions, start, leave };
}
