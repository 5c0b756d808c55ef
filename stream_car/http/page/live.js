// Changes as they happen: what became void and what holds again, each with its cause.
import { called, day, el, fill, outward } from "./dom.js";
import { follow } from "./service.js";
import { pairs } from "./scope.js";

export const TITLE = "Live";
const KEPT = 200;
const STATES = { live: "Listening", waiting: "The service does not answer; trying again", ended: "Stopped" };
const ENDED = {
  voided: "is void now",
  link: "is void now",
  moved: "left this scope",
  corrected: "gave way to its correction",
  retracted: "was retracted",
};

export async function show(place, said, signal) {
  const list = el("ol", { class: "changes", role: "log", "aria-live": "polite", "aria-label": "Changes, newest first" });
  const state = el("p", { class: "state-line waiting", role: "status" }, "Connecting…");
  const empty = el("p", { class: "empty" }, "Nothing has changed since you opened this view. Publish something, and it appears here at once.");
  fill(place, el("h1", { class: "small" }, "What changes"), form(said), state, empty, list);
  const last = new Map(); // a document that is in several scopes is told of once for each
  await follow(parameters(said), {
    signal,
    told(now) {
      state.className = `state-line ${now}`;
      fill(state, STATES[now]);
    },
    hear(event, data) {
      if (event === "change" && stateOf(data) !== last.get(data.id)) list.prepend(change(data));
      if (event === "change") last.set(data.id, stateOf(data));
      if (event === "reset") list.prepend(el("li", { class: "reset" }, "The rules have changed; what follows is told under the new ones."));
      empty.hidden = list.childElementCount > 0;
      while (list.childElementCount > KEPT) list.lastElementChild.remove();
    },
  });
}

function stateOf(one) {
  return `${one.active} ${one.revision} ${one.active ? "" : one.cause.id}`;
}

function parameters(said) {
  const chosen = [["view", "document"], ["snapshot", "false"]];
  for (const pair of pairs(said.get("in") ?? "")) chosen.push(["scope", pair]);
  if (said.get("type")) chosen.push(["type", said.get("type")]);
  return chosen;
}

function form(said) {
  const submit = (event) => {
    event.preventDefault();
    const wanted = new FormData(event.target);
    const query = new URLSearchParams([...wanted].map(([name, value]) => [name, value.trim()]).filter(([, value]) => value));
    location.hash = `#/live?${query}`;
  };
  return el("form", { class: "asking filter", onsubmit: submit },
    el("label", {}, el("span", {}, "In scope"), el("input", { name: "in", type: "search", value: said.get("in") ?? "", placeholder: "any", autocomplete: "off", spellcheck: "false" })),
    el("label", {}, el("span", {}, "Of type"), el("input", { name: "type", type: "search", value: said.get("type") ?? "", placeholder: "any", autocomplete: "off", spellcheck: "false" })),
    el("button", { type: "submit" }, "Filter"));
}

function change(one) {
  const cause = one.cause;
  const isOwn = cause.id === one.id;
  const became = one.active ? "is in force" : ENDED[one.why] ?? "is void through another scope";
  return el("li", { class: one.active ? "active" : "void" },
    el("span", { class: "dot", "aria-hidden": "true" }),
    el("div", {},
      el("p", {}, one.active ? el("b", {}, outward(one.url, called(one))) : el("s", {}, called(one)), ` ${became}`,
        isOwn ? "." : [one.active ? ": " : ", because of ", el("b", {}, outward(cause.url, called(cause))), one.active ? ` was ${cause.kind}.` : "."]),
      el("p", { class: "facts" }, el("code", {}, one.id), el("span", {}, one.type), el("time", { datetime: one.time }, day(one.time)),
        one.rule ? el("span", {}, one.rule) : null, one.scope ? el("span", {}, one.scope) : null)));
}
