// The page: which view is shown, and the switch between light and dark.
import { clean, counted, el, fill } from "./dom.js";
import { get } from "./service.js";
import * as ask from "./ask.js";
import * as live from "./live.js";
import * as rejected from "./rejected.js";
import * as scope from "./scope.js";

const VIEWS = { ask, scope, live, rejected };
const THEMES = ["auto", "light", "dark"];
const THEME = "stream-car-theme";
let leave = () => {};

/** The address behind the `#`: a view, and what it is to show. */
function address() {
  const [name, query] = location.hash.replace(/^#\/?/, "").split("?");
  return { name: name in VIEWS ? name : "ask", said: new URLSearchParams(query ?? "") };
}

async function show() {
  const { name, said } = address();
  leave();
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.view === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const ending = new AbortController();
  const place = fill(el("section", { class: `view ${name}` }));
  leave = () => ending.abort();
  fill(document.getElementById("view"), place);
  stand();
  document.title = `${VIEWS[name].TITLE} · Stream-CAR`;
  try {
    await VIEWS[name].show(place, said, ending.signal);
  } catch (error) {
    if (!ending.signal.aborted) place.append(el("p", { class: "wrong", role: "alert" }, error.message));
  }
}

async function stand() {
  const place = document.getElementById("standing");
  try {
    const said = await get("/v1/status");
    const waiting = said.waiting ? `, ${said.waiting} waiting` : "";
    fill(place, `${counted(said.documents, "document")}${waiting}`);
    place.title = clean(`version ${said.version}, generation ${said.generation}`);
  } catch (error) {
    fill(place, "not connected");
    place.title = error.message;
  }
}

function dress() {
  const theme = localStorage.getItem(THEME) ?? "auto";
  document.documentElement.dataset.theme = theme;
  const button = document.getElementById("theme");
  fill(button, el("span", { class: `sun ${theme}`, "aria-hidden": "true" }));
  button.setAttribute("aria-label", `Colours: ${theme}. Change`);
  button.title = `Colours: ${theme}`;
}

document.getElementById("theme").addEventListener("click", () => {
  const theme = localStorage.getItem(THEME) ?? "auto";
  localStorage.setItem(THEME, THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length]);
  dress();
});
addEventListener("hashchange", show);
addEventListener("keydown", (event) => {
  const field = document.querySelector("main input[type=search], main input");
  if (event.key === "/" && field && !event.target.closest("input, textarea, dialog")) {
    event.preventDefault();
    field.focus();
  }
});
dress();
show();
