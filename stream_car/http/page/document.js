// One document as it was published, with its status and what supersedes it.
import {
  count, details, documentLink, el, externalLink, fateInWords, fill, holds, ruleName, sentence, textOf, timeOf,
} from "./dom.js";
import { get, post } from "./service.js";

export const TITLE = "Document";

export async function show(view, parameters, signal) {
  const id = parameters.get("id") ?? "";
  const [[lookup], explanation] = await Promise.all([
    post("/v1/get", { names: [id] }), get(`/v1/explain/${encodeURIComponent(id).replaceAll(".", "%2E")}`)]);
  if (signal.aborted) return;
  const shown = lookup.documents.map((found) => published(found));
  fill(view, shown.length ? shown : [el("h1", { class: "small" }, id),
    el("p", { class: "empty" }, sentence(`${fateInWords(lookup)}: there is no document to show.`))],
  explanation.memberships.length ? memberships(explanation.memberships) : null);
}

function published(found) {
  const { document: item } = found;
  const links = ["supersedes", "superseded_by", "amends"].filter((name) => item[name].length);
  const attributes = Object.keys(item.attributes).length;
  return el("article", { class: "card" },
    el("h1", { class: "small" }, externalLink(item.url, textOf(item.title || item.id))),
    el("p", { class: "facts" }, el("span", { class: holds(found) ? "status" : "status superseded" },
      sentence(fateInWords(found))), timeOf(item.time), item.source ? el("span", {}, item.source) : null,
    el("span", {}, item.type), el("code", {}, item.id)),
    item.text ? el("p", { class: "text" }, textOf(item.text)) : null,
    item.scope.map((map) => el("p", { class: "note" },
      Object.entries(map).map(([key, values]) => `${key}=${values.join(", ")}`).join("; "))),
    links.map((name) => el("p", { class: "note" }, `${sentence(name.replace("_", " "))}: `,
      item[name].map((other, at) => [at ? ", " : "", documentLink(other, other)]))),
    attributes ? details({}, count(attributes, "attribute"),
      el("pre", {}, JSON.stringify(item.attributes, null, 2))) : null);
}

/** Where it is in force, and what supersedes it elsewhere: in words, for no one should need a mouse to see a cause. */
function memberships(list) {
  return el("section", { class: "card" }, el("h2", {}, "Where it holds"),
    el("ul", {}, list.map(({ scope, holds: isInForce, by }) => el("li", {}, el("code", {}, scope), ": ",
      isInForce ? "in force" : ["no longer", by.map((step, at) => [at ? ", and " : ", ",
        `${step.outcome || "superseded"} by `, documentLink(step.id, step.id), ` (${ruleName(step.rule)})`])]))));
}
