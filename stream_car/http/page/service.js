// The service: questions, and its stream of changes.
// Promise: a token is asked for when it is needed and kept by this tab alone. The stream is read with `fetch`,
// because an `EventSource` cannot send a token; it comes back by itself behind the last event it has heard.

const KEPT = "stream-car-token";
const PAUSE_MS = 500;
const PAUSE_MAX_MS = 10_000;
const SILENCE_MS = 60_000;

/** What the service says is wrong; `code` is stable. */
export class Problem extends Error {
  constructor(detail, code) {
    super(detail);
    this.code = code;
  }
}

const GONE = "The service does not answer. Is it running? Start it with: stream-car up";

function headers(more = {}) {
  const token = sessionStorage.getItem(KEPT);
  return token ? { Authorization: `Bearer ${token}`, ...more } : more;
}

async function reply(path, request = {}) {
  for (;;) {
    let response;
    try {
      response = await fetch(path, { ...request, headers: headers(request.headers), cache: "no-store" });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Problem(GONE, "unavailable");
    }
    if (response.status === 401) {
      await askForToken();
      continue;
    }
    if (response.ok) return response;
    const said = await response.json().catch(() => ({}));
    throw new Problem(said.detail || `The service answered ${response.status}.`, said.code || "http");
  }
}

/** What a GET answers; parameters may repeat. */
export async function get(path, parameters = []) {
  const query = new URLSearchParams(parameters).toString();
  return (await reply(query ? `${path}?${query}` : path)).json();
}

/** What a POST answers. */
export async function post(path, body) {
  const request = { method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" } };
  return (await reply(path, request)).json();
}

let asking = null;

/** One dialog, however many questions wait for it. */
function askForToken() {
  asking ??= new Promise((resolve) => {
    const dialog = document.getElementById("token");
    const field = document.getElementById("token-value");
    const again = sessionStorage.getItem(KEPT) !== null;
    document.getElementById("token-wrong").textContent = again ? "That was not it. Try again." : "";
    sessionStorage.removeItem(KEPT);
    field.value = "";
    dialog.addEventListener("cancel", (event) => event.preventDefault());
    dialog.addEventListener("close", () => {
      sessionStorage.setItem(KEPT, field.value.trim());
      field.value = "";
      asking = null;
      resolve();
    }, { once: true });
    dialog.showModal();
  });
  return asking;
}

/** Follow changes until `signal` ends it. `hear(event, data)`, `told(state)` with `live`, `waiting` or `ended`. */
export async function follow(parameters, { hear, told, signal }) {
  let cursor = (await get("/v1/status")).cursor;
  let failures = 0;
  while (!signal.aborted) {
    const connection = new AbortController();
    const stop = () => connection.abort();
    signal.addEventListener("abort", stop);
    try {
      const query = new URLSearchParams(parameters).toString();
      const response = await reply(`/v1/subscribe?${query}`, { signal: connection.signal, headers: { "Last-Event-ID": cursor } });
      told("live");
      for await (const event of events(response.body, stop)) {
        failures = 0;
        if (event.data) hear(event.name, JSON.parse(event.data));
        if (event.id) cursor = event.id;
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Problem && !["unavailable", "busy"].includes(error.code)) {
        if (!error.code.startsWith("cursor")) throw error;
        cursor = (await get("/v1/status")).cursor;
      }
    } finally {
      signal.removeEventListener("abort", stop);
    }
    if (signal.aborted) return;
    told("waiting");
    await new Promise((resolve) => setTimeout(resolve, Math.min(PAUSE_MS * 2 ** failures++, PAUSE_MAX_MS)));
  }
}

async function* events(body, stop) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const silent = setTimeout(stop, SILENCE_MS);
    const { done, value } = await reader.read().finally(() => clearTimeout(silent));
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) yield read(block);
  }
}

function read(block) {
  const event = { name: "", id: "", data: "" };
  for (const line of block.split("\n")) {
    const at = line.indexOf(":");
    const value = line.slice(at + 1).replace(/^ /, "");
    if (line.startsWith("event:")) event.name = value;
    else if (line.startsWith("id:")) event.id = value;
    else if (line.startsWith("data:")) event.data = value;
  }
  return event;
}
