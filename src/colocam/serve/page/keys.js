// The keys of the film view, in one place: what they do, and the list that "?" shows.

import { dialog, make } from "./dom.js";

// [keys as shown, key events, name of the action, words]
export const KEYS = [
  ["Space", [" "], "play", "Play or pause"],
  [". and ,", [".", ","], "step", "Next and previous frame"],
  ["J and K", ["j", "k"], "doubtful", "Next and previous doubtful frame"],
  ["X and Shift+X", ["x", "X"], "cut", "Next and previous cut"],
  ["F and Shift+F", ["f", "F"], "key", "Next and previous marked frame"],
  ["M", ["m"], "middle", "Middle of the gap between marked frames"],
  ["G", ["g"], "goto", "Go to a frame by its number"],
  ["A", ["a"], "accept", "Accept this frame"],
  ["Shift+A", ["A"], "acceptStretch", "Accept the stretch up to the next cut or marked frame"],
  ["N", ["n"], "none", "No object in this frame"],
  ["Shift+N", ["N"], "noneStretch", "No object in the stretch"],
  ["] and [", ["]", "["], "edge", "The object leaves or enters here: none in the rest of the stretch"],
  ["C", ["c"], "class", "Wrong class: choose another for the stretch"],
  ["B", ["b"], "box", "Put a box here, then use the arrows"],
  ["Arrows", ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"], "nudge", "Move the box by 1 pixel, with Shift by 10"],
  ["Alt+Arrows", [], "", "Move the right or lower side alone"],
  ["Backspace", ["Backspace", "Delete"], "clear", "Back to the prediction in this frame"],
  ["Z and Y", ["z", "y"], "history", "Undo and redo, as often as you like"],
  ["H", ["h"], "heat", "Heat map on or off"],
  ["V", ["v"], "cam", "LayerCAM of the classifier on or off"],
  ["O", ["o"], "outline", "Outline of the object on or off"],
  ["D", ["d"], "compare", "Other model: boxes of both, flicker, off"],
  ["+ − and 0", ["+", "-", "0", "="], "zoom", "Zoom in, out, whole frame"],
  ["L", ["l"], "library", "Back to the library"],
  ["?", ["?"], "help", "This list"],
];

const ACTIONS = new Map(KEYS.flatMap(([, keys, action]) => keys.map((key) => [key, action])));

export function actionOf(event) {
  const field = event.target.closest?.("input, select, textarea, dialog");
  const own = { checkbox: [" "], range: ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"] }[field?.type];
  if (field && (!own || own.includes(event.key))) return null;
  if (event.ctrlKey || event.metaKey) return ["z", "y", "Z"].includes(event.key) ? "history" : null;
  if (event.altKey && !event.key.startsWith("Arrow")) return null;
  // A focused button takes Space for itself, and the timeline its arrows.
  if (event.key === " " && event.target.closest?.("button, a, summary")) return null;
  if (event.key.startsWith("Arrow") && event.target.closest?.("[role=slider]")) return null;
  return ACTIONS.get(event.key) || null;
}

export function showKeys() {
  const rows = KEYS.map(([keys, , , words]) => make("tr", {}, make("th", { scope: "row" }, ...keys.split(" ").map((part) =>
    (["and"].includes(part) ? ` ${part} ` : make("kbd", {}, part)))), make("td", {}, words)));
  const mouse = "Drag inside the box to move it, a handle to resize it, elsewhere (or with Shift) to draw a new one. The wheel zooms.";
  const box = dialog("Keys", make("table", { class: "keys" }, make("tbody", {}, ...rows)), make("p", {}, mouse),
    make("form", { method: "dialog" }, make("button", { class: "primary" }, "Close")));
  box.addEventListener("keydown", (event) => event.key === "?" && box.close());
}
