// Elements from values. Promise: what a publisher wrote becomes text and never markup, and cannot turn the
// direction of what stands beside it; a link leads to this page or to a web address, nowhere else.

const SVG = "http://www.w3.org/2000/svg";
const HIDDEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Co}]/gu;

/** What somebody wrote, on one line, without characters that cannot be seen. */
export function clean(text) {
  return String(text ?? "").replace(HIDDEN, " ");
}

/** An HTML element. Attributes are written in the source of this page; children may be anything. */
export function el(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

/** An SVG element. */
export function svg(name, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === undefined || value === null) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(3)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(clean(child)));
  }
  return element;
}

const LEAST = 200; // pixels; while a page is being laid out, a place can have next to none

/** A figure that holds the picture of its width, drawn anew when that changes. */
export function fitted(name, picture) {
  const figure = el("figure", { class: name });
  let drawn = 0;
  new ResizeObserver(([entry]) => {
    const width = Math.floor(entry.contentRect.width);
    if (!width || width === drawn) return;
    drawn = width;
    figure.replaceChildren(picture(Math.max(width, LEAST)));
  }).observe(figure);
  return figure;
}

/** The element with nothing but these children. */
export function fill(element, ...children) {
  element.replaceChildren();
  return filled(element, {}, children);
}

/** A link to a document's own address, where that is a web address. */
export function outward(url, ...children) {
  return /^https?:\/\//i.test(url) ? el("a", { href: url, rel: "noopener noreferrer", target: "_blank" }, children) : children;
}

/** A time for people: the day alone where the publisher gave no hour. */
export function day(time) {
  return time ? time.replace(/T00:00:00Z$/, "").replace("T", " ").replace(/Z$/, " UTC") : "";
}

/** `1 document`, `2,000 documents`. */
export function counted(number, noun) {
  return `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
}

/** What a person calls a document. */
export function called(one) {
  return clean(one.title || one.id);
}
