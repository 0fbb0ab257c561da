// Which view is open, the theme, and keys that work everywhere.

import { getJson } from "./api.js";
import { clearMessages, make } from "./dom.js";
import { exportDialog } from "./exchange.js";
import { lastFrame } from "./memory.js";
import { openVideo } from "./video.js";
import { showKeys } from "./keys.js";
import { openLibrary } from "./library.js";
import { learnDialog, showLearning, watchLesson } from "./teach.js";

const view = document.getElementById("view"), where = document.getElementById("where"), saved = document.getElementById("saved");
let current = null, opened = "";

const parameters = () => new URLSearchParams(location.hash.slice(1));

function told({ text, kind }) {
  saved.textContent = text;
  saved.className = kind;
}

async function route() {
  const video = parameters().get("video") || parameters().get("film") || "", frame = parameters().get("frame");
  if (video && video === opened && current) { // the address was changed by hand
    if (frame !== null && current.video.frame[current.position] !== Number(frame)) current.go(current.video.frame.indexOf(Number(frame)));
    return;
  }
  current?.close();
  current = null;
  opened = video;
  told({ text: "", kind: "" });
  clearMessages();
  where.replaceChildren();
  if (!video) {
    current = openLibrary(view);
    document.title = "colocam";
    return;
  }
  try {
    const next = await openVideo(view, video, frame === null ? lastFrame(video) : Number(frame), told);
    if (opened !== video || !next) { next?.close(); return; }
    current = next;
    where.replaceChildren(make("a", { href: "#" }, "Library"), " / ", make("strong", {}, next.video.name));
    document.title = `${next.video.name} – colocam`;
    window.colocam = next; // for people who look behind the page, and for tests
  } catch (error) {
    const unknown = [404, 422].includes(error.status); // 422: it is not even an id
    view.replaceChildren(make("div", { class: "empty", role: "alert" },
      make("p", {}, make("strong", {}, unknown ? "This video is not in the library" : "This video cannot be shown")),
      make("p", {}, unknown ? "It was removed, or the link is of another page. Its corrections stay: add the video again to see them." : error.message),
      make("div", { class: "row choices" }, make("a", { class: "button primary", href: "#" }, "Back to the library"))));
  }
}

// The theme of the system, also when that changes, until another one is chosen here; choosing the system's follows it again.
const THEME = "colocam-theme-chosen", light = matchMedia("(prefers-color-scheme: light)");
const systemTheme = () => (light.matches ? "light" : "dark");

function showTheme() {
  document.documentElement.dataset.theme = localStorage.getItem(THEME) || systemTheme();
  current?.changed?.();
}

function switchTheme() {
  const other = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  if (other === systemTheme()) localStorage.removeItem(THEME);
  else localStorage.setItem(THEME, other);
  showTheme();
}

showTheme();
light.addEventListener("change", showTheme);
document.getElementById("theme").addEventListener("click", switchTheme);
document.getElementById("help").addEventListener("click", showKeys);
document.getElementById("export").addEventListener("click", () => exportDialog(current?.video?.id));
document.getElementById("learn").addEventListener("click", () => learnDialog(current));
window.addEventListener("hashchange", route);
// What the mouse uses takes no focus, so that keys still mean the video. People who use Tab keep their focus.
document.addEventListener("mousedown", (event) => {
  if (!event.target.closest("button, canvas") || event.target.closest("dialog")) return;
  event.preventDefault();
  document.activeElement?.blur();
});
view.addEventListener("change", (event) => event.target.matches(":focus-visible") || event.target.blur());
window.addEventListener("keydown", (event) => {
  if (document.querySelector("dialog[open]")) return;
  if (current?.key(event)) return;
  if (event.key === "?" && !event.target.closest?.("input, select, textarea")) showKeys();
});
window.addEventListener("beforeunload", (event) => {
  current?.flush?.();
  if (current?.saving?.waiting.length) event.preventDefault(); // they wait in this browser, but are not saved yet
});
route();
watchLesson(false);
getJson("/api/videos").then((answer) => showLearning(answer.cannot_learn)).catch(() => {}); // the library asks again
