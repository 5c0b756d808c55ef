// The way from what was found to what controls it, as a picture: each document a box, each rule an arrow.
// Promise: the picture fits its place, from left to right where there is room, else from top to bottom; its name
// says the same in words.
import { called, clean, day, fitted, svg } from "./dom.js";

const WIDE = { width: 190, height: 76, gap: 136, gapLeast: 96, gapDown: 20 };
const LANE = 15;
let numbers = 0;

/** The picture of every way to one document in force. */
export function chain(end, ways) {
  const graph = gathered(end, ways);
  return fitted("chain", (width) => picture(graph, width));
}

/** The documents and steps of all ways; `rank` is how many steps a document is from the end, at most. */
function gathered(end, ways) {
  const nodes = new Map();
  const edges = new Map();
  for (const { group, control } of ways) {
    const known = new Map([group.anchor, ...group.passed, end].map((one) => [one.id, one]));
    const ids = [group.anchor.id, ...control.path.map((step) => step.id)];
    ids.forEach((id, at) => {
      const rank = Math.max(ids.length - 1 - at, nodes.get(id)?.rank ?? 0);
      nodes.set(id, { id, rank, one: known.get(id) ?? nodes.get(id)?.one ?? { id, title: "" }, isEnd: id === end.id,
        isAnchor: id === group.anchor.id || Boolean(nodes.get(id)?.isAnchor) });
    });
    control.path.forEach((step, at) => edges.set(`${ids[at]}\n${step.id}\n${step.rule}`, { from: ids[at], to: step.id, rule: step.rule }));
  }
  for (let again = true, rounds = 0; again && rounds < nodes.size; rounds += 1) {
    again = false;
    for (const { from, to } of edges.values()) {
      if (nodes.get(from).rank <= nodes.get(to).rank) {
        nodes.get(from).rank = nodes.get(to).rank + 1;
        again = true;
      }
    }
  }
  return { nodes: [...nodes.values()], edges: [...edges.values()] };
}

function picture({ nodes, edges }, room) {
  const ranks = Math.max(...nodes.map((node) => node.rank)) + 1;
  const tip = `tip-${numbers += 1}`;
  const isWide = ranks * WIDE.width + (ranks - 1) * WIDE.gapLeast <= room;
  const drawn = isWide ? across(nodes, edges, ranks, room, tip) : down(nodes, edges, room, tip);
  return svg("svg", { role: "img", "aria-label": inWords(nodes, edges), width: drawn.width, height: drawn.height, viewBox: `0 0 ${drawn.width} ${drawn.height}` },
    svg("defs", {}, svg("marker", { id: tip, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" },
      svg("path", { class: "tip", d: "M0 0 8 4 0 8z" }))),
    drawn.parts);
}

/** From left to right: a column for each rank, each rule on its arrow. */
function across(nodes, edges, ranks, room, tip) {
  const gap = Math.min(WIDE.gap, (room - 2 - ranks * WIDE.width) / Math.max(ranks - 1, 1));
  const columns = Array.from({ length: ranks }, (_, at) => nodes.filter((node) => node.rank === ranks - 1 - at));
  const tall = (count) => count * (WIDE.height + WIDE.gapDown) - WIDE.gapDown;
  const height = Math.max(...columns.map((column) => tall(column.length))) + 2;
  columns.forEach((column, at) => column.forEach((node, row) => Object.assign(node, {
    x: 1 + at * (WIDE.width + gap), y: (height - tall(column.length)) / 2 + row * (WIDE.height + WIDE.gapDown), width: WIDE.width, height: WIDE.height,
  })));
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const ways = edges.map(({ from, to, rule }) => {
    const [start, end] = [byId.get(from), byId.get(to)];
    const [x1, y1, x2, y2] = [start.x + start.width, start.y + WIDE.height / 2, end.x - 4, end.y + WIDE.height / 2];
    const middle = (x1 + x2) / 2;
    const lines = wrapped(rule, Math.max(10, Math.floor((gap - 12) / 6.2)));
    return svg("g", { class: "way" },
      svg("path", { d: `M${x1} ${y1}C${middle} ${y1} ${middle} ${y2} ${x2} ${y2}`, "marker-end": `url(#${tip})` }),
      lines.map((line, row) => svg("text", { x: middle, y: (y1 + y2) / 2 - 8 - (lines.length - 1 - row) * 13, "text-anchor": "middle" }, line)));
  });
  return { width: ranks * WIDE.width + (ranks - 1) * gap + 2, height, parts: [ways, nodes.map((node) => box(node, state(node)))] };
}

/** From top to bottom, like a line of stations: each rule in the box of the document that it voids. */
function down(nodes, edges, room, tip) {
  const rows = [...nodes].sort((one, two) => two.rank - one.rank);
  const at = new Map(rows.map((node, row) => [node.id, row]));
  const lanes = laned(edges.filter(({ from, to }) => at.get(to) - at.get(from) > 1).map(({ from, to }) => ({ start: at.get(from), end: at.get(to) })));
  const rail = 10 + lanes.count * LANE;
  const left = rail + 20;
  let y = 1;
  for (const node of rows) {
    const width = Math.min(room - left - 2, 560);
    const lines = wrapped(called(node.one), Math.floor((width - 24) / 7.1)).length;
    Object.assign(node, { x: left, y, width, height: lines > 1 ? 74 : 57 });
    y += node.height + 14;
  }
  const center = (row) => rows[row].y + rows[row].height / 2;
  const rails = edges.map(({ from, to }) => {
    const [start, end] = [at.get(from), at.get(to)];
    const lane = lanes.of(start, end);
    const x = rail - lane * LANE;
    const [y1, y2] = [center(start) + 6, center(end) - 9];
    const way = lane === 0 ? `M${rail} ${y1}V${y2}` : `M${rail - 4} ${y1 - 3}C${x} ${y1 + 4} ${x} ${y1 + 10} ${x} ${y1 + 24}V${y2 - 18}C${x} ${y2 - 6} ${rail - 8} ${y2 + 2} ${rail - 6} ${y2 + 3}`;
    return svg("g", { class: "way" }, svg("path", { d: way, "marker-end": `url(#${tip})` }));
  });
  const stations = rows.map((node, row) => svg("circle", { class: `station ${node.isEnd ? "end" : "void"}`, cx: rail, cy: center(row), r: 5 }));
  const rules = (node) => [...new Set(edges.filter((edge) => edge.from === node.id).map((edge) => (edge.rule === "link" ? "a link" : edge.rule)))].join(", ");
  const boxes = rows.map((node) => box(node, node.isEnd ? "in force" : `void by ${rules(node)}`));
  return { width: left + rows[0].width + 2, height: y - 12, parts: [rails, stations, boxes] };
}

/** Which lane beside the line each span takes, so that none covers another; spans of one step take none. */
function laned(spans) {
  const taken = [];
  const found = new Map();
  for (const { start, end } of spans.sort((one, two) => one.end - one.start - (two.end - two.start))) {
    let lane = 1;
    while ((taken[lane] ?? []).some((other) => start < other.end && other.start < end)) lane += 1;
    (taken[lane] ??= []).push({ start, end });
    found.set(`${start} ${end}`, lane);
  }
  return { count: Math.max(0, taken.length - 1), of: (start, end) => found.get(`${start} ${end}`) ?? 0 };
}

function state({ isEnd, isAnchor }) {
  return isEnd ? "in force" : isAnchor ? "found, void" : "void";
}

function box({ x, y, width, height, one, isEnd }, said) {
  const lines = wrapped(called(one), Math.floor((width - 24) / 7.1));
  const under = [said, one.time ? day(one.time).slice(0, 10) : ""].filter(Boolean).join(" · ");
  const top = (height - 17 - lines.length * 17) / 2 + 12;
  return svg("g", { class: `box ${isEnd ? "end" : "void"}`, transform: `translate(${x} ${y})` },
    svg("title", {}, `${called(one)} (${one.id}): ${under}`),
    svg("rect", { width, height, rx: 9 }),
    lines.map((line, row) => svg("text", { class: "name", x: 12, y: top + row * 17 }, line)),
    svg("text", { class: "under", x: 12, y: top + lines.length * 17 + 1 }, cut(under, Math.floor((width - 24) / 6.3))));
}

function cut(line, letters) {
  return line.length > letters ? `${line.slice(0, letters - 1)}…` : line;
}

/** The text on two lines at most, broken behind spaces and hyphens. */
export function wrapped(text, letters) {
  const lines = [""];
  for (const part of clean(text).split(/(?<=[ -])/)) {
    const longer = lines.at(-1) + part;
    if (longer.trimEnd().length <= letters || !lines.at(-1)) lines[lines.length - 1] = longer;
    else lines.push(part);
  }
  const shown = lines.length <= 2 ? lines : [lines[0], lines.slice(1).join("")];
  return shown.map((line) => line.trimEnd()).map((line) => cut(line, letters));
}

function inWords(nodes, edges) {
  const names = new Map(nodes.map((node) => [node.id, called(node.one)]));
  return edges.map((edge) => `${names.get(edge.from)} is void by ${names.get(edge.to)} (${edge.rule})`).join("; ");
}
