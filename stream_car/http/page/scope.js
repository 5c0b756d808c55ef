// A scope's timeline: from when to when each document held, and what ended it.
import { amendments } from "./amended.js";
import { called, day, el, fill, fitted, clean, counted, svg } from "./dom.js";
import { get, post } from "./service.js";

export const TITLE = "Timeline";
const SHOWN = 12;
const ASKED = 200; // documents in force whose amendments are asked for
const DAY = 86_400_000;
const LETTER = 7.4; // how wide one is, at most, on average
const ROW = { height: 46, bar: 10, left: 2, right: 12, axis: 30 };

export async function show(place, said, signal) {
  const text = said.get("in") ?? "";
  const found = el("div", { class: "scopes", "aria-live": "polite" });
  fill(place, el("h1", { class: text ? "small" : "" }, "What held, from when to when?"), form(text), found);
  if (!text) {
    place.querySelector("input").focus();
    fill(found, el("p", { class: "empty" }, "Name a scope by one or more of its values, such as ",
      el("code", {}, "package=lodash"), ". Documents void one another only within a scope."));
    return;
  }
  const scopes = await get("/v1/history", pairs(text).map((pair) => ["scope", pair]));
  const shown = scopes.slice(0, SHOWN);
  const names = [...new Set(shown.flatMap(holding).map((member) => member.id))].slice(0, ASKED);
  const groups = names.length ? (await post("/v1/resolve", { names })).flatMap((one) => one.groups) : [];
  if (signal.aborted) return;
  fill(found, scopes.length ? shown.map((one) => timeline(one, groups)) : el("p", { class: "empty" }, "No scope has these values."),
    scopes.length > SHOWN ? el("p", { class: "note" }, `${scopes.length - SHOWN} more scopes have these values; add another.`) : null);
}

/** `KEY=VALUE`s, apart by commas or spaces; a value with spaces goes up to the next key. */
export function pairs(text) {
  const found = text.split(/[,\s]+(?=[^\s,=]+=)/).map((pair) => pair.trim().replace(/,$/, "")).filter(Boolean);
  if (found.some((pair) => !/^[^=]+=./.test(pair))) throw new Error("Write a scope as KEY=VALUE, such as package=lodash.");
  return found;
}

function form(text) {
  const submit = (event) => {
    event.preventDefault();
    const wanted = new FormData(event.target).get("in").trim();
    if (wanted) location.hash = `#/scope?${new URLSearchParams({ in: wanted })}`;
  };
  return el("form", { class: "asking", role: "search", onsubmit: submit },
    el("label", { class: "unseen", for: "in" }, "Scope"),
    el("input", { id: "in", name: "in", type: "search", value: text, autocomplete: "off", spellcheck: "false", placeholder: "KEY=VALUE, such as package=lodash" }),
    el("button", { type: "submit" }, "Show"));
}

function holding(said) {
  return said.members.filter((member) => !member.ended);
}

function timeline(said, groups) {
  const inForce = holding(said);
  return el("section", { class: "card" },
    el("h2", {}, said.scope),
    el("p", { class: "note" }, `${counted(said.members.length, "document")}, ${inForce.length} not void through this scope`, said.complete ? "" : "; more than are shown"),
    fitted("timeline", (width) => picture(said.members, width)),
    inForce.map((member) => amendments(member, groups, [called(member), ": "])));
}

function picture(members, width) {
  const times = members.flatMap((member) => [member.time, member.ended?.time]).filter(Boolean).map((time) => Date.parse(time));
  const first = Math.min(...times);
  const last = Math.max(...times, members.some((member) => !member.ended) ? Date.now() : first + DAY);
  const room = width - ROW.left - ROW.right;
  const at = (time) => ROW.left + ((time - first) / Math.max(last - first, DAY)) * room;
  const height = members.length * ROW.height + ROW.axis;
  return svg("svg", { role: "img", "aria-label": inWords(members), width, height, viewBox: `0 0 ${width} ${height}` },
    ticks(first, last, Math.max(2, Math.floor(room / 110))).map((tick) => svg("g", { class: "tick" },
      svg("line", { x1: at(tick.time), x2: at(tick.time), y1: 0, y2: height - ROW.axis + 6 }),
      svg("text", { x: Math.min(Math.max(at(tick.time), tick.name.length * 3.4), width - tick.name.length * 3.4 - 2), y: height - 8, "text-anchor": "middle" }, tick.name))),
    members.map((member, row) => bar(member, row * ROW.height, at, width)));
}

function bar(member, y, at, width) {
  const start = at(Date.parse(member.time));
  const end = member.ended ? at(Date.parse(member.ended.time)) : width - ROW.right;
  const length = Math.max(end - start, 3);
  const said = `${clean(member.title || member.id)} · ${member.type}`;
  const until = member.ended ? `${day(member.time)} to ${day(member.ended.time)}, ended by ${member.ended.id}` : `since ${day(member.time)}`;
  const letters = Math.floor((width - 8) / LETTER);
  const name = said.length > letters ? `${said.slice(0, letters - 1)}…` : said;
  const x = Math.max(ROW.left, Math.min(start, width - name.length * LETTER));
  return svg("g", { class: member.ended ? "held" : "holds", transform: `translate(0 ${y})` },
    svg("title", {}, `${said}: ${until}${member.ended ? ` (${member.ended.rule})` : ""}`),
    svg("text", { class: "name", x, y: 16 }, name),
    svg("rect", { x: start, y: 23, width: length, height: ROW.bar, rx: Math.min(5, length / 2) }),
    member.ended ? svg("path", { class: "stop", d: `M${start + length} 20v16` }) : svg("path", { class: "on", d: `M${end + 1} 22l7 6-7 6z` }));
}

/** Round dates for the axis. */
function ticks(first, last, most) {
  const years = (last - first) / (365.25 * DAY);
  const found = [];
  if (years > 1.5) {
    const step = [1, 2, 5, 10, 20, 50, 100, 200, 500].find((size) => years / size <= most) ?? 1000;
    for (let year = Math.ceil(new Date(first).getUTCFullYear() / step) * step; Date.UTC(year, 0) <= last; year += step) {
      if (Date.UTC(year, 0) >= first) found.push({ time: Date.UTC(year, 0), name: String(year) });
    }
    return found;
  }
  const step = Math.max(1, Math.ceil((last - first) / DAY / most));
  for (let time = Math.ceil(first / DAY) * DAY; time <= last; time += step * DAY) {
    found.push({ time, name: new Date(time).toISOString().slice(0, 10) });
  }
  return found;
}

function inWords(members) {
  return members.map((member) => `${clean(member.title || member.id)} held from ${day(member.time)} ${member.ended ? `to ${day(member.ended.time)}` : "until now"}`).join("; ");
}
