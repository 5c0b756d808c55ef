// Rejected input: why it was rejected, and its bytes.
import { details, el, fill, timeOf } from "./dom.js";
import { get } from "./service.js";

export const TITLE = "Rejected";
const PAGE = 50;
const SHOWN_MAX = 20_000; // characters of one input

export async function show(view, parameters, signal) {
  const list = el("ol", { class: "rejected-list" });
  const more = el("button", { type: "button", class: "quiet more", hidden: true, onclick: () => next() }, "More");
  const note = el("p", { class: "note" });
  fill(view, el("h1", { class: "small" }, "Rejected input"), note, list, more);
  let after = 0;
  const next = async () => {
    const page = await get("/v1/rejected", [["after", after], ["limit", PAGE]]);
    if (signal.aborted) return;
    list.append(...page.map(card));
    after = page.at(-1)?.number ?? after;
    more.hidden = page.length < PAGE;
    fill(note, list.childElementCount
      ? ["Kept byte for byte. Correct it and send it again with ", el("code", {}, "stream-car rejected replay"), "."]
      : "Nothing was rejected.");
  };
  await next();
}

function card({ code, id, reason, offset, append_time: time, value }) {
  const text = typeof value === "string" ? value : `base64: ${value.base64}`;
  return el("li", { class: "card" },
    el("h2", {}, el("code", { class: "code" }, code), id ? ` ${id}` : ""),
    el("p", {}, reason),
    el("p", { class: "facts" }, el("span", {}, `offset ${offset}`), timeOf(time)),
    details({}, "Content", el("pre", {}, text.slice(0, SHOWN_MAX))));
}
