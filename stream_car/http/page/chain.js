// Chains: how a match leads to the document in force, and what amends that document.
// Promise: they are lists of text; the style sheet draws the line between their items.
import { count, el, externalLink, fateInWords, ruleName, textOf, timeOf, titleOf } from "./dom.js";

/** The documents that a path replaced, the anchor first. */
export function replacedBy({ group, control }) {
  const known = new Map(group.superseded.map((item) => [item.id, item]));
  const between = control.path.slice(0, -1).map((step) => known.get(step.id) ?? { id: step.id });
  return [group.anchor, ...between];
}

/** A path as a list: each document with what supersedes it; last, the document in force. */
export function chain({ group, control }) {
  const items = [...replacedBy({ group, control }), control.document];
  const last = items.length - 1;
  return el("ol", { class: "chain", "aria-label": `From ${titleOf(items[0])} to ${titleOf(items[last])}` },
    items.map((item, at) => (at === last
      ? el("li", { class: "in-force" }, el("b", {}, textOf(titleOf(item))), el("small", {}, timeOf(item.time), "in force"))
      : el("li", { class: "superseded" }, el("s", {}, externalLink(item.url, textOf(titleOf(item)))), el("small", {},
        timeOf(item.time), became(item, control.path[at], items[at + 1]))))));
}

/** What became of a document on a path. Another path may say more of it, so the step decides. */
function became(item, step, next) {
  if (item.outcome && item.outcome === step.outcome) return textOf(fateInWords(item));
  return textOf(`${step.outcome || "superseded"} by ${titleOf(next)}`);
}

/** A line per amendment of a document that these groups list; `before` names the document if that is not clear. */
export function amendments(item, groups, before = []) {
  const control = groups.flatMap((group) => group.controlling).find((other) => other.document.id === item.id);
  const lines = (control?.amendments ?? []).map(({ document: amendment, path }) => el("p", { class: "amends" }, before,
    el("b", {}, "Amended by "), externalLink(amendment.url, textOf(titleOf(amendment))), ` (${pathInWords(path)})`));
  const more = control?.amendments_more ?? 0;
  return more ? [...lines, el("p", { class: "amends" }, before, `and by ${count(more, "other document")}`)] : lines;
}

/** The path of an amendment: its first step amends, further ones supersede. */
function pathInWords([first, ...further]) {
  const start = further.length ? `${first.id}, ${ruleName(first.rule)}` : ruleName(first.rule);
  return [start, ...further.map((step) => `${step.outcome || "superseded"} by ${step.id}`)].join("; ");
}
