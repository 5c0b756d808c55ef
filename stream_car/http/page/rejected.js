// What was refused: why, and the bytes as they came.
import { day, el, fill } from "./dom.js";
import { get } from "./service.js";

export const TITLE = "Rejected";
const PAGE = 50;

export async function show(place, said, signal) {
  const list = el("ol", { class: "refusals" });
  const more = el("button", { type: "button", class: "quiet more", hidden: true }, "More");
  const note = el("p", { class: "note" });
  fill(place, el("h1", { class: "small" }, "What was refused"), note, list, more);
  let after = 0;
  const next = async () => {
    const page = await get("/v1/rejected", [["after", after], ["limit", PAGE]]);
    if (signal.aborted) return;
    page.forEach((one) => list.append(refusal(one)));
    after = page.at(-1)?.oseq ?? after;
    more.hidden = page.length < PAGE;
    fill(note, list.childElementCount
      ? ["It is kept, byte for byte. Mend it and send it again: ", el("code", {}, "stream-car rejected replay")]
      : "Nothing was refused.");
  };
  more.addEventListener("click", next);
  await next();
}

function refusal(one) {
  const bytes = typeof one.value === "string" ? one.value : `base64: ${one.value.base64}`;
  return el("li", { class: "card" },
    el("h2", {}, el("code", { class: "code" }, one.code), one.id ? ` ${one.id}` : ""),
    el("p", {}, one.reason),
    el("p", { class: "facts" }, el("span", {}, `input ${one.offset}`), el("time", { datetime: one.append_time }, day(one.append_time))),
    el("details", {}, el("summary", {}, "The bytes"), el("pre", {}, bytes.slice(0, 20_000))));
}
