// The page: which view is shown, and the switch between light and dark.
import { clean, count, el, fill } from "./dom.js";
import { forgetToken, get } from "./service.js";
import * as ask from "./ask.js";
import * as one from "./document.js";
import * as live from "./live.js";
import * as rejected from "./rejected.js";
import * as timeline from "./timeline.js";

const VIEWS = { ask, timeline, live, rejected, document: one };
const THEMES = ["auto", "light", "dark"];
const THEME_KEY = "stream-car-theme";
let leave = () => {};

/** The view and its parameters in the address after the `#`. */
function address() {
  const [name, query] = location.hash.replace(/^#\/?/, "").split("?");
  return { name: Object.hasOwn(VIEWS, name) ? name : "ask", parameters: new URLSearchParams(query ?? "") };
}

async function show() {
  const { name, parameters } = address();
  leave();
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.view === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const ending = new AbortController();
  leave = () => ending.abort();
  const view = el("section");
  fill(document.getElementById("view"), view);
  document.title = `${VIEWS[name].TITLE} · Stream-CAR`;
  showStatus();
  try {
    await VIEWS[name].show(view, parameters, ending.signal);
  } catch (error) {
    if (ending.signal.aborted) return;
    for (const line of view.querySelectorAll(".waiting, .state")) line.remove();
    view.append(el("p", { class: "wrong", role: "alert" }, clean(error.message)));
    if (error.code === "role") view.append(el("button", { type: "button", onclick: useOtherToken }, "Use another token"));
  }
}

function useOtherToken() {
  forgetToken();
  show();
}

async function showStatus() {
  const line = document.getElementById("status");
  try {
    const { documents, pending, version, generation } = await get("/v1/status");
    fill(line, count(documents, "document"), pending ? `, ${pending} pending` : "");
    line.title = clean(`version ${version}, generation ${generation}`);
  } catch (error) {
    fill(line, "not connected");
    line.title = error.message;
  }
}

function applyTheme() {
  const theme = localStorage.getItem(THEME_KEY) ?? "auto";
  document.documentElement.dataset.theme = theme;
  const button = document.getElementById("theme");
  fill(button, el("span", { class: `sun ${theme}`, "aria-hidden": "true" }));
  button.setAttribute("aria-label", `Colours: ${theme}. Change`);
  button.title = `Colours: ${theme}`;
}

document.getElementById("theme").addEventListener("click", () => {
  const theme = localStorage.getItem(THEME_KEY) ?? "auto";
  localStorage.setItem(THEME_KEY, THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length]);
  applyTheme();
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // its address would be taken for a view
  document.getElementById("view").focus();
});
addEventListener("hashchange", show);
addEventListener("keydown", (event) => {
  const field = document.querySelector("main input");
  if (event.key === "/" && field && !event.target.closest("input, textarea, dialog")) {
    event.preventDefault();
    field.focus();
  }
});
applyTheme();
show();
