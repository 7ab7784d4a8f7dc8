// Requests to the playground. The token comes from the fragment of the URL, which is never sent to a server.

import { parseJson } from "./json.js";

const KEY = "toolkit-playground-token";

export class RequestFailed extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

// Takes the token out of the address bar, so that it is not in the history, in bookmarks or on a screenshot.
export function takeToken() {
  const given = /^#token=([\w-]+)$/.exec(location.hash);
  if (given === null) return;
  sessionStorage.setItem(KEY, given[1]);
  history.replaceState(null, "", location.pathname);
}

async function send(method, path, body, signal) {
  const headers = { Authorization: `Bearer ${sessionStorage.getItem(KEY) ?? ""}` };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(path, { method, headers, body: body && JSON.stringify(body), signal, credentials: "omit" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new RequestFailed(0, "The playground does not answer. Is `toolkit playground` still running?");
  }
  if (response.ok) return response;
  throw new RequestFailed(response.status, await readError(response));
}

async function readError(response) {
  if (response.status === 401) return "The token is missing or wrong. Open the URL that `toolkit playground` printed.";
  const text = await response.text();
  try {
    return JSON.parse(text).error;
  } catch {
    return text || `The playground answered with status ${response.status}.`;
  }
}

export async function get(path, signal) {
  return (await send("GET", path, undefined, signal)).json();
}

export async function post(path, body, signal) {
  return (await send("POST", path, body, signal)).json();
}

// The events of a call, one by one. Aborting the signal closes the connection, which cancels the call.
export async function* postForEvents(path, body, signal) {
  const response = await send("POST", path, body, signal);
  const decoder = new TextDecoder();
  let rest = "";
  for await (const bytes of read(response.body.getReader())) {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
    rest = lines.pop();
    for (const line of lines) yield parseJson(line);
  }
}

async function* read(reader) {
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}
