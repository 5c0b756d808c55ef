// The service: requests, and its stream of changes.
// Promise: a token is requested when it is needed and stays in this tab. The stream is read with `fetch`, because an
// `EventSource` cannot send a token; after a broken connection it continues after the last event received.

const TOKEN_KEY = "stream-car-token";
const PAUSE_MS = 500;
const PAUSE_MAX_MS = 10_000;
const SILENCE_MS = 60_000;
const UNREACHABLE = "The service does not answer. Start it with: stream-car serve";

/** An error of the service; `code` is stable. `mayPass`: the same request may be answered later. */
export class Problem extends Error {
  constructor(detail, code, mayPass) {
    super(detail);
    this.code = code;
    this.mayPass = mayPass;
  }
}

/** Return the answer to a GET; parameters may repeat. */
export async function get(path, parameters = []) {
  const query = new URLSearchParams(parameters).toString();
  return (await send(query ? `${path}?${query}` : path)).json();
}

/** Return the answer to a POST. */
export async function post(path, body) {
  const headers = { "Content-Type": "application/json" };
  return (await send(path, { method: "POST", body: JSON.stringify(body), headers })).json();
}

async function send(path, request = {}) {
  for (;;) {
    const token = sessionStorage.getItem(TOKEN_KEY);
    const headers = { ...request.headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) };
    let response;
    try {
      response = await fetch(path, { ...request, headers, cache: "no-store" });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Problem(UNREACHABLE, "unavailable", true);
    }
    if (response.ok) return response;
    if (response.status !== 401) {
      const problem = await response.json().catch(() => ({}));
      const mayPass = response.status === 429 || response.status >= 500;
      throw new Problem(problem.detail || `The service answered ${response.status}.`, problem.code || "http", mayPass);
    }
    await requestToken();
  }
}

/** Forget the token, so that the next request asks for another one. */
export function forgetToken() {
  sessionStorage.removeItem(TOKEN_KEY);
}

let tokenRequest = null;

/** Show one dialog, however many requests wait for it. */
function requestToken() {
  tokenRequest ??= new Promise((resolve) => {
    const dialog = document.getElementById("token");
    const field = document.getElementById("token-value");
    const wrong = sessionStorage.getItem(TOKEN_KEY) === null ? "" : "That token was not accepted. Try again.";
    document.getElementById("token-wrong").textContent = wrong;
    sessionStorage.removeItem(TOKEN_KEY);
    field.value = "";
    dialog.addEventListener("cancel", (event) => event.preventDefault());
    dialog.addEventListener("close", () => {
      sessionStorage.setItem(TOKEN_KEY, field.value.trim());
      field.value = "";
      tokenRequest = null;
      resolve();
    }, { once: true });
    dialog.showModal();
  });
  return tokenRequest;
}

/** Follow changes until `signal` aborts: `onEvent(event)` for each event, `onState("live" or "waiting")`. */
export async function follow(parameters, { onEvent, onState, signal }) {
  const path = `/v1/subscribe?${new URLSearchParams(parameters)}`;
  let cursor = (await get("/v1/status")).cursor;
  let failures = 0;
  while (!signal.aborted) {
    const connection = new AbortController();
    const stop = () => connection.abort();
    signal.addEventListener("abort", stop);
    try {
      const response = await send(path, { signal: connection.signal, headers: { "Last-Event-ID": cursor } });
      onState("live");
      for await (const { id, data } of messages(response.body, stop)) {
        failures = 0;
        if (data) onEvent(JSON.parse(data));
        if (id) cursor = id;
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Problem && !error.mayPass) {
        if (!error.code.startsWith("cursor")) throw error;
        cursor = (await get("/v1/status")).cursor;
      }
    } finally {
      signal.removeEventListener("abort", stop);
    }
    if (signal.aborted) return;
    onState("waiting");
    await new Promise((resolve) => setTimeout(resolve, Math.min(PAUSE_MS * 2 ** failures++, PAUSE_MAX_MS)));
  }
}

/** The server-sent messages of a response; `stop` is called after a long silence. */
async function* messages(body, stop) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const silence = setTimeout(stop, SILENCE_MS);
    const { done, value } = await reader.read().finally(() => clearTimeout(silence));
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) yield { id: field(block, "id:"), data: field(block, "data:") };
  }
}

function field(block, name) {
  return block.split("\n").find((line) => line.startsWith(name))?.slice(name.length).trimStart() ?? "";
}
