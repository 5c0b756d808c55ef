// Elements from values. Promise: what a publisher wrote becomes text, never markup, and cannot change the direction of
// the text beside it; a link leads to this page or to a web address, nowhere else.

const INVISIBLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Co}]/gu;
const REASONS = {
  cycle: "documents supersede one another",
  successor_missing: "a successor was never published",
  budget: "the search for what controls them was stopped early",
  in_flight: "documents are still being applied; ask again",
  lost_history: "records that are needed were deleted; the operator must act",
  pending: "a document waits for its time",
  unknown: "a document is not known",
  retracted: "a document was retracted",
  no_anchor: "no document matches the question",
  history_unknown: "what a record said at that time is not known here",
  limit: "there is more than fits into one answer",
};

/** A publisher's text on one line, without invisible characters. */
export function clean(text) {
  return String(text ?? "").replace(INVISIBLE, " ");
}

/** An element. Attributes are written in the source of this page; children may be anything. */
export function el(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === false || value === undefined || value === null) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key.startsWith("--")) element.style.setProperty(key, value);
    else element.setAttribute(key, value === true ? "" : value);
  }
  return fill(element, ...children);
}

/** The element with these children and no others. */
export function fill(element, ...children) {
  const present = children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);
  element.replaceChildren(...present.map((child) => (child instanceof Node ? child : clean(child))));
  return element;
}

/** A line that unfolds. */
export function details(attributes, summary, ...children) {
  return el("details", attributes, el("summary", {}, summary), children);
}

/** A form that leads to `#/VIEW` with the values of its fields. */
export function searchForm(view, attributes, ...fields) {
  const submit = (event) => {
    event.preventDefault();
    const values = [...new FormData(event.target)].map(([name, value]) => [name, value.trim()]);
    location.hash = `#/${view}?${new URLSearchParams(values.filter(([, value]) => value))}`;
  };
  return el("form", { ...attributes, onsubmit: submit }, fields);
}

/** A link to a document's address, if that is a web address. */
export function externalLink(url, text) {
  return /^https?:\/\//i.test(url) ? el("a", { href: url, rel: "noopener noreferrer", target: "_blank" }, text) : text;
}

/** A publisher's text, with what is between backticks as code. */
export function textOf(text) {
  return clean(text).split(/(`[^`]+`)/).map((part) => (/^`.+`$/.test(part) ? el("code", {}, part.slice(1, -1)) : part));
}

/** A publisher's text: if it is long, its first words, and all of it in a line that unfolds. */
export function passage(text, limit) {
  const words = clean(text);
  if (words.length <= limit) return el("p", { class: "text" }, textOf(words));
  const start = words.slice(0, limit).replace(/\s+\S*$/, "");
  return [el("p", { class: "text" }, textOf(start), " …"),
    details({}, "Whole text", el("p", { class: "text" }, textOf(words)))];
}

/** A link to the page of a document. */
export function documentLink(id, children) {
  return el("a", { href: `#/document?${new URLSearchParams({ id })}` }, children);
}

/** An RFC 3339 time for people: without fractions of a second, and only the day if it is midnight. */
function formatTime(time) {
  return time.replace(/\.\d+/, "").replace(/T00:00:00Z$/, "").replace("T", " ").replace(/Z$/, " UTC");
}

/** A time as an element, with words before it. */
export function timeOf(time, words = "") {
  return time ? el("time", { datetime: time }, words, formatTime(time)) : null;
}

/** `1 document`, `2,000 documents`. */
export function count(number, noun, plural = `${noun}s`) {
  return `${number.toLocaleString("en")} ${number === 1 ? noun : plural}`;
}

/** The title of a document, or its id. */
export function titleOf(item) {
  return clean(item.title || item.id);
}

/** Why an answer is not complete. */
export function reasonsInWords(reasons) {
  return reasons.map((reason) => REASONS[reason] ?? reason).join("; ");
}

/** Whether a document holds: a withdrawal is in force, but its record does not hold any more. */
export function holds(item) {
  return item.status === "in_force" && !item.outcome;
}

/** What became of a document or of its record, `fixed in 2.0.0`, or else its status. */
export function fateInWords(item) {
  return clean(item.outcome_text || item.status.replace("_", " "));
}

/** The words with a capital letter. */
export function sentence(words) {
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** A rule for people. */
export function ruleName(rule) {
  return rule === "link" ? "explicit link" : rule;
}
