// Documentation of tools is Markdown at most: paragraphs, lists and `code` are shown as such, the rest as it is written.

import { code, el } from "./dom.js";

export function prose(text) {
  const parts = [];
  let list = null;
  for (const paragraph of text.trim().split(/\n\s*\n/)) {
    for (const piece of joinLines(paragraph)) {
      if (piece.isItem) {
        if (list === null) parts.push((list = el("ul")));
        list.append(el("li", {}, inline(piece.text)));
      } else {
        list = null;
        parts.push(el("p", {}, inline(piece.text)));
      }
    }
  }
  return parts;
}

function joinLines(paragraph) {
  const pieces = [];
  for (const line of paragraph.split("\n")) {
    const item = /^\s*[-*] (.*)$/.exec(line);
    if (item) pieces.push({ isItem: true, text: item[1] });
    else if (pieces.length && (!pieces.at(-1).isItem || /^\s/.test(line))) pieces.at(-1).text += ` ${line.trim()}`;
    else pieces.push({ isItem: false, text: line.trim() });
  }
  return pieces;
}

function inline(text) {
  return text.split(/(`[^`]+`)/).map((piece) => (/^`.+`$/.test(piece) ? code(piece.slice(1, -1)) : piece));
}
