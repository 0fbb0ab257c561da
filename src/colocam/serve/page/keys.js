// The keys of the video view, in one place: what they do, and the list that "?" shows.

import { dialog, make } from "./dom.js";

// [keys as shown, key events, name of the action, words]
export const KEYS = [
  ["Space", [" "], "play", "Play or pause"],
  [". and ,", [".", ","], "step", "Next and previous frame"],
  ["J and K", ["j", "k"], "doubtful", "Next and previous frame to check, worst first; in the library, next and previous video"],
  ["X and Shift+X", ["x", "X"], "cut", "Next and previous cut"],
  ["F and Shift+F", ["f", "F"], "key", "Next and previous marked frame"],
  ["M", ["m"], "middle", "Middle of the gap between two marked frames"],
  ["G", ["g"], "goto", "Go to a frame by its number"],
  ["A", ["a"], "accept", "Accept this frame"],
  ["Enter", ["Enter"], "next", "Accept this frame and go to the next one to check"],
  ["Shift+A", ["A"], "acceptStretch", "Accept the stretch, up to the next cut or marked frame"],
  ["N", ["n"], "none", "No object in this frame"],
  ["Shift+N", ["N"], "noneStretch", "No object in the stretch"],
  ["[ and ]", ["]", "["], "edge", "The object enters or leaves here: none before or after, in the stretch"],
  ["C", ["c"], "class", "Wrong class: choose another one, or add one, for the stretch; of other objects for the whole track"],
  ["Shift+C", ["C"], "videoClass", "Class of the whole video, which is localized again"],
  ["B", ["b"], "box", "Put a box here, then use the arrows"],
  ["I", ["i"], "newObject", "Another object: a box with a new number, then use the arrows"],
  ["T and Shift+T", ["t", "T"], "object", "Select the next and previous object in this frame"],
  ["1 to 9", ["1", "2", "3", "4", "5", "6", "7", "8", "9"], "object", "Select the object with this number, even if it is not in this frame"],
  ["S", ["s"], "split", "Split the track: from this frame on it is a different object"],
  ["U", ["u"], "unite", "Unite the track with that of another object"],
  ["R", ["r"], "removeTrack", "Remove the whole track of the object"],
  ["Q", ["q"], "alone", "Show only the selected object, or all; hidden objects are not accepted"],
  ["P", ["p"], "copy", "Copy the box of the previous frame"],
  ["Shift+P", ["P"], "carry", "Carry this box on to the next cut or marked frame, as the model sees the object move"],
  ["E", ["e"], "type", "Type the sides of the box, in pixels"],
  ["Arrows", ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"], "nudge", "Move the box by a pixel (in large videos by more), with Shift by ten times as much"],
  ["Alt+Arrows", [], "", "Move only the right or lower side of the box"],
  ["Ctrl+Arrows", [], "", "Move only the left or upper side of the box"],
  ["Backspace", ["Backspace", "Delete"], "clear", "Back to the prediction in this frame"],
  ["Z and Y", ["z", "y"], "history", "Undo and redo, as often as you like"],
  ["H", ["h"], "heat", "Heat map on or off"],
  ["V", ["v"], "cam", "LayerCAM of the classifier on or off"],
  ["O", ["o"], "outline", "Outline of the object on or off"],
  ["D", ["d"], "compare", "Another model: both boxes, side by side, flicker, off"],
  ["+ and −", ["+", "-", "="], "zoom", "Zoom in and out"],
  ["0", ["0"], "zoom", "Show the whole frame"],
  ["L", ["l"], "library", "Back to the library"],
  ["?", ["?"], "help", "Show this list"],
];

const ACTIONS = new Map(KEYS.flatMap(([, keys, action]) => keys.map((key) => [key, action])));

export function actionOf(event) {
  const field = event.target.closest?.("input, select, textarea, dialog");
  const own = { checkbox: [" "], range: ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"] }[field?.type];
  if (field && (!own || own.includes(event.key))) return null;
  const arrow = event.key.startsWith("Arrow");
  if ((event.ctrlKey || event.metaKey) && !arrow) return ["z", "y", "Z"].includes(event.key) ? "history" : null;
  if (event.altKey && !arrow) return null;
  // A focused button takes Space and Enter for itself, and the timeline its arrows.
  if ([" ", "Enter"].includes(event.key) && event.target.closest?.("button, a, summary, [role=button]")) return null;
  if (arrow && event.target.closest?.("[role=slider]")) return null;
  return ACTIONS.get(event.key) || null;
}

export function showKeys() {
  const rows = KEYS.map(([keys, , , words]) => make("tr", {}, make("th", { scope: "row" }, ...keys.split(" ").map((part) =>
    (part === "and" || part === "to" ? ` ${part} ` : make("kbd", {}, part)))), make("td", {}, words)));
  const half = Math.ceil(rows.length / 2), table = (part) => make("table", { class: "keys" }, make("tbody", {}, ...part));
  const mouse = "Mouse: click on the object to box it; more clicks add to it, Alt+clicks take away. Drag inside the box to move it, drag a handle to resize it, drag elsewhere (or with Shift) to draw a new box, click another object to select it. The wheel zooms.";
  const box = dialog("Keys", make("div", { class: "columns" }, table(rows.slice(0, half)), table(rows.slice(half))), make("p", {}, mouse),
    make("form", { method: "dialog", class: "row" }, make("button", { class: "primary" }, "Close")));
  box.classList.add("wide");
  // The focus on the last button would scroll the title away; from the title, arrows scroll.
  const title = box.querySelector("h2");
  title.tabIndex = -1;
  title.focus();
  box.scrollTop = 0;
  box.addEventListener("keydown", (event) => event.key === "?" && box.close());
}
