// Ask a question: what is in force, the chain that leads there, and what plain relevance would have said.
import { amendments } from "./amended.js";
import { chain } from "./chain.js";
import { called, counted, day, el, fill, outward } from "./dom.js";
import { get, post } from "./service.js";

export const TITLE = "Ask";
const K = 5;
const REASONS = {
  cycle: "documents void one another",
  successor_missing: "a successor is named that is not here",
  budget: "the walk was stopped before its end",
  in_flight: "documents are still being applied; ask again",
  pending: "a document waits for its time",
  no_anchor: "no document matches the question",
  limit: "more documents are in force than are shown",
};

export async function show(place, said, signal) {
  const text = said.get("q") ?? "";
  const asOf = said.get("as_of") ?? "";
  const results = el("div", { class: "answer", "aria-live": "polite" });
  fill(place, el("h1", { class: text ? "small" : "" }, "What is in force?"), form(text, asOf), results);
  if (!text) {
    place.querySelector("input").focus();
    fill(results, await hint());
    return;
  }
  fill(results, el("p", { class: "waiting" }, "Looking…"));
  const time = asOf ? { as_of: `${asOf}T00:00:00Z` } : {};
  const [answer, plain] = await Promise.all([
    post("/v1/query", { text, k: K, ...time }),
    post("/v1/relevance", { text, k: K }),
  ]);
  if (signal.aborted) return;
  fill(results, inForce(answer, asOf), relevance(plain, answer));
}

function form(text, asOf) {
  const submit = (event) => {
    event.preventDefault();
    const said = new FormData(event.target);
    const query = new URLSearchParams({ q: said.get("q").trim() });
    if (said.get("as_of")) query.set("as_of", said.get("as_of"));
    if (query.get("q")) location.hash = `#/ask?${query}`;
  };
  return el("form", { class: "asking", role: "search", onsubmit: submit },
    el("label", { class: "unseen", for: "q" }, "Question"),
    el("input", { id: "q", name: "q", type: "search", value: text, maxlength: 10000, autocomplete: "off", enterkeyhint: "search",
      placeholder: "Ask in words", "aria-keyshortcuts": "/", title: "Press / to come here" }),
    el("label", { class: "date" }, el("span", {}, "As of"), el("input", { name: "as_of", type: "date", value: asOf })),
    el("button", { type: "submit" }, "Ask"));
}

async function hint() {
  const standing = await get("/v1/status");
  if (standing.documents) {
    return el("p", { class: "empty" }, "Relevance finds where to begin. Authority leads from there to what controls it now, and shows the way.");
  }
  return el("div", { class: "empty" },
    el("p", {}, "Nothing is published here yet. From a shell:"),
    el("pre", {}, `stream-car publish FILE --url ${location.origin}`));
}

function inForce(answer, asOf) {
  const leading = new Set((answer.groups[0]?.controlling ?? []).map((control) => control.document.id));
  const [first, rest] = [answer.results.filter((one) => leading.has(one.id)), answer.results.filter((one) => !leading.has(one.id))];
  const list = (some) => el("ol", { class: "results" }, some.map((one) => result(one, answer)));
  const amiss = answer.groups.filter((group) => !group.controlling.length || group.missing.length || group.cycle.length);
  return el("section", { class: "controls", "aria-labelledby": "in-force" },
    el("h2", { id: "in-force" }, asOf ? `In force on ${asOf}` : "In force"),
    answer.results.length ? list(first) : el("p", { class: "empty" }, "Nothing found. Try other words."),
    rest.length && first.length ? el("h2", { class: "weaker" }, "Weaker matches lead to") : null,
    rest.length ? list(rest) : null,
    amiss.map(trouble),
    certificate(answer.certificate));
}

function result(one, answer) {
  const ways = answer.groups.flatMap((group) =>
    group.controlling.filter((control) => control.document.id === one.id && control.path.length).map((control) => ({ group, control })));
  return el("li", { class: "result" },
    el("h3", {}, outward(one.url, called(one))),
    facts(one),
    one.text ? el("p", { class: "text" }, one.text) : null,
    amendments(one, answer.groups),
    ways.length ? chain(one, ways) : el("p", { class: "direct" }, "Found as it stands: nothing voids it."),
    timelines(ways));
}

/** Where the documents on the ways stand among others of their scopes. */
function timelines(ways) {
  const scopes = new Set(ways.flatMap(({ control }) => control.path.map((step) => step.scope)));
  const told = [...scopes].filter((scope) => !/^document=|"/.test(scope)).slice(0, 2);
  return told.map((scope) => el("p", { class: "direct" }, "Timeline: ", el("a", { href: `#/scope?${new URLSearchParams({ in: scope })}` }, scope)));
}

export function facts(one) {
  return el("p", { class: "facts" },
    el("code", {}, one.id), el("span", {}, one.type), el("time", { datetime: one.time }, day(one.time)),
    one.source ? el("span", {}, one.source) : null);
}

function trouble(group) {
  const said = group.cycle.length ? `these void one another: ${group.cycle.join(", ")}`
    : group.missing.length ? `named as successor, but not here: ${group.missing.join(", ")}`
    : "nothing in force controls it";
  return el("p", { class: "amiss" }, el("b", {}, called(group.anchor)), `: ${said}.`);
}

function certificate(said) {
  const covers = counted(said.covered.length, "anchor");
  const figures = `phi ${said.phi.toFixed(2)}, kappa ${said.kappa.toFixed(2)}`;
  const cut = said.cut.length === 1 ? `, counting the first ${counted(said.cut[0], "message")} of the log` : "";
  if (said.complete) {
    return el("p", { class: "certificate holds" }, el("b", {}, "✔ Complete"), ` for ${covers}${cut} (${figures}).`);
  }
  const why = said.reasons.map((reason) => REASONS[reason] ?? reason).join("; ");
  return el("p", { class: "certificate lacks" }, el("b", {}, "✘ Not complete"), `: ${why}. It covers ${covers}${cut}.`);
}

function relevance(plain, answer) {
  const controlling = new Set(answer.results.map((one) => one.id));
  const items = plain.map((one) => el("li", { class: one.active ? "" : "is-void" },
    el("span", { class: "title" }, one.active ? outward(one.url, called(one)) : el("s", {}, called(one))),
    el("span", { class: "facts" },
      el("span", { class: `state ${one.active ? "active" : "void"}` }, one.active ? (controlling.has(one.id) ? "in force, in the answer" : "in force") : "void"),
      el("time", { datetime: one.time }, day(one.time)))));
  const wrong = plain.filter((one) => !one.active).length;
  const hold = wrong === 1 ? "no longer holds" : "no longer hold";
  const note = wrong ? `${wrong} of these ${plain.length} ${hold}.` : "All of these hold.";
  return el("aside", { class: "plain", "aria-labelledby": "plain" },
    el("h2", { id: "plain" }, "What plain relevance says"),
    plain.length ? [el("ol", {}, items), el("p", { class: wrong ? "note wrong" : "note" }, note)] : el("p", { class: "empty" }, "Nothing."));
}
