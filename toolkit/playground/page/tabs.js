// Tabs as the ARIA practices describe them: arrows move, the chosen panel is shown.

import { el } from "./dom.js";

export function tabs(label, panels) {
  const buttons = panels.map(([title], at) =>
    el("button", { type: "button", role: "tab", id: `tab-${at}`, "aria-controls": `panel-${at}`, onclick: () => choose(at) }, title),
  );
  const bodies = panels.map(([, body], at) => el("div", { role: "tabpanel", id: `panel-${at}`, "aria-labelledby": `tab-${at}` }, body));
  function choose(chosen) {
    buttons.forEach((button, at) => {
      button.setAttribute("aria-selected", String(at === chosen));
      button.tabIndex = at === chosen ? 0 : -1;
      bodies[at].hidden = at !== chosen;
    });
  }
  function move(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined) return;
    const next = (buttons.indexOf(event.target) + step + buttons.length) % buttons.length;
    choose(next);
    buttons[next].focus();
  }
  choose(0);
  return el("div", { class: "tabs" }, el("div", { role: "tablist", "aria-label": label, onkeydown: move }, buttons), bodies);
}
