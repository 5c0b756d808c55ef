// Changes as they happen: which documents are superseded or in force now, each with its cause.
import { documentLink, el, fateInWords, fill, holds, ruleName, searchForm, textOf, timeOf, titleOf } from "./dom.js";
import { follow } from "./service.js";
import { pairs } from "./timeline.js";

export const TITLE = "Live";
const LISTED_MAX = 200;
const STATES = { live: "Connected", waiting: "The service does not answer. Trying again…" };
const LATEST_MAX = 10_000;
const STATUSES = {
  in_force: "is in force",
  retracted: "was retracted",
  pending: "waits for its time",
  unknown: "is not known any more",
};
const LEFT = {
  moved: "left this scope and is superseded through another one",
  corrected: "was corrected and is superseded now",
};
const CAUSES = {
  placed: "was published",
  corrected: "was corrected",
  moved: "moved to another scope",
  retracted: "was retracted",
  released: "took effect",
};
const RESETS = {
  cursor_expired: "Some changes were missed while the connection was down.",
  cursor_log: "The service has other data than before. Later changes are of that data.",
  cursor_generation: "The rules have changed. Later changes follow the new rules.",
  generation: "The rules have changed. Later changes follow the new rules.",
};

export async function show(view, parameters, signal) {
  const list = el("ol", { class: "changes", role: "log", "aria-label": "Changes, newest first" });
  const state = el("p", { class: "state waiting", role: "status" }, "Connecting…");
  const empty = el("p", { class: "empty" }, "Nothing has changed since you opened this view.");
  fill(view, el("h1", { class: "small" }, "What changes"), form(parameters), state, empty, list);
  const latest = new Map(); // a document in several scopes has a change for each; it is listed once
  await follow(filters(parameters), {
    signal,
    onState(name) {
      state.className = `state ${name}`;
      fill(state, STATES[name]);
    },
    onEvent(event) {
      if (event.event === "reset") list.prepend(el("li", { class: "reset" }, RESETS[event.reason]));
      if (event.event === "document-change") {
        const cause = event.status === "in_force" ? "" : event.cause.id;
        const summary = `${event.status} ${event.revision} ${event.outcome} ${cause}`;
        if (latest.get(event.id) !== summary) list.prepend(change(event));
        latest.delete(event.id);
        latest.set(event.id, summary);
        if (latest.size > LATEST_MAX) latest.delete(latest.keys().next().value);
      }
      empty.hidden = list.childElementCount > 0;
      while (list.childElementCount > LISTED_MAX) list.lastElementChild.remove();
    },
  });
}

function filters(parameters) {
  const scope = pairs(parameters.get("scope") ?? "").map((pair) => ["scope", pair]);
  const types = parameters.get("type") ? [["types", parameters.get("type")]] : [];
  return [["view", "document"], ["snapshot", "false"], ...scope, ...types];
}

function form(parameters) {
  const field = (name, label) => el("label", {}, el("span", {}, label), el("input", { name, type: "search",
    value: parameters.get(name) ?? "", placeholder: "any", autocomplete: "off", spellcheck: "false" }));
  return searchForm("live", { class: "search filter" }, field("scope", "In scope"), field("type", "Of type"),
    el("button", { type: "submit" }, "Filter"));
}

function change(event) {
  const isInForce = holds(event);
  const kind = isInForce ? "in-force" : event.outcome === "revised" ? "revised" : "superseded";
  return el("li", { class: kind },
    el("span", { class: "dot", "aria-hidden": "true" }),
    el("div", {},
      el("p", {}, el(isInForce ? "b" : "s", {}, documentLink(event.id, textOf(titleOf(event)))), " ",
        became(event), "."),
      el("p", { class: "facts" }, el("code", {}, event.id), el("span", {}, event.type), timeOf(event.time),
        event.rule ? el("span", {}, ruleName(event.rule)) : null, event.scope ? el("span", {}, event.scope) : null)));
}

function became(changed) {
  const { id, status, why, cause, outcome } = changed;
  const name = el("b", {}, documentLink(cause.id, textOf(titleOf(cause))));
  const because = (...words) => (cause.id === id ? "" : words);
  const event = because(": ", name, ` ${CAUSES[cause.kind ?? "placed"]}`);
  if (outcome && (status === "in_force" || why === "voided" || why === "link")) {
    const words = fateInWords(changed);
    if (outcome === "revised" || status === "in_force") return [outcome === "revised" ? "was " : "is ", words];
    const title = titleOf(cause);
    return ["is ", words.endsWith(title) ? [words.slice(0, -title.length), name] : [words, because(": ", name)]];
  }
  if (status !== "superseded") return [STATUSES[status], status === "in_force" ? event : ""];
  return [LEFT[why] ?? "is superseded through another scope", event];
}
