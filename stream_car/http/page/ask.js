// Ask a question: what is in force, what it replaced, and what plain search returns.
import { amendments, chain, replacedBy } from "./chain.js";
import {
  count, details, documentLink, el, externalLink, fateInWords, fill, holds, passage, reasonsInWords, searchForm, sentence,
  textOf, timeOf, titleOf,
} from "./dom.js";
import { get, post } from "./service.js";

export const TITLE = "Ask";
const K = 5;
const TIMELINES_MAX = 2;
const SHORT = 800; // letters of a text before the rest is folded
const SHORTER = 240; // of a weaker match

export async function show(view, parameters, signal) {
  const text = parameters.get("q") ?? "";
  const day = parameters.get("as_of") ?? "";
  const results = el("div", { class: "answer", "aria-live": "polite" });
  fill(view, el("h1", { class: text ? "small" : "" }, "What is in force?"), form(text, day), results);
  if (!text) {
    view.querySelector("input").focus();
    fill(results, await hint());
    return;
  }
  fill(results, el("p", { class: "waiting" }, "Searching…"));
  const [answer, matches] = await Promise.all([
    post("/v1/query", { text, k: K, ...(day ? { as_of: day } : {}) }),
    post("/v1/search", { text, k: K }),
  ]);
  if (!signal.aborted) fill(results, inForce(answer, day), plainSearch(matches, answer, day));
}

function form(text, day) {
  return searchForm("ask", { class: "search", role: "search" },
    el("label", { class: "unseen", for: "q" }, "Question"),
    el("input", { id: "q", name: "q", type: "search", value: text, maxlength: 10000, autocomplete: "off",
      enterkeyhint: "search", placeholder: "Ask in words", "aria-keyshortcuts": "/", title: "Press / to come here" }),
    el("label", { class: "date" }, el("span", {}, "As of"), el("input", { name: "as_of", type: "date", value: day })),
    el("button", { type: "submit" }, "Ask"));
}

async function hint() {
  if ((await get("/v1/status")).documents) {
    return el("p", { class: "empty" },
      "Search finds the best match. The answer is what is in force now, with the path that leads there.");
  }
  return el("div", { class: "empty" },
    el("p", {}, "Nothing is published yet. In a shell, run:"),
    el("pre", {}, `stream-car publish FILE --url ${location.origin}`));
}

/** The answer. What limits it stands before the weaker matches, where it is seen. */
function inForce(answer, day) {
  const leading = new Set((answer.groups[0]?.controlling ?? []).map((control) => control.document.id));
  const first = answer.results.filter((item) => leading.has(item.id));
  const rest = answer.results.filter((item) => !leading.has(item.id));
  const hasWeaker = first.length > 0 && rest.length > 0;
  const list = (items, show) => el("ol", { class: "results" }, items.map((item) => show(item, answer.groups)));
  return el("section", { "aria-labelledby": "in-force" },
    el("h2", { id: "in-force" }, day ? `In force on ${day}` : "In force"),
    answer.results.length && !answer.is_close
      ? el("p", { class: "trouble" }, "Nothing close was found. These documents share little with the question:") : null,
    answer.results.length ? list(hasWeaker ? first : answer.results, result)
      : el("p", { class: "empty" }, "Nothing matches. Try other words."),
    answer.groups.map(trouble), notes(answer), certificate(answer),
    hasWeaker ? [el("h2", { class: "weaker" }, "From weaker matches"), list(rest, weakerResult)] : null);
}

/** A document in force, with the first path that leads to it. */
function result(item, groups) {
  const paths = pathsTo(item, groups);
  const [first, ...others] = paths.filter(({ control }) => control.path.length);
  return el("li", { class: "result" }, heading(item, SHORT), amendments(item, groups),
    first ? [el("h4", {}, "What it replaced"), chain(first), replaced("Also replaced: ", others, replacedBy(first))]
      : unchanged(),
    timelines(paths), moreAbout(item, paths, others));
}

/** The same, shorter: its paths are among the details. */
function weakerResult(item, groups) {
  const paths = pathsTo(item, groups);
  const long = paths.filter(({ control }) => control.path.length);
  return el("li", { class: "result weaker" }, heading(item, SHORTER), amendments(item, groups),
    replaced("Replaced: ", long) ?? unchanged(), moreAbout(item, paths, long, timelines(paths)));
}

function pathsTo(item, groups) {
  return groups.flatMap((group) =>
    group.controlling.filter((control) => control.document.id === item.id).map((control) => ({ group, control })));
}

function heading(item, limit) {
  return [
    el("h3", {}, externalLink(item.url, textOf(titleOf(item)))),
    el("p", { class: "facts" }, holds(item) ? timeOf(item.time, "In force since ")
      : el("span", { class: "status superseded" }, sentence(fateInWords(item))), item.source ? el("span", {}, item.source) : null,
      el("span", {}, item.type), documentLink(item.id, el("code", {}, item.id))),
    item.text ? passage(item.text, limit) : null,
  ];
}

function unchanged() {
  return el("p", { class: "note" }, "It matches the question, and nothing supersedes it.");
}

function moreAbout(item, paths, unfolded, ...more) {
  return details({}, "Details", figures([
    ["Revision", item.revision],
    ...paths.map(({ group }) => [`Match: ${titleOf(group.anchor)}`,
      `score ${group.score.toFixed(2)}, probability ${group.probability.toFixed(2)}`]),
  ]), unfolded.map(chain), more);
}

/** What these paths replaced, each document once, without those `shown` already. */
function replaced(words, paths, shown = []) {
  const known = new Set(shown.map((item) => item.id));
  const more = new Map(paths.flatMap(replacedBy).filter((item) => !known.has(item.id)).map((item) => [item.id, item]));
  return more.size ? el("p", { class: "note" }, words,
    separated([...more.values()].map((item) => el("s", {}, textOf(titleOf(item))))), ".") : null;
}

/** Links to the timelines of the scopes on these paths. */
function timelines(paths) {
  const scopes = new Set(paths.flatMap(({ control }) => control.path.map((step) => step.scope)));
  const named = [...scopes].filter((scope) => !/^document=|"/.test(scope)).slice(0, TIMELINES_MAX);
  const links = named.map((scope) => el("a", { href: `#/timeline?${new URLSearchParams({ scope })}` }, scope));
  return links.length ? el("p", { class: "note" }, "Timeline: ", separated(links)) : null;
}

function separated(elements) {
  return elements.map((element, at) => [at ? "; " : "", element]);
}

function trouble(group) {
  if (group.controlling.length && !group.missing.length && !group.cycle.length) return null;
  const why = group.cycle.length ? `these documents supersede one another: ${group.cycle.join(", ")}`
    : group.missing.length ? `its successor was never published: ${group.missing.join(", ")}`
    : "nothing in force controls it";
  return el("p", { class: "trouble" }, el("b", {}, textOf(titleOf(group.anchor))), `: ${why}.`);
}

function notes({ pending, vectors_pending: unencoded, ignored_terms: ignored }) {
  return [
    pending ? `${count(pending, "document waits for its time", "documents wait for their time")}.` : null,
    unencoded ? `Found by words only, because vectors are still being made: ${count(unencoded, "document")}.` : null,
    ignored ? `The question is long. Its most common words were not searched: ${count(ignored, "word")}.` : null,
  ].map((text) => text && el("p", { class: "note" }, text));
}

function certificate({ certificate: proof, groups, scopes }) {
  const messages = proof.cut.reduce((sum, offset) => sum + offset, 0);
  const waiting = count(proof.pending, "document that waits for its time", "documents that wait for their time");
  const but = proof.pending && proof.as_of ? `, not counting ${waiting},` : "";
  const published = `none of the ${count(messages, "message")} published so far${but}`;
  const summary = proof.complete
    ? [el("b", {}, "✔ Complete"), `: ${published} supersedes what is shown.`]
    : [el("b", {}, "✘ Not complete"), `: ${reasonsInWords(proof.reasons)}.`];
  return details({ class: `certificate ${proof.complete ? "complete" : "incomplete"}` }, summary, figures([
    ["Matches followed", `${proof.covered.length} of ${proof.covered.length + proof.not_covered.length}`],
    ["Messages counted, per shard", proof.cut.join(", ")],
    ["Scope identifiability φ", proof.phi.toFixed(2)],
    ["Scope ambiguity κ", proof.kappa.toFixed(2)],
    ["Coverage", proof.coverage.toFixed(2)],
    ...scopes.map((item) => [`Scope ${item.scope || "(none)"}`, `probability ${item.probability.toFixed(2)}`]),
    ...groups.filter((group) => !group.complete).map((group) => [titleOf(group.anchor), reasonsInWords(group.reasons)]),
    ["Reads", `${count(proof.lookups, "key")} in ${count(proof.rounds, "round")}`],
    ["Generation", proof.generation],
  ]));
}

function figures(rows) {
  return el("dl", {}, rows.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}

function plainSearch(matches, answer, day) {
  const controlling = new Set(answer.results.map((item) => item.id));
  const items = matches.map((item) => {
    const isInForce = holds(item);
    const status = `${fateInWords(item)}${controlling.has(item.id) ? ", in the answer" : ""}`;
    return el("li", {},
      el("span", {}, isInForce ? externalLink(item.url, textOf(titleOf(item))) : el("s", {}, textOf(titleOf(item)))),
      el("span", { class: "facts" },
        el("span", { class: `status ${isInForce ? "in-force" : "superseded"}` }, status), timeOf(item.time)));
  });
  const wrong = matches.filter((item) => !holds(item)).length;
  const note = wrong ? `${count(wrong, "of these is", "of these are")} not in force.` : "All of these are in force.";
  return el("aside", { class: "plain", "aria-labelledby": "plain" },
    el("h2", { id: "plain" }, "What plain search returns"),
    matches.length ? [el("ol", {}, items), el("p", { class: wrong ? "note wrong" : "note" }, note),
      day ? el("p", { class: "note" }, "Plain search knows no date: this is the status now.") : null]
      : el("p", { class: "empty" }, "Nothing."));
}
