// The timeline of a scope: from when to when each document was in force, and what ended that.
// Promise: it is a list of text; the bars only repeat it.
import { amendments } from "./chain.js";
import { clean, count, documentLink, el, fill, reasonsInWords, searchForm, textOf, timeOf, titleOf } from "./dom.js";
import { get, post } from "./service.js";

export const TITLE = "Timeline";
const SCOPES_MAX = 12;
const NAMES_MAX = 200; // documents in force whose amendments are requested, and causes whose titles are
const NARROW = 672; // pixels, as in the style sheet
const STATES = { "": "all", in_force: "in force", ended: "ended" };
const DAY_MS = 86_400_000;

export async function show(view, parameters, signal) {
  const text = parameters.get("scope") ?? "";
  const state = parameters.get("state") ?? "";
  const timelines = el("div", { class: "scopes", "aria-live": "polite" });
  fill(view, el("h1", { class: text ? "small" : "" }, "What was in force, and when?"), form(text, state), timelines);
  if (!text) {
    view.querySelector("input").focus();
    fill(timelines, el("p", { class: "empty" }, "Name a scope by one or more of its values, for example ",
      el("code", {}, "package=lodash"), ". By rules, documents supersede one another only within a scope."));
    return;
  }
  const after = parameters.get("after") ?? "";
  const histories = await get("/v1/history", [...pairs(text).map((pair) => ["scope", pair]), ["after", after],
    ...(state ? [["states", state]] : [])]);
  const shown = histories.slice(0, SCOPES_MAX);
  const members = shown.flatMap((history) => history.members);
  const known = new Set(members.map((member) => member.id));
  const causes = members.flatMap(({ ended }) => (ended && !known.has(ended.id) ? [ended.id] : []));
  const names = [...new Set([...shown.flatMap(inForce).map((member) => member.id), ...causes])].slice(0, NAMES_MAX);
  const resolutions = names.length ? await post("/v1/resolve", { names }) : [];
  if (signal.aborted) return;
  const groups = resolutions.flatMap((resolution) => resolution.groups);
  const more = histories.length - shown.length;
  const titles = new Map([...groups.map(({ anchor }) => anchor), ...members].map((item) => [item.id, titleOf(item)]));
  fill(timelines, shown.map((history) => timeline(history, titles, groups)),
    shown.length ? null : el("p", { class: "empty" },
      state ? "No document with these values has this state." : "No scope has these values."),
    more ? el("p", { class: "note" }, `Not shown: ${count(more, "other scope")}. Add a value.`)
      : following(text, state, shown.at(-1)?.next));
}

/** The `KEY=VALUE` pairs of a text, separated by commas or spaces; a value with spaces extends to the next key. */
export function pairs(text) {
  const parts = text.split(/[,\s]+(?=[^\s,=]+=)/).map((pair) => pair.trim().replace(/,$/, "")).filter(Boolean);
  if (parts.some((pair) => !/^[^=]+=./.test(pair))) {
    throw new Error("Write a scope as KEY=VALUE, for example package=lodash.");
  }
  return parts;
}

/** The way to what a page has no room for. */
function following(text, state, next) {
  if (!next) return null;
  const link = el("a", { href: `#/timeline?${new URLSearchParams({ scope: text, state, after: next })}` }, "Show the following");
  return el("p", { class: "note" }, "There are more documents. ", link);
}

function form(text, state) {
  return searchForm("timeline", { class: "search", role: "search" },
    el("label", { class: "unseen", for: "scope" }, "Scope"),
    el("input", { id: "scope", name: "scope", type: "search", value: text, autocomplete: "off", spellcheck: "false",
      placeholder: "KEY=VALUE, for example package=lodash" }),
    el("label", { class: "unseen", for: "state" }, "State"),
    el("select", { id: "state", name: "state" }, Object.entries(STATES).map(([value, label]) =>
      el("option", { value, selected: value === state }, label))),
    el("button", { type: "submit" }, "Show"));
}

function inForce(history) {
  return history.members.filter((member) => !member.ended && !member.outcome);
}

function timeline(history, titles, groups) {
  const { members } = history;
  const times = members.flatMap(({ time, ended }) => [Date.parse(time), Date.parse(ended?.time ?? time)]);
  const first = Math.min(...times);
  const last = Math.max(first + DAY_MS, ...times, inForce(history).length ? Date.now() : 0);
  const percent = (time) => (100 * (time - first)) / (last - first);
  return el("section", { class: "card" },
    el("h2", {}, history.scope),
    el("p", { class: "note" }, `${count(members.length, "document")}, ${inForce(history).length} in force`,
      history.reasons.length ? `. Not complete: ${reasonsInWords(history.reasons)}` : ""),
    el("div", { class: "timeline" },
      el("div", { class: "ticks", "aria-hidden": "true" }, ticks(first, last).map(({ time, label }) =>
        el("span", { "--start": `${percent(time)}%` }, el("span", {}, label)))),
      el("ol", {}, members.map((member) => bar(member, titles, percent)))),
    inForce(history).map((member) => amendments(member, groups, [titleOf(member), ": "])));
}

function bar(member, titles, percent) {
  const { ended } = member;
  const start = percent(Date.parse(member.time));
  const end = ended ? percent(Date.parse(ended.time)) : 100;
  const size = { "--start": `${start}%`, "--length": `${Math.max(end - start, 0)}%` };
  const became = member.outcome && clean(member.outcome_text);
  const next = ended && (titles.get(ended.id) ?? ended.id);
  const cause = ended && documentLink(ended.id, textOf(next));
  const why = ended && (became.endsWith(next) ? [became.slice(0, -next.length), cause] : [became, ": ", cause]);
  const period = !ended ? [became || "in force since ", became ? "" : timeOf(member.time)]
    : end > start ? ["in force from ", timeOf(member.time), " to ", timeOf(ended.time), ", ", why]
    : [timeOf(member.time), ", from the start ", why];
  return el("li", { class: ended || became ? "superseded" : "in-force", ...size },
    el("p", {}, el("span", {}, el("b", {}, documentLink(member.id, textOf(titleOf(member)))), " ", el("small", {}, period))),
    el("span", { class: "bar", "aria-hidden": "true" }));
}

/** Round dates for the axis. */
function ticks(first, last) {
  const limit = innerWidth < NARROW ? 3 : 6;
  const years = (last - first) / (365.25 * DAY_MS);
  if (years > 1.5) {
    const step = [1, 2, 5, 10, 20, 50, 100, 200, 500].find((size) => years / size <= limit) ?? 1000;
    const start = Math.ceil(new Date(first).getUTCFullYear() / step) * step;
    return range(start, new Date(last).getUTCFullYear(), step)
      .map((year) => ({ time: Date.UTC(year, 0), label: String(year) })).filter(({ time }) => time >= first);
  }
  const step = Math.max(1, Math.ceil((last - first) / DAY_MS / limit)) * DAY_MS;
  return range(Math.ceil(first / DAY_MS) * DAY_MS, last, step)
    .map((time) => ({ time, label: new Date(time).toISOString().slice(0, 10) }));
}

function range(start, end, step) {
  return Array.from({ length: Math.max(0, Math.floor((end - start) / step) + 1) }, (_, at) => start + at * step);
}
