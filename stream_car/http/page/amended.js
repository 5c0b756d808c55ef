// What is to be read with a document in force: what amends it, and how each came to.
import { called, counted, el, outward } from "./dom.js";

/** A line for every amendment of a document that these groups tell of; `before` says whose, where that is not clear. */
export function amendments(one, groups, before = []) {
  const control = groups.flatMap((group) => group.controlling).find((some) => some.document.id === one.id);
  const lines = (control?.amendments ?? []).map(({ document, path }) => el("p", { class: "amends" },
    before, el("b", {}, "Amended by "), outward(document.url, called(document)), ` (${way(path)})`));
  const more = control?.amendments_more ? el("p", { class: "amends" }, before, `and by ${counted(control.amendments_more, "other document")}`) : null;
  return more ? [...lines, more] : lines;
}

/** The path in words: the first step amends, further ones void what amended first. */
function way([first, ...further]) {
  const named = first.rule === "link" ? "by name" : first.rule;
  return [further.length ? `${first.id}, ${named}` : named,
    ...further.map((step) => `void by ${step.id}, ${step.rule === "link" ? "a link" : step.rule}`)].join("; ");
}
